"""Foreign producers: channel.raw to channel.events through intake, acknowledged after the broker has the event.

Stateless, in a group of its own: a repeat after a crash has the same event id, and is dropped downstream.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from memory.key_file import open_key_store
from memory.sealing import KeyStore
from schemas.errors import BadRecordError
from schemas.partition import system_conversation
from schemas.topics import RAW_TOPIC, TOPICS
from streams.clock import SystemClock
from streams.foreign import of_record
from streams.intake import TOPIC as EVENTS
from streams.intake import channel_event_record, intake
from streams.metrics import Metrics, MetricsPort
from streams.reader import to_record
from streams.runtime.client import consumer_config, headers_of, producer_config, serve, words
from streams.runtime.crashpoints import crash
from streams.runtime.deadletters import letter_of
from streams.runtime.ports import Clock, Fact, Outgoing
from streams.runtime.wire import fact_record
from streams.settings import Settings
from streams.topics import TopicsError, require_partitions

log = logging.getLogger("interlock.intake")

BATCH = 200  # records between two commits of the group's offsets, at most
IDLE_S = 0.5
FLUSH_S = 60.0  # a broker that is away longer ends the app; its records are read again
DEAD_TOPIC = f"{RAW_TOPIC}.dlq"


class IntakeStoppedError(Exception):
    """The broker did not take what was sent: nothing was acknowledged, the app ends and is started again."""


def event_of(record: Message, keys: KeyStore, partitions: int, clock: Clock) -> Outgoing:
    """The channel.events record of a raw one. Raises BadRecordError."""
    value = record.value()
    if value is None:
        reason = "no value where the topic asks for one"
        raise BadRecordError(reason, code="empty", topic=RAW_TOPIC)
    raw, trace = of_record(value, headers_of(record))
    event = intake(raw, keys)
    made = channel_event_record(event, partitions, clock.now_ms(), trace)
    size, limit = len(made.value or b""), TOPICS[made.topic].max_bytes
    if size > limit:  # the broker would refuse it for ever: the clear body is sealed beside the masked one
        reason = f"{size} bytes once it is masked and sealed; {made.topic} takes at most {limit}"
        raise BadRecordError(reason, code="too_large", topic=RAW_TOPIC)
    return made


def dead_letter_of(record: Message, error: BadRecordError, keys: KeyStore, clock: Clock) -> Outgoing:
    """The dead letter of a raw record: its exact bytes, sealed under the topic's key (promise 10)."""
    read = to_record(record)
    letter_id = f"{RAW_TOPIC}-{read.partition}-{read.offset}"
    fact = Fact(DEAD_TOPIC, system_conversation(read.partition), letter_id, letter_of(keys, read, error))
    return fact_record(fact, read.partition, clock.now_ms())


class IntakeApp:
    """Reads, masks, seals, writes; one thread, and the order of each sender is kept."""

    def __init__(self, settings: Settings, keys: KeyStore, metrics: MetricsPort, clock: Clock | None = None) -> None:
        self._settings = settings
        self._keys = keys
        self._metrics = metrics
        self._clock = clock or SystemClock()
        self._stop = threading.Event()
        self._failures: list[KafkaError] = []
        self._producer = Producer(producer_config(settings, message_timeout_ms=0, linger_ms=0))
        self._consumer = Consumer(consumer_config(
            settings, f"{settings.group}-intake", enable_partition_eof=False,
            session_timeout_ms=settings.session_timeout_ms, heartbeat_interval_ms=settings.heartbeat_ms,
            # others read on while one joins: this app is stateless, so partitions may move one by one
            partition_assignment_strategy="cooperative-sticky"))  # fmt: skip

    def stop(self) -> None:
        """Ask for a clean end, from any thread."""
        self._stop.set()

    def run(self) -> None:
        """Until `stop`. Raises IntakeStoppedError, or KafkaException when the broker refuses us."""
        self._consumer.subscribe([RAW_TOPIC])
        try:
            while not self._stop.is_set():
                self._round(self._consumer.consume(BATCH, IDLE_S))
        finally:
            self._consumer.close()

    def _round(self, records: Sequence[Message]) -> None:
        good = [record for record in records if not _broken(record)]
        if not good:
            return
        for record in good:
            self._send(self._outgoing(record))
        self._flush()
        crash("intake_app.sent")
        try:
            # the broker has them all: only now may the group's offset pass them
            self._consumer.commit(offsets=_next(good), asynchronous=False)
        except KafkaException as error:  # the partition moved on: its next reader does these again, with the same ids
            log.warning("offsets of %s not committed: %s", RAW_TOPIC, words(error.args[0]))

    def _outgoing(self, record: Message) -> Outgoing:
        try:
            return event_of(record, self._keys, self._settings.partitions, self._clock)
        except BadRecordError as error:
            log.warning("%s [%d] offset %d is a dead letter: %s", RAW_TOPIC, record.partition(), record.offset(), error)
            self._metrics.count("interlock_dead_letters_total", topic=RAW_TOPIC, code=error.code)
            return dead_letter_of(record, error, self._keys, self._clock)

    def _send(self, record: Outgoing) -> None:
        while True:
            try:
                self._producer.produce(record.topic, partition=record.partition, key=record.key, value=record.value,
                                       headers=list(record.headers), on_delivery=self._delivered)  # fmt: skip
            except BufferError:
                serve(self._producer.poll, 0.05)
            else:
                return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)

    def _flush(self) -> None:
        until = time.monotonic() + FLUSH_S
        while len(self._producer) and time.monotonic() < until:
            serve(self._producer.flush, 0.5)
        if len(self._producer) or self._failures:
            reason = words(self._failures[0]) if self._failures else f"no answer for {FLUSH_S:.0f} s"
            message = f"the broker did not take events from {RAW_TOPIC}: {reason}"
            raise IntakeStoppedError(message)


def _broken(record: Message) -> bool:
    """Whether it is an event of the client, not a record. Raises KafkaException for one that can't pass."""
    error = record.error()
    if error is None:
        return False
    if error.fatal() or error.code() in _HOPELESS:
        raise KafkaException(error)
    log.warning("%s: %s", RAW_TOPIC, words(error))
    return True


_HOPELESS = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
             KafkaError.UNKNOWN_TOPIC_OR_PART)  # fmt: skip


def _next(records: Iterable[Message]) -> list[TopicPartition]:
    """For each partition the offset behind its last record."""
    ends = {record.partition() or 0: (record.offset() or 0) + 1 for record in records}
    return [TopicPartition(RAW_TOPIC, partition, offset) for partition, offset in ends.items()]


def run_intake(settings: Settings) -> int:
    """`interlock intake`: until SIGTERM or Ctrl-C; the exit status."""
    try:
        require_partitions(settings)
    except TopicsError as error:
        log.critical("%s", error)
        return 1
    metrics = Metrics()
    keys = open_key_store(settings.data_dir, settings.master_key_file)
    app = IntakeApp(settings, keys, metrics)
    log.info("intake takes %s to %s", RAW_TOPIC, EVENTS)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: app.stop())
    try:
        app.run()
    except (IntakeStoppedError, KafkaException) as error:
        log.critical("intake ends: %s", error)
        return 1
    finally:
        keys.close()
    return 0
