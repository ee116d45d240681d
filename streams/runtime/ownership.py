"""What the owner of partitions needs of others: a partition, the consumer group, and how partitions are made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from streams.runtime.ports import CommitPort, Record, Recovered

TopicPartition = tuple[str, int]


class Runtime(Protocol):
    """One partition as the owner sees it (`streams.runtime.partition.PartitionRuntime`)."""

    failed: asyncio.Future[BaseException]

    @property
    def in_flight(self) -> int:
        """Inputs offered and not handled."""
        ...

    @property
    def open_states(self) -> int:
        """Conversations in memory."""
        ...

    @property
    def paused(self) -> frozenset[str]:
        """Topics over the dead-letter limit."""
        ...

    @property
    def skew_ms(self) -> int:
        """Local clock minus the broker's."""
        ...

    @property
    def snapshot_at(self) -> int | None:
        """UTC milliseconds of the newest snapshot made here."""
        ...

    def start(self, recovered: Recovered) -> None:
        """Take over what was recovered."""
        ...

    def offer(self, record: Record) -> None:
        """One input, in offset order for each topic."""
        ...

    def progress(self, topic: str, position: int) -> None:
        """No more records below `position`."""
        ...

    def handled(self) -> Mapping[str, int]:
        """By topic, the offset below which all is handled."""
        ...

    async def close(self, grace_s: float) -> None:
        """Stop; commits handed over get `grace_s`."""
        ...


class Group(Protocol):
    """The consumer group as the owner sees it."""

    def assignment(self) -> frozenset[TopicPartition]:
        """What is assigned now."""
        ...

    # asked before each fence: a worker that was frozen learns here that it is no owner any more
    async def beat(self) -> float | None:
        """Monotonic time at which the coordinator was asked and said that we are a member; None: we are not."""
        ...

    def hold(self, places: Iterable[TopicPartition]) -> None:
        """Read no more of these."""
        ...

    def release(self, places: Iterable[TopicPartition]) -> None:
        """Read these again."""
        ...

    def rejoin(self) -> None:
        """Ask for a new assignment."""
        ...

    async def ends(self) -> Mapping[TopicPartition, int]:
        """The end offsets that the last fetches saw."""
        ...


class Host(Protocol):
    """How a partition is rebuilt and made; all that differs between the product and a test."""

    def recover(self, partition: int, cancelled: Callable[[], bool]) -> Recovered:
        """Blocks; called on a thread, after the fence."""
        ...

    def runtime(self, partition: int, commit: CommitPort) -> Runtime:
        """A new partition; nothing of an earlier one is in it."""
        ...
