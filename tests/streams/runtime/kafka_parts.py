"""Test parts that stand in for a partition and for a tool, on real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from schemas.tools import ToolResult
from schemas.topics import INPUT_TOPICS
from streams.clock import SystemClock
from streams.runtime.lanes import Watermark
from streams.runtime.ports import CommitPort, Effect, Fact, Record, Recovered


class WallTool:
    """A tool that takes real seconds; it counts its runs."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun = self.ended = self.asked = 0

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """Wait, act, tell."""
        self.begun += 1
        await asyncio.sleep(self.seconds)
        self.ended += 1
        return [self._fact(effect)]

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """A successor asks."""
        self.asked += 1
        return [self._fact(effect)]

    def _fact(self, effect: Effect) -> Fact:
        result = ToolResult(result_id=f"{effect.id}:r", call_id=effect.id, tool="slow", status="success",
                            finished_at=SystemClock().now_ms())  # fmt: skip
        return Fact("tools.results", effect.conversation, result.result_id, result)


class Hole:
    """A partition that handles every record but the first of each topic; it commits nothing."""

    def __init__(self) -> None:
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self.in_flight = self.skew_ms = self.open_states = 0
        self.snapshot_at: int | None = None
        self.paused: frozenset[str] = frozenset()
        self.done = 0
        self._marks = {topic: Watermark(0) for topic in INPUT_TOPICS}

    def start(self, recovered: Recovered) -> None:
        """Nothing to take over."""

    def offer(self, record: Record) -> None:
        """Handle it, or not."""
        self._marks[record.topic].offered(record.offset)
        if record.offset:
            self._marks[record.topic].done(record.offset)
            self.done += 1

    def progress(self, topic: str, position: int) -> None:
        """The reader went on."""
        self._marks[topic].progress(position)

    def handled(self) -> dict[str, int]:
        """The watermarks."""
        return {topic: mark.handled for topic, mark in self._marks.items()}

    async def close(self, grace_s: float) -> None:
        """Nothing runs."""


class HoleHost:
    """Makes such partitions."""

    def __init__(self) -> None:
        self.made: dict[int, Hole] = {}

    def recover(self, partition: int, cancelled: Callable[[], bool]) -> Recovered:  # noqa: ARG002 (the port)
        """Everything is new."""
        return Recovered()

    def runtime(self, partition: int, commit: CommitPort) -> Hole:  # noqa: ARG002 (the port)
        """One with a hole."""
        self.made[partition] = Hole()
        return self.made[partition]
