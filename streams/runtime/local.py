"""The in-memory twins of log, commit, sender and offsets, and a whole pipeline on them.

Chat, scenarios and tests run it on a virtual clock (`streams.runtime.virtual`); the runtime and the steps
are the ones that run on Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from memory.bus import apply, empty
from memory.sealing import KeyStore
from schemas.base import Model
from schemas.partition import place
from schemas.topics import INPUT_TOPICS
from streams.metrics import MetricsPort, RecordedMetrics
from streams.runtime import wire
from streams.runtime.judge import Ports
from streams.runtime.opening import opener
from streams.runtime.partition import PartitionRuntime
from streams.runtime.ports import Clock, EffectHandler, Fact, Outgoing, PartitionLostError, Record, Recovered
from streams.runtime.table import Row
from streams.settings import Settings

SETTLE_MS = 120_000  # virtual time that settling may take at most


class LocalLog:
    """Topics as lists; append time is the clock's plus `skew_ms`. Calls `on_append` for each record."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parts: dict[tuple[str, int], list[Record]] = {}
        self.on_append: Callable[[Record], None] = lambda _: None
        self.skew_ms = 0

    def append(self, outgoing: Outgoing) -> Record:
        """The record at the end of its topic partition."""
        part = self._parts.setdefault((outgoing.topic, outgoing.partition), [])
        time = self._clock.now_ms() + self.skew_ms
        record = Record(outgoing.topic, outgoing.partition, len(part), time, outgoing.key, outgoing.value,
                        outgoing.headers)  # fmt: skip
        part.append(record)
        self.on_append(record)
        return record

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """The topic's records, partition by partition, each in offset order."""
        return [record for (name, number), part in sorted(self._parts.items()) for record in part
                if name == topic and partition in (None, number)]  # fmt: skip

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next record gets."""
        return len(self._parts.get((topic, partition), ()))

    def topics(self) -> list[str]:
        """The topics that have records."""
        return sorted({name for name, _ in self._parts})


class LocalCommit:
    """The commit port on a LocalLog: all or nothing. `lose_next` makes the next outcome unknown (written, not told)."""

    def __init__(self, log: LocalLog) -> None:
        self._log = log
        self.lose_next = False

    async def commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        """See CommitPort."""
        # as on Kafka: nothing is committed in the turn in which it is asked for
        await asyncio.sleep(0)
        placed = [self._log.append(outgoing) for outgoing in batch]
        if self.lose_next:
            self.lose_next = False
            message = "outcome of the commit unknown"
            raise PartitionLostError(message)
        return [(record.offset, record.time) for record in placed]


class LocalSend:
    """The send port on a LocalLog."""

    def __init__(self, log: LocalLog) -> None:
        self._log = log

    def send(self, record: Outgoing) -> Awaitable[int]:
        """See SendPort."""
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(self._log.append(record).offset)
        return done


class LocalOffsets:
    """The offsets port on a LocalLog."""

    def __init__(self, log: LocalLog) -> None:
        self._log = log

    async def ends(self, partition: int) -> Mapping[str, int]:
        """See OffsetsPort."""
        return {topic: self._log.end(topic, partition) for topic in INPUT_TOPICS}


def recover_local(log: LocalLog, partition: int) -> Recovered:
    """A partition's states from its committed diffs alone."""
    states: dict[str, dict[str, Any]] = {}
    recovered = Recovered()
    diffs = [(record.offset, orjson.loads(record.value or b"")) for record in log.records(wire.DIFFS, partition)]
    for offset, diff in diffs:
        conversation = diff["conversation"]
        states[conversation] = apply(states.get(conversation) or empty(conversation), diff)
        recovered.diff_offset, recovered.unsent = offset, max(recovered.unsent, diff["unsent"])
        for topic, below in diff["handled"].items():
            recovered.handled[topic] = max(below, recovered.handled.get(topic, 0))
    recovered.states = {conversation: orjson.dumps(state) for conversation, state in states.items()}
    recovered.resend = [entry for entry in diffs if entry[0] >= recovered.unsent]
    return recovered


class LocalInterlock:
    """A whole pipeline in memory: every partition owned by this process."""

    def __init__(self, settings: Settings, rows: Sequence[Row], handlers: Mapping[str, EffectHandler], keys: KeyStore,
                 clock: Clock, metrics: MetricsPort | None = None) -> None:  # fmt: skip
        self._settings = settings
        self._rows = rows
        self._clock = clock
        self.log = LocalLog(clock)
        self.log.on_append = self._appended
        self.commit = LocalCommit(self.log)
        self.metrics = metrics or RecordedMetrics()
        self.ports = Ports(commit=self.commit, send=LocalSend(self.log), offsets=LocalOffsets(self.log), clock=clock,
                           keys=keys, effects=handlers, metrics=self.metrics, open_seal=opener(keys))  # fmt: skip
        self._partitions: dict[int, PartitionRuntime] = {}

    def partition_of(self, conversation: str) -> int:
        """The conversation's partition; `~3` is partition 3."""
        return place(conversation, self._settings.partitions)

    async def publish(self, topic: str, conversation: str, model: Model, record_id: str) -> Record:
        """Append a fact or a channel's event, as a producer does."""
        fact = Fact(topic, conversation, record_id, model)
        return self.log.append(wire.fact_record(fact, self.partition_of(conversation), self._clock.now_ms()))

    def _appended(self, record: Record) -> None:
        if record.topic in INPUT_TOPICS:
            self._owner(record.partition).offer(record)

    def _owner(self, partition: int) -> PartitionRuntime:
        runtime = self._partitions.get(partition)
        if runtime is None:
            runtime = self._partitions[partition] = PartitionRuntime(partition, self._rows, self.ports, self._settings)
            runtime.start(recover_local(self.log, partition))
            # offered from the start: what was handled lies below its watermark and is refused
            for topic in INPUT_TOPICS:
                for record in self.log.records(topic, partition):
                    runtime.offer(record)
        return runtime

    async def settle(self) -> None:
        """Until nothing is queued or running; sleeping effects are waited for.

        Raises TimeoutError after two minutes, and whatever closed a partition.
        """
        # three quiet looks in a row: a task that was only just woken shows in the next turn
        quiet = 0
        async with asyncio.timeout(SETTLE_MS / 1000):
            while quiet < 3:
                await asyncio.sleep(0.001 if quiet == 0 else 0)
                quiet = quiet + 1 if all(runtime.idle for runtime in self._partitions.values()) else 0
                self._raise_failures()

    async def advance(self, ms: int) -> None:
        """Let virtual time pass, with all the deadlines in it, and settle."""
        await asyncio.sleep(ms / 1000)
        await self.settle()

    def skip_to_end(self, topic: str, conversation: str, position: int) -> None:
        """The reader finds no record below `position`: transaction markers, or compacted ones."""
        self._owner(self.partition_of(conversation)).progress(topic, position)

    def _raise_failures(self) -> None:
        for runtime in self._partitions.values():
            if runtime.failed.done():
                raise runtime.failed.result()

    def state(self, conversation: str) -> Mapping[str, Any] | None:
        """The committed state."""
        runtime = self._partitions.get(self.partition_of(conversation))
        return None if runtime is None else runtime.read(conversation)

    def diffs(self, conversation: str) -> Iterator[dict[str, Any]]:
        """The conversation's diffs, in order."""
        for record in self.log.records(wire.DIFFS, self.partition_of(conversation)):
            diff = orjson.loads(record.value or b"")
            if diff["conversation"] == conversation:
                yield diff

    async def restart(self) -> None:
        """Every partition is lost and taken over again, from the log alone."""
        partitions, self._partitions = self._partitions, {}
        for runtime in partitions.values():
            await runtime.close(2.0)
        for partition in partitions:
            self._owner(partition)

    async def close(self) -> None:
        """Stop every task."""
        for runtime in self._partitions.values():
            await runtime.close(2.0)
