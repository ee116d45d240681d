"""For other teams' Python services: channel events, masked and sealed before they leave the process.

    with Producer("kafka:9092", keys=open_key_store(Path("/var/lib/interlock"))) as producer:
        producer.send({"id": "42", "shop": "acme", "channel": "app", "sender": "u-1",
                       "body": {"kind": "message", "message_id": "m-42", "text": "where is my parcel?"}})

Nothing is lost in silence: an event that is no event raises at once, one that the broker did not take is told to
`on_error` and raised by `flush` and `close`, and what waits is flushed when the block, or the process, ends (C21).
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as KafkaProducer

from memory.key_file import open_key_store
from memory.sealing import KeyStore
from schemas import codec
from schemas.cloudevents import headers_for
from schemas.errors import BadRecordError, InterlockError
from schemas.events import RawEvent
from schemas.topics import RAW_TOPIC, TOPICS
from streams.clock import SystemClock
from streams.intake import TOPIC as EVENTS
from streams.intake import event_id, intake
from streams.runtime.client import producer_config, serve, words
from streams.runtime.ports import Fact, Outgoing
from streams.runtime.wire import fact_record

__all__ = ["AsyncProducer", "BadRecordError", "Delivered", "Failure", "NotDeliveredError", "Producer", "ProducerError",
           "RawEvent", "open_key_store"]  # fmt: skip

log = logging.getLogger("interlock.producer")

ANY_PARTITION = -1  # librdkafka places the key by murmur2, as all of the pipeline does (promise 1)
KEPT_FAILURES = 1_000  # failures that `flush` names; more are counted
POLL_S = 0.1
_OURS = frozenset({"bootstrap.servers", "metadata.broker.list", "enable.idempotence", "acks", "request.required.acks",
                   "partitioner"})  # fmt: skip

Done = Callable[["Failure | None", int, int], None]
"""`(failure, partition, offset)`, on the thread that polls."""


class ProducerError(InterlockError):
    """The producer can't take this, or is broken for good."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An event that the broker did not take; sent again under the same id it is still one event (A15)."""

    event_id: str
    conversation: str
    reason: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """Where the broker has the event."""

    event_id: str
    topic: str
    partition: int
    offset: int


class NotDeliveredError(ProducerError):
    """Events did not reach the broker: `failures` are the first of them, `count` all."""

    def __init__(self, failures: tuple[Failure, ...], count: int) -> None:
        self.failures, self.count = failures, count
        first = f": {failures[0].event_id}: {failures[0].reason}" if failures else ""
        super().__init__(f"{count} events did not reach the broker{first}; send them again under the same ids")


@dataclass(frozen=True, slots=True)
class _Cluster:
    bootstrap_servers: str
    group: str


class _Encoder:
    """An event as the record that is sent: masked and sealed with keys, in clear for channel.raw without."""

    def __init__(self, keys: KeyStore | None, source: str) -> None:
        self._keys, self._source, self._clock = keys, source, SystemClock()
        self.topic = RAW_TOPIC if keys is None else EVENTS

    def encode(self, event: RawEvent | Mapping[str, Any]) -> tuple[str, Outgoing]:
        """The event id and the record. Raises BadRecordError that names the field."""
        raw = event if isinstance(event, RawEvent) else codec.validate(RawEvent, dict(event), RAW_TOPIC)
        name, now = event_id(raw), self._clock.now_ms()
        if self._keys is None:
            headers = headers_for(id=name, type=TOPICS[RAW_TOPIC].type, source=self._source, time_ms=now,
                                  subject=raw.conversation)  # fmt: skip
            key = raw.conversation.encode()
            record = Outgoing(RAW_TOPIC, ANY_PARTITION, key, codec.encode(raw), headers)
        else:
            fact = Fact(EVENTS, raw.conversation, name, intake(raw, self._keys))
            record = fact_record(fact, ANY_PARTITION, now)
        size, limit = len(record.value or b""), TOPICS[self.topic].max_bytes
        if size > limit:
            reason = f"{size} bytes; the topic takes at most {limit}"
            raise BadRecordError(reason, code="too_large", topic=self.topic)
        return name, record


class Producer:
    """Thread-safe. `keys` is the installation's key store: events go to channel.events, masked and sealed.

    `keys=None` says that this service has no keys: events go in clear to channel.raw, where rights and a day's
    retention guard them, and the intake app masks and seals them. `config` holds more settings of librdkafka, such as
    `security.protocol`; those that keep order and placement can't be changed. With `at_exit` what waits is flushed
    when the process ends, also by a SIGTERM that nobody else handles.
    """

    def __init__(self, bootstrap: str, *, keys: KeyStore | None, name: str = "interlock-producer",
                 on_error: Callable[[Failure], None] | None = None, timeout_s: float = 120.0,
                 config: Mapping[str, Any] | None = None, at_exit: bool = True) -> None:  # fmt: skip
        taken = sorted(_OURS & (config or {}).keys())
        if taken:
            message = f"{taken[0]} can't be changed: order and placement of all producers depend on it"
            raise ProducerError(message)
        self.timeout_s = timeout_s
        self._encoder = _Encoder(keys, name)
        self._on_error = on_error
        self._lock = threading.Lock()
        self._failures: list[Failure] = []
        self._failed = 0
        self._broken: str | None = None
        self._closed = False
        chosen = {**producer_config(_Cluster(bootstrap, name), message_timeout_ms=int(timeout_s * 1000), linger_ms=5),
                  **(config or {})}  # fmt: skip
        try:
            self._kafka = KafkaProducer(chosen)
        except KafkaException as error:
            message = f"config: {words(error.args[0])}"
            raise ProducerError(message) from error
        self._poller = threading.Thread(target=self._poll, name="interlock-producer", daemon=True)
        self._poller.start()
        if at_exit:
            atexit.register(self._end)
            _exit_on_sigterm()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        if value is None:
            self.close()
        else:
            self._end()  # the block's own error goes on; what was lost is logged beside it

    def send(self, event: RawEvent | Mapping[str, Any]) -> str:
        """Hand an event over; its event id. Waits while the queue is full.

        Raises BadRecordError for what is no event, ProducerError when there was no room in `timeout_s` seconds, the
        producer is closed, or broken for good.
        """
        name, record = self._encoder.encode(event)
        self.hand_over_in_time(name, record)
        return name

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until the broker has everything. Raises NotDeliveredError for what it does not have since last time."""
        until = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while len(self._kafka) and self._broken is None and time.monotonic() < until:
            try:
                serve(self._kafka.flush, POLL_S)
            except KafkaException as error:
                self._break(error)
        with self._lock:
            failures, count = tuple(self._failures), self._failed + len(self._kafka)
            self._failures, self._failed = [], 0
        if count:
            raise NotDeliveredError(failures, count)

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and end. Raises NotDeliveredError; closed it is all the same. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._end)
        try:
            self.flush(timeout_s)
        finally:
            self._stop()

    @property
    def topic(self) -> str:
        """Where events go: channel.events with keys, channel.raw without."""
        return self._encoder.topic

    def encode(self, event: RawEvent | Mapping[str, Any]) -> tuple[str, Outgoing]:
        """The event id and the record that `send` would send. Raises BadRecordError."""
        return self._encoder.encode(event)

    def hand_over_in_time(self, name: str, record: Outgoing, done: Done | None = None) -> None:
        """The same, waiting for room. Raises ProducerError also when there was none in `timeout_s` seconds."""
        until = time.monotonic() + self.timeout_s
        while not self.hand_over(name, record, done):
            if time.monotonic() > until:
                message = f"no room for {name} in {self.timeout_s:g} s: the broker is behind"
                raise ProducerError(message)
            time.sleep(POLL_S / 10)

    def hand_over(self, name: str, record: Outgoing, done: Done | None = None) -> bool:
        """Give an encoded record to the client; False when its queue is full. Raises ProducerError."""
        if self._closed or self._broken:
            message = f"the producer is broken: {self._broken}" if self._broken else "the producer is closed"
            raise ProducerError(message)
        conversation = (record.key or b"").decode()

        def delivered(error: KafkaError | None, message: Message) -> None:
            failure = None if error is None else Failure(name, conversation, words(error))
            if done is not None:
                done(failure, message.partition() or 0, message.offset() or 0)
            elif failure is not None:
                self._fail(failure)

        try:
            self._kafka.produce(record.topic, record.value, record.key, headers=list(record.headers),
                                on_delivery=delivered)  # fmt: skip
        except BufferError:
            return False
        except KafkaException as error:
            message = f"{record.topic}: {words(error.args[0])}"
            raise ProducerError(message) from error
        return True

    def _fail(self, failure: Failure) -> None:
        with self._lock:
            self._failed += 1
            if len(self._failures) < KEPT_FAILURES:
                self._failures.append(failure)
        if self._on_error is not None:
            try:
                self._on_error(failure)
            except Exception:
                log.exception("on_error failed for %s", failure.event_id)

    def _poll(self) -> None:
        while not self._closed:
            try:
                serve(self._kafka.poll, POLL_S)
            except KafkaException as error:
                self._break(error)  # and polled on: each event that waits is told its end

    def _break(self, error: KafkaException) -> None:
        self._broken = words(error.args[0])
        log.critical("the producer is broken for good: %s", self._broken)

    def _stop(self) -> None:
        if self._poller is not threading.current_thread():
            self._poller.join(POLL_S * 50)
        self._kafka.purge()

    def _end(self) -> None:
        """At exit nobody is there to catch: what was lost is told in the log."""
        try:
            self.close()
        except NotDeliveredError as error:
            log.critical("at the end: %s", error)


class AsyncProducer:
    """The same for asyncio: `send` returns once the broker has the event. Belongs to the loop that it is used on.

    Several sends run side by side (`asyncio.gather`), in the order in which they were started.
    """

    def __init__(self, bootstrap: str, *, keys: KeyStore | None, **options: Any) -> None:
        self._producer = Producer(bootstrap, keys=keys, **options)
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        trace: TracebackType | None) -> None:  # fmt: skip
        await asyncio.to_thread(self._producer.__exit__, kind, value, trace)

    async def send(self, event: RawEvent | Mapping[str, Any]) -> Delivered:
        """Raises BadRecordError for what is no event, NotDeliveredError when the broker did not take it."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[tuple[Failure | None, int, int]] = loop.create_future()

        def done(failure: Failure | None, partition: int, offset: int) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, answered, (failure, partition, offset))

        name, record = self._producer.encode(event)
        async with self._turn:  # who waits for room keeps the place in the order
            if not self._producer.hand_over(name, record, done):
                await asyncio.to_thread(self._producer.hand_over_in_time, name, record, done)
        failure, partition, offset = await answered
        if failure is not None:
            raise NotDeliveredError((failure,), 1)
        return Delivered(name, record.topic, partition, offset)

    async def close(self) -> None:
        """Flush and end. Raises NotDeliveredError."""
        await asyncio.to_thread(self._producer.close)


def _settle(future: asyncio.Future[tuple[Failure | None, int, int]], answer: tuple[Failure | None, int, int]) -> None:
    if not future.done():
        future.set_result(answer)


def _exit_on_sigterm() -> None:
    """A SIGTERM that nobody handles ends Python without its exit functions, and what waits would be lost (C21)."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
