"""The web channel on Kafka: its producer, the reader of human requests, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from memory.key_file import open_key_store
from streams.channels.spool import Spool
from streams.clock import SystemClock
from streams.gateway.app import DAY_MS, Gateway
from streams.gateway.board import TOPICS
from streams.gateway.outbox import Outbox
from streams.intake import TOPIC as EVENTS
from streams.java import BrokerError
from streams.reader import to_record
from streams.runtime.client import common, consumer_config
from streams.runtime.ports import Record
from streams.runtime.sender import KafkaSender
from streams.serving import serve
from streams.settings import Settings

LOOK_BACK_DAYS = 7  # an older request that nobody answered is in the log, not on the board
FLUSH_SECONDS = 5.0
METADATA_SECONDS = 15.0
RETRY_SECONDS = 0.5
APPEAR_SECONDS = 3.0  # a topic that was just made is not known to the broker's readers at once

log = logging.getLogger(__name__)


class TopicReader:
    """Reads topics from a time on, on a thread of its own, and hands each record to the event loop."""

    def __init__(
        self, settings: Settings, topics: tuple[str, ...], since_ms: int, take: Callable[[Record], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._take = take
        # no group is joined: partitions are assigned by hand, so each gateway sees all requests
        self._consumer = Consumer(consumer_config(settings, f"{settings.group}-board", enable_partition_eof=False))
        self._topics, self._since_ms = topics, since_ms
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="board", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading; returns once the consumer is closed."""
        self._stop.set()
        self._thread.join(5)

    def _assign(self) -> bool:
        """Begin at the first record after the time; False while the broker can't say where that is."""
        try:
            ends = {(topic, number): self._consumer.get_watermark_offsets(TopicPartition(topic, number), 5)[1]
                    for topic in self._topics for number in range(_partitions(self._consumer, topic))}  # fmt: skip
            found = self._consumer.offsets_for_times([TopicPartition(*part, self._since_ms) for part in ends],
                                                     timeout=METADATA_SECONDS)  # fmt: skip
        except (KafkaException, BrokerError) as error:
            log.warning("human requests can't be read yet: %s", error)
            return False
        for part in found:
            if part.offset < 0:  # nothing that late: from the end as it was before the question, to miss nothing
                part.offset = ends[part.topic, part.partition]
        self._consumer.assign(found)
        return True

    def _read(self) -> None:
        while not self._stop.is_set() and not self._assign():
            self._stop.wait(RETRY_SECONDS)
        while not self._stop.is_set():
            for message in self._consumer.consume(200, timeout=0.5):
                error = message.error()
                if error is not None:
                    log.warning("reading human requests: %s", error.str())
                    continue
                record = to_record(message)
                with contextlib.suppress(RuntimeError):  # the loop has ended: nobody looks at the board any more
                    self._loop.call_soon_threadsafe(self._take, record)
        self._consumer.close()


def _partitions(client: Consumer, topic: str) -> int:
    """How many partitions a topic has. Raises BrokerError when it is not there, also not a moment later."""
    until = time.monotonic() + APPEAR_SECONDS
    while True:
        try:
            found = client.list_topics(topic, timeout=METADATA_SECONDS).topics[topic]
        except KafkaException as error:
            message = f"the broker does not answer: {error.args[0].str()}"
            raise BrokerError(message) from error
        if found.error is None and found.partitions:
            return len(found.partitions)
        if time.monotonic() > until:
            message = f"there is no topic {topic}: run `interlock topics apply`"
            raise BrokerError(message)
        time.sleep(0.1)


def check_partitions(settings: Settings) -> None:
    """Keys are placed by the setting: a topic with another count would break the one order (promise 1)."""
    consumer = Consumer({**common(settings), "group.id": f"{settings.group}-check"})
    try:
        count = _partitions(consumer, EVENTS)
    finally:
        consumer.close()
    if count != settings.partitions:
        message = f"{EVENTS} has {count} partitions, INTERLOCK_PARTITIONS says {settings.partitions}: make them equal"
        raise BrokerError(message)


async def run_gateway(settings: Settings, listener: socket.socket, stop: asyncio.Event | None = None) -> None:
    """Serve until a signal. What was answered with 202 is with the broker or in the outbox before this returns.

    Raises BrokerError when the producer broke for good, or when records are left over.
    """
    check_partitions(settings)
    stop, fatal = stop or asyncio.Event(), list[str]()

    def broken(words: str) -> None:
        fatal.append(words)
        stop.set()

    clock = SystemClock()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    keys = open_key_store(settings.data_dir, settings.master_key_file)
    outbox = Outbox(settings.data_dir / "outbox.sqlite", clock.now_ms, keys)
    sender = KafkaSender(settings, broken)
    spool = Spool(settings.data_dir / "spool.sqlite")
    gateway = Gateway(settings, sender, outbox, keys, clock, spool=spool)
    reader = TopicReader(settings, TOPICS, clock.now_ms() - LOOK_BACK_DAYS * DAY_MS, gateway.board.apply)
    try:
        await serve(gateway.app(), listener, gateway.streams.close, stop)
    finally:
        left = await sender.close(FLUSH_SECONDS)
        reader.close()
        outbox.close()
        spool.close()
        keys.close()
    if fatal or left:
        message = f"the producer broke: {fatal[0]}" if fatal else f"{left} records did not reach the broker"
        raise BrokerError(message)
