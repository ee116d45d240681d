"""Who owns which partitions, and how they open and close (promise 2).

On every assignment memory is dropped, the partition fenced, rebuilt and started, and only then its inputs
open; on revoke intake closes, what runs is cancelled, and commits already handed over get a bounded wait.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from memory.bus import VersionConflictError
from streams import loops
from streams.metrics import MetricsPort
from streams.runtime.client import words
from streams.runtime.commit import KafkaCommitter
from streams.runtime.crashpoints import crash
from streams.runtime.ownership import Group, Host, Runtime, TopicPartition
from streams.runtime.ports import PartitionLostError, Record, Recovered
from streams.runtime.recovery import GapError
from streams.settings import Settings

log = logging.getLogger("interlock.owner")

FRESH_S = 2.0  # the group's yes to "am I a member?" is good for so long
FENCE_S = 20.0  # fencing may wait for the broker to end the last owner's transaction
OPENING = 4  # partitions that recover at the same time
LOSSES_S = 60.0  # losses within this slow the next rejoin down
SLOWEST_S = 30.0


class RefusedError(Exception):
    """This worker must not run: it was given some but not all input topics of a partition."""


@dataclass(slots=True, eq=False)
class Part:
    """An open partition: its runtime, its committer, and records read while it was full."""

    number: int
    runtime: Runtime
    committer: KafkaCommitter
    start: Mapping[str, int]
    waiting: deque[Record] = field(default_factory=deque)
    held: frozenset[str] = frozenset()


class Owner:
    """The partitions of one worker. Belongs to one event loop."""

    def __init__(self, settings: Settings, topics: Iterable[str], host: Host, metrics: MetricsPort,
                 on_fatal: Callable[[BaseException], None]) -> None:  # fmt: skip
        self.settings = settings
        self.topics = tuple(topics)
        self.epoch = 0
        self.group: Group
        self._host = host
        self._metrics = metrics
        self._on_fatal = on_fatal
        self._parts: dict[int, Part] = {}
        self._full: set[int] = set()
        self._opening: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._recovering: dict[int, asyncio.Future[Recovered]] = {}
        self._losses: deque[float] = deque()
        self._ended = False

    # -- assignment -------------------------------------------------------------------------------------

    async def assigned(self) -> None:
        """Open every partition of the new assignment. Ends early when the assignment is revoked meanwhile."""
        if self._ended:
            return
        epoch = self.epoch
        try:
            numbers = self._complete(self.group.assignment())
        except RefusedError as error:
            self._on_fatal(error)
            return
        log.info("assigned partitions %s", sorted(numbers))
        self._opening = asyncio.create_task(self._open_all(numbers, epoch))
        try:
            await asyncio.wait([self._opening])
        finally:
            self._opening.cancel()
        self._metrics.gauge("interlock_partitions_owned", len(self._parts))

    async def end(self) -> Mapping[TopicPartition, int]:
        """Close all partitions for good, see `revoke`.

        The group may still hand out an assignment while the worker stops; opening it would fence its next owner.
        """
        self._ended = True
        return await self.revoke()

    async def revoke(self) -> Mapping[TopicPartition, int]:
        """Close all partitions: none of them does anything after this returns. What they handled, for the group."""
        crash("revoke.before")
        self.epoch += 1
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        parts, self._parts = list(self._parts.values()), {}
        self._full.clear()
        tasks = [asyncio.create_task(self._close(part)) for part in parts] + list(self._closing)
        if tasks:
            log.info("revoked partitions %s", sorted(part.number for part in parts))
            _, late = await asyncio.wait(tasks, timeout=self._grace_s + 1)
            for task in late:
                task.cancel()
        self._metrics.gauge("interlock_partitions_owned", 0)
        crash("revoke.after")
        return _handled(parts)

    def _complete(self, assignment: Iterable[TopicPartition]) -> set[int]:
        """Partition numbers of which all input topics are ours. Raises RefusedError for a split one."""
        given: dict[int, set[str]] = {}
        for topic, number in assignment:
            given.setdefault(number, set()).add(topic)
        for number, topics in sorted(given.items()):
            missing = set(self.topics) - topics
            if missing:
                message = (
                    f"partition {number}: {', '.join(sorted(topics))} were assigned to this worker but not"
                    f" {', '.join(sorted(missing))}. A conversation would have two owners. All workers of group"
                    f" {self.settings.group!r} must run the same version (stop all, then start all), and all"
                    f" input topics must have the same number of partitions (`interlock topics check`)"
                )
                raise RefusedError(message)
        return set(given)

    async def _open_all(self, numbers: Iterable[int], epoch: int) -> None:
        limit = asyncio.Semaphore(OPENING)

        async def one(number: int) -> None:
            async with limit:
                await self._open(number, epoch)

        with loops.uncollected():
            await asyncio.gather(*(one(number) for number in sorted(numbers)))

    async def _open(self, number: int, epoch: int) -> None:
        began = time.monotonic()
        committer = KafkaCommitter(self.settings, number, self._metrics)
        try:
            # this order is the promise: once fenced nobody writes behind us, so the end that is read is the end
            await self._fence(committer, epoch)
            recovered = await self._recover(number, epoch)
            await self._still_member(number)
            runtime = self._host.runtime(number, committer)
            runtime.start(recovered)
        except asyncio.CancelledError:
            committer.close()
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, this partition does not run, and says so)
            committer.close()
            self._failed(number, error, epoch)
            return
        part = Part(number, runtime, committer, dict(recovered.handled))
        self._parts[number] = part
        # with the epoch of this assignment: a failure that is told late must not close the next one's partition
        runtime.failed.add_done_callback(lambda failed: self._lost(part, failed, epoch))
        self._opened(part, recovered, time.monotonic() - began)

    def _opened(self, part: Part, recovered: Recovered, seconds: float) -> None:
        self._metrics.observe("interlock_recovery_seconds", seconds)
        for _, diff in recovered.resend:
            for emit in diff["emits"]:
                self._metrics.count("interlock_emits_republished_total", topic=emit["topic"])
        log.info("partition %d opens with %d conversations, %d diffs to publish again, after %.2f s",
                 part.number, len(recovered.states), len(recovered.resend), seconds)  # fmt: skip

    async def _recover(self, number: int, epoch: int) -> Recovered:
        """Rebuild on a thread; one of an earlier assignment may still be at the partition's files, and ends first."""
        earlier = self._recovering.get(number)
        if earlier is not None:
            await asyncio.wait([earlier])
        running = asyncio.ensure_future(asyncio.to_thread(self._host.recover, number, lambda: self.epoch != epoch))
        running.add_done_callback(lambda ended: self._recovered(number, ended))
        self._recovering[number] = running
        return await asyncio.shield(running)

    def _recovered(self, number: int, ended: asyncio.Future[Recovered]) -> None:
        """Let go of it: kept here, all states of the partition would stay in memory a second time, and for ever."""
        if self._recovering.get(number) is ended:
            del self._recovering[number]
        if not ended.cancelled():
            ended.exception()  # nobody may wait any more for one that ended with an error

    async def _fence(self, committer: KafkaCommitter, epoch: int) -> None:
        await committer.connect()
        until = time.monotonic() + FENCE_S
        while time.monotonic() < until:
            asked = await self.group.beat()
            if asked is None:
                await asyncio.sleep(0.2)  # the coordinator is away, or a new assignment ends this one
                continue
            if await committer.fence(_fresh(asked, lambda: self.epoch == epoch)):
                return
        message = f"{committer.name}: not fenced: the group or the broker said no"
        raise PartitionLostError(message)

    async def _still_member(self, number: int) -> None:
        """A worker that froze during recovery must not start effects again. Raises PartitionLostError."""
        if await self.group.beat() is None:
            message = f"partition {number}: no member of the group any more after recovery"
            raise PartitionLostError(message)

    async def _close(self, part: Part) -> None:
        try:
            await part.runtime.close(self._grace_s)
        finally:
            part.committer.close()

    @property
    def _grace_s(self) -> float:
        return self.settings.revoke_grace_ms / 1000

    # -- failures ---------------------------------------------------------------------------------------

    def _lost(self, part: Part, failed: asyncio.Future[BaseException], epoch: int) -> None:
        """A running partition ended by itself: close it, throw its producer away."""
        if failed.cancelled() or self._parts.get(part.number) is not part:
            return
        del self._parts[part.number]
        self._full.discard(part.number)
        # nobody would take what is read now; the next assignment sets positions from the diffs
        self.group.hold((topic, part.number) for topic in self.topics)
        task = asyncio.create_task(self._close(part))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        self._metrics.gauge("interlock_partitions_owned", len(self._parts))
        self._failed(part.number, failed.result(), epoch)

    def _failed(self, number: int, error: BaseException, epoch: int) -> None:
        """What was lost is asked for again, slower each time; what is wrong stays closed until a person looks."""
        # the assignment has ended anyway: whatever failed belongs to somebody else now
        if self.epoch != epoch:
            return
        if isinstance(error, KafkaException):
            error = PartitionLostError(words(error.args[0]))
        self._metrics.count("interlock_partition_stops_total", reason=_reason(error))
        if not isinstance(error, PartitionLostError):
            log.error("partition %d STOPPED, and stays so until the next assignment: %s: %s",
                      number, type(error).__name__, error, exc_info=error)  # fmt: skip
            return
        delay = self._delay()
        log.warning("partition %d lost: %s; asking the group to rejoin in %.1f s", number, error, delay)
        asyncio.get_running_loop().call_later(delay, self._rejoin, epoch)

    def _delay(self) -> float:
        now = time.monotonic()
        while self._losses and self._losses[0] < now - LOSSES_S:
            self._losses.popleft()
        self._losses.append(now)
        # one loss is a fence or a slow broker: a quick rejoin; many are an outage, and each rejoin closes all
        return 0.0 if len(self._losses) == 1 else min(SLOWEST_S, 0.25 * 2 ** min(len(self._losses), 10))

    def _rejoin(self, epoch: int) -> None:
        if self.epoch == epoch:
            self.group.rejoin()

    # -- records ----------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """A partition is held back until it has room."""
        return bool(self._full)

    def offer(self, record: Record) -> None:
        """Take a record; above `lanes_max` in flight its partition is read no further."""
        part = self._parts.get(record.partition)
        if part is None:
            return  # closed: the next owner reads it again
        if part.waiting or part.runtime.in_flight >= self.settings.lanes_max:
            part.waiting.append(record)
            self._full.add(part.number)
        else:
            part.runtime.offer(record)
        crash("intake.offered")

    def reached(self, positions: Mapping[TopicPartition, int]) -> None:
        """The reader stands here, and all before it was offered to `offer`."""
        for number in list(self._full):
            self._refill(self._parts[number])
        for (topic, number), position in positions.items():
            part = self._parts.get(number)
            # while records wait here, not all below the position was offered
            if part is not None and not part.waiting:
                part.runtime.progress(topic, position)
        for part in self._parts.values():
            self._hold(part)

    def _refill(self, part: Part) -> None:
        # from half on: stopping and starting the fetcher for each free place would cost more than the wait
        if part.runtime.in_flight > self.settings.lanes_max // 2:
            return
        while part.waiting and part.runtime.in_flight < self.settings.lanes_max:
            part.runtime.offer(part.waiting.popleft())
        if not part.waiting:
            self._full.discard(part.number)

    def _hold(self, part: Part) -> None:
        """Tell the reader what to read of the partition, where that changed."""
        held = frozenset(self.topics) if part.number in self._full else part.runtime.paused
        if held == part.held:
            return
        self.group.hold((topic, part.number) for topic in held - part.held)
        self.group.release((topic, part.number) for topic in part.held - held)
        part.held = held

    @property
    def running(self) -> Mapping[int, Runtime]:
        """The open partitions."""
        return {number: part.runtime for number, part in self._parts.items()}

    # -- positions --------------------------------------------------------------------------------------

    def start_positions(self) -> Mapping[TopicPartition, int]:
        """Where reading goes on, from the diffs, for the partitions that opened."""
        crash("seek.before")
        return {(topic, part.number): part.start.get(topic, 0)
                for part in self._parts.values() for topic in self.topics}  # fmt: skip

    def opened(self) -> None:
        """Positions are set: read all that is not paused."""
        crash("seek.after")
        for part in self._parts.values():
            part.held = part.runtime.paused
            self.group.release((topic, part.number) for topic in self.topics if topic not in part.held)

    def handled(self) -> Mapping[TopicPartition, int]:
        """For the group's information: strictly in offset order, from each partition's own watermark."""
        return _handled(self._parts.values())


def _handled(parts: Iterable[Part]) -> dict[TopicPartition, int]:
    return {(topic, part.number): offset for part in parts for topic, offset in part.runtime.handled().items()}


def _fresh(asked: float, ours: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: ours() and time.monotonic() - asked < FRESH_S


def _reason(error: BaseException) -> str:
    if isinstance(error, PartitionLostError):
        return "fenced" if "FENCED" in str(error) or "EPOCH" in str(error) else "commit_unknown"
    return "version_conflict" if isinstance(error, VersionConflictError | GapError) else "bug"
