"""A pipeline on a real broker for tests: fresh topics, producers, readers, and workers in this process or another."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from memory.sealing import MemoryKeyStore
from schemas.base import Model
from schemas.partition import place
from schemas.topics import INPUT_TOPICS
from streams.clock import SystemClock, fresh_id
from streams.metrics import RecordedMetrics
from streams.runtime.client import headers_of
from streams.runtime.hosting import KafkaHost
from streams.runtime.ownership import Host
from streams.runtime.ports import EffectHandler, Fact, Record
from streams.runtime.snapshotting import LocalSnapshots
from streams.runtime.table import Row
from streams.runtime.wire import fact_record
from streams.settings import Settings
from streams.worker import Worker
from tests.streams.runtime.support import event, rows

RESETS = 3  # tries to get empty topics
MARKERS_S = 3.0  # a commit's markers are there by then

PARTITIONS = 4
LIMITS = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": "8388608"}


class Rig:
    """One broker, one set of topics, one group name."""

    def __init__(self, bootstrap: str, folder: Path, **values: Any) -> None:
        self.bootstrap = bootstrap
        chosen: dict[str, Any] = {"_env_file": None, "partitions": PARTITIONS, **values}
        self.settings = Settings(bootstrap_servers=bootstrap, group=fresh_id("t")[:10], data_dir=folder, **chosen)
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})

    def reset(self) -> None:
        """All topics of the pipeline, empty."""
        names = [*INPUT_TOPICS, "state.diffs", "state.updates", "plans", "channel.raw", "channel.raw.dlq",
                 "memory.writes", "memory.writes.dlq", *(f"{topic}.dlq" for topic in INPUT_TOPICS)]  # fmt: skip
        for _ in range(RESETS - 1):  # a broker under load may leave a topic that was just made without a leader
            with contextlib.suppress(TimeoutError):
                self._emptied(names)
                return
        self._emptied(names)

    def _emptied(self, names: Sequence[str]) -> None:
        """Delete and make them. Raises TimeoutError while one of their partitions has no leader that answers."""
        # a new client each time: the old one asks the leaders that its cache still names
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        there = [name for name in names if name in self.admin.list_topics(timeout=10).topics]
        for answer in self.admin.delete_topics(there).values() if there else ():
            answer.result()
        wait_until(lambda: not set(names) & self.admin.list_topics(timeout=10).topics.keys())
        wanted = [NewTopic(name, self.settings.partitions, 1, config=LIMITS) for name in names]
        for answer in self.admin.create_topics(wanted).values():
            answer.result()
        fresh = AdminClient({"bootstrap.servers": self.bootstrap})
        wait_until(lambda: self._led(fresh, names), 30)

    def _led(self, admin: AdminClient, names: Sequence[str]) -> bool:
        """Every partition has a leader that answers."""
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(name, number): latest for name in names for number in range(self.settings.partitions)}
        return all(answer.exception() is None for answer in admin.list_offsets(asked, request_timeout=10).values())

    def publish(self, topic: str, conversation: str, value: Model, record_id: str) -> None:
        """One good record."""
        partition = place(conversation, self.settings.partitions)
        record = fact_record(Fact(topic, conversation, record_id, value), partition, now_ms())
        self.raw(topic, partition, record.key, record.value, record.headers)

    def raw(self, topic: str, partition: int, key: bytes | None, value: bytes | None,
            headers: Sequence[tuple[str, bytes | None]] = ()) -> None:  # fmt: skip
        """One record of any bytes."""
        self.producer.produce(topic, partition=partition, key=key, value=value, headers=list(headers))

    def say(self, number: int, text: str = "hello", sender: str = "u1") -> None:
        """A customer's message."""
        message = event(number, sender, text)
        self.publish("channel.events", message.conversation, message, message.event_id)

    def sender_on(self, partition: int) -> str:
        """A sender whose conversation lives on the partition."""
        return next(name for name in map("u{}".format, range(10_000))
                    if place(f"demo/web/{name}", self.settings.partitions) == partition)  # fmt: skip

    def records(self, topic: str) -> list[Record]:
        """All committed records of the topic, partition by partition."""
        self.producer.flush(30)
        reader = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test-reader", "enable.partition.eof": True,
                           "isolation.level": "read_committed", "enable.auto.commit": False,
                           "fetch.wait.max.ms": 10})  # fmt: skip
        try:
            found = list(_all(reader, topic, self._ends(topic)))
        finally:
            reader.close()
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def _ends(self, topic: str) -> dict[int, int]:
        """Where each partition ends, committed or not."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # published without its type
        places = {TopicPartition(topic, number): latest for number in range(self.settings.partitions)}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})  # must live until it has answered
        return {place.partition: done.result(30).offset for place, done in admin.list_offsets(places).items()}

    def diffs(self) -> list[dict[str, Any]]:
        """The register, partition by partition in offset order."""
        return [orjson.loads(record.value or b"null") for record in self.records("state.diffs")]

    def versions(self) -> dict[str, list[int]]:
        """The versions in the register by conversation, in the order in which they were written."""
        found: dict[str, list[int]] = {}
        for diff in self.diffs():
            found.setdefault(diff["conversation"], []).append(diff["version"])
        return found

    def whole(self) -> bool:
        """No gap and no second version (promise 3)."""
        return all(list(range(1, len(found) + 1)) == found for found in self.versions().values())

    def group_offsets(self) -> dict[tuple[str, int], int]:
        """What the group has committed."""
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.settings.group)])
        found = asked[self.settings.group].result().topic_partitions
        return {(place_.topic, place_.partition): place_.offset for place_ in found}

    @contextlib.asynccontextmanager
    async def worker(self, handlers: Mapping[str, EffectHandler] | None = None, table: Sequence[Row] | None = None,
                     *, opened: bool = True, snapshots: LocalSnapshots | None = None, host: Host | None = None,
                     **values: Any) -> AsyncIterator[Node]:  # fmt: skip
        """A worker in this process; stopped cleanly at the end unless it ended before."""
        node = Node(self.settings.model_copy(update=values), rows() if table is None else table, handlers or {},
                    snapshots, host)  # fmt: skip
        try:
            if opened:
                await node.until(lambda: bool(node.numbers))
            yield node
        finally:
            await node.stop()

    def process(self, **environment: str) -> subprocess.Popen[bytes]:
        """A worker in a process of its own, with the test table."""
        names = {"INTERLOCK_BOOTSTRAP_SERVERS": self.bootstrap, "INTERLOCK_GROUP": self.settings.group,
                 "INTERLOCK_PARTITIONS": str(self.settings.partitions),
                 "INTERLOCK_DATA_DIR": str(self.settings.data_dir),
                 "PYTHONPATH": str(Path(__file__).parents[3])}  # fmt: skip
        return subprocess.Popen([sys.executable, "-m", "tests.streams.runtime.kafka_worker"],
                                env={**os.environ, **names, **environment})  # fmt: skip


class Node:
    """A worker on this event loop."""

    def __init__(self, settings: Settings, table: Sequence[Row], handlers: Mapping[str, EffectHandler],
                 snapshots: LocalSnapshots | None = None, host: Host | None = None) -> None:  # fmt: skip
        self.metrics = RecordedMetrics()
        self.worker = Worker(settings, lambda made: host or KafkaHost(
            settings, table, made.sender, made.offsets, MemoryKeyStore(), handlers, self.metrics, snapshots),
            metrics=self.metrics)  # fmt: skip
        self.task = asyncio.create_task(self.worker.run())

    @property
    def numbers(self) -> set[int]:
        """The partitions that are open here."""
        return set(self.worker.owner.running)

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait for it. Raises TimeoutError, or what ended the worker."""
        until = time.monotonic() + seconds
        while not condition():
            if self.task.done():
                message = f"the worker ended: {self.worker.failure!r}"
                raise RuntimeError(message)
            if time.monotonic() > until:
                raise TimeoutError
            await asyncio.sleep(0.02)

    async def handled(self, topic: str, count: int, seconds: float = 60.0) -> None:
        """Wait until so many records of a topic, all partitions together, are handled here."""
        await self.until(lambda: sum(offset for place_, offset in self.worker.owner.handled().items()
                                     if place_[0] == topic) >= count, seconds)  # fmt: skip

    async def stop(self) -> int:
        """End it; its exit status."""
        self.worker.stop()
        return await self.task


async def rejoined(node: Node) -> None:
    """All partitions of a lone worker are lost and regained."""
    before = node.worker.owner.epoch
    node.worker.owner.group.rejoin()
    await node.until(lambda: node.worker.owner.epoch > before and len(node.numbers) == PARTITIONS)


def _all(reader: Consumer, topic: str, ends: Mapping[int, int]) -> Iterator[Record]:
    """To the ends, commit markers included: a commit that was answered is visible only when its marker is there."""
    reader.assign([TopicPartition(topic, number, 0) for number in ends])
    settled, until = time.monotonic() + MARKERS_S, time.monotonic() + 30
    reached: dict[int, int] = {}
    while time.monotonic() < until:
        for item in reader.consume(1_000, 0.2):
            error = item.error()
            if error is None:
                yield Record(topic, item.partition() or 0, item.offset() or 0, item.timestamp()[1], item.key(),
                             item.value(), headers_of(item))  # fmt: skip
            elif error.code() == KafkaError._PARTITION_EOF:
                reached[item.partition() or 0] = item.offset() or 0
        late = time.monotonic() > settled  # an open transaction hides what follows it until it ends
        if all(number in reached and (late or reached[number] >= end) for number, end in ends.items()):
            return
    raise TimeoutError


def now_ms() -> int:
    """Wall time, for headers."""
    return SystemClock().now_ms()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait in a thread that may block. Raises TimeoutError."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.05)
