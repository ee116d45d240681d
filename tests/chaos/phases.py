"""Phases of a chaos run: a wave of customers, a death at a named point, and another worker that goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from streams.scenario.format import Scenario
from streams.scenario.http import HttpWorld
from streams.scenario.player import Played, play
from tests.chaos import evidence
from tests.chaos.customers import HEAR_MS, WAVE, stock, wave, world
from tests.chaos.report import Report, line
from tests.chaos.stand import PARTITIONS, Process, Stand, StandError, now_ms

GOES_ON_S = 15.0  # after a death another worker must have decided something by then
TRIES = 6
LONG_MS = 16_000  # customers who think for so long are there when one more worker has started, joined and died
HIT_S = 60.0  # a point that was not hit by then is not hit


class MissedError(StandError):
    """The death came before or after the customers: it says nothing, and the phase is tried once more."""


@dataclass
class Load:
    """A wave of customers under way, each in the shop of its phase."""

    name: str
    scenarios: list[Scenario]
    starts: Mapping[tuple[str, int], int]
    tasks: list[asyncio.Task[Played]]

    @property
    def running(self) -> int:
        """Customers who are not done."""
        return sum(not task.done() for task in self.tasks)

    def cancel(self) -> None:
        """Send them home."""
        for task in self.tasks:
            task.cancel()


class Run:
    """What all phases share: the stand, the customers' side, the worker that stands, what is still to be checked."""

    def __init__(self, stand: Stand, side: HttpWorld, say: Callable[[str], None]) -> None:
        self.stand, self.side, self.say = stand, side, say
        self.standing: Process | None = None
        self.reports: list[Report] = []
        self._longer_ms = 0
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._loads: dict[str, Load] = {}

    async def survivor(self) -> Process:
        """A worker without any plan to die, that has at least one partition."""
        if self.standing is None or not self.standing.alive:
            self.standing = self.stand.worker("standing")
            await self.stand.opened(self.standing, 1)
        return self.standing

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Meanwhile customers think longer: a death that came after them finds them there when it is tried again."""
        self._longer_ms = LONG_MS
        try:
            yield
        finally:
            self._longer_ms = 0

    async def load(self, name: str, pause_ms: int = 0, hear_ms: int = HEAR_MS) -> Load:
        """Begin a wave; all its customers write at once, and think for `pause_ms` before they confirm."""
        made, orders = wave(name, WAVE, pause_ms + self._longer_ms, hear_ms)
        starts = await asyncio.to_thread(evidence.ends, self.stand.settings)
        await asyncio.to_thread(stock, self.stand.folder, orders)
        load = Load(name, made, starts, [asyncio.create_task(play(one, self.side)) for one in made])
        self._loads[name] = load
        return load

    async def died(self, victim: Process, load: Load) -> int:
        """When the victim died at its point, in milliseconds. Raises StandError when it did not."""
        await self.stand.until(f"{victim.name}: death at its point", lambda: not victim.alive, HIT_S)
        at = now_ms()
        victim.look()
        if victim.popen.returncode != -9 or not victim.point:
            message = f"{victim.name} ended with {victim.popen.returncode}, not at its point:\n{victim.tail()}"
            raise StandError(message)
        if not load.running:
            message = f"{victim.name} died when all conversations were over"
            raise MissedError(message)
        return at

    async def goes_on(self, report: Report, load: Load, partitions: Sequence[int], died: int) -> None:
        """Wait for the first new diff on these partitions, and note how long it took; 15 s are the limit."""
        seconds = await self.decides_again(report, load, partitions, died)
        if seconds is not None:
            report.recovery_s.append(seconds)
            if seconds > GOES_ON_S:
                report.faults.append(f"went on {seconds:.1f} s after the death")

    async def decides_again(self, report: Report, load: Load, partitions: Sequence[int], since: int) -> float | None:
        """Seconds from a moment to the first new diff on these partitions; a fault when there is none at all."""
        until = time.monotonic() + 4 * GOES_ON_S
        while time.monotonic() < until:
            first = await asyncio.to_thread(evidence.first_diff, self.stand.settings, load.starts, partitions, since)
            if first is not None:
                return (first - since) / 1000
            await asyncio.sleep(0.3)
        report.faults.append(f"no new diff on {sorted(partitions)} within {4 * GOES_ON_S:.0f} s")
        return None

    async def takes_over(self, report: Report, worker: Process, died: int) -> None:
        """Wait until the worker has every partition open, and note how long after the death it had."""
        await self.stand.opened(worker)
        seconds = (now_ms() - died) / 1000
        report.recovery_s.append(seconds)
        if seconds > GOES_ON_S:
            report.faults.append(f"all partitions were open {seconds:.1f} s after the death")

    def settle(self, report: Report, load: Load) -> None:
        """Let the customers end in the background, then check all that they left."""
        self.reports.append(report)
        self._loads.pop(load.name, None)
        self._settling[load.name] = asyncio.create_task(self._settle(report, load, time.monotonic()))

    def give_up(self, report: Report, why: str) -> None:
        """The phase failed in the middle: its customers go home."""
        report.faults.append(why)
        self.reports.append(report)
        load = self._loads.pop(report.name, None)
        if load is not None:
            load.cancel()
        self.say(line(report))

    def call_off(self, name: str, why: str) -> None:
        """The phase did not come about; nothing was found wrong, and nothing was shown."""
        load = self._loads.pop(name, None)
        if load is not None:
            load.cancel()
        self.say(f"once more: {why}")

    async def settled(self, leave: int = 0) -> None:
        """Wait until at most `leave` phases are still to be checked."""
        while len(self._settling) > leave:
            name = next(iter(self._settling))
            await self._settling[name]
            del self._settling[name]

    async def _settle(self, report: Report, load: Load, began: float) -> None:
        played = await asyncio.gather(*load.tasks, return_exceptions=True)
        otherwise = 0
        for scenario, one in zip(load.scenarios, played, strict=True):
            if isinstance(one, BaseException):
                report.faults.append(f"{scenario.conversation}: {one!r}")
            else:
                told = [f"{scenario.conversation}: {fault}" for fault in one.faults]
                otherwise += bool(told)
                report.faults += [] if report.outlasts_calls else told
        if otherwise and report.outlasts_calls:
            report.note += f", {otherwise} ended with a person or were told to come again"
        found, known = await asyncio.to_thread(
            evidence.examine, self.stand.settings, load.starts, evidence.conversations_of(load.name)
        )
        report.violations += found
        report.conversations = len(known)
        report.seconds += time.monotonic() - began
        for scenario in load.scenarios:
            if scenario.conversation not in known:
                report.faults.append(f"{scenario.conversation}: not in the register at all")
        self.say(line(report))

    async def close(self) -> None:
        """End what still runs."""
        for task in self._settling.values():
            task.cancel()


Phase = Callable[[Run, Report], Awaitable[None]]


async def armed(run: Run, report: Report, point: str, *, fresh: bool, **values: str) -> Process:
    """A worker that will die at the point, with its partitions open; one that dies too early is replaced."""
    for _ in range(TRIES):
        survivor = await run.survivor()
        victim = run.stand.worker(report.name, INTERLOCK_CRASH_AT=point, **values)
        try:
            await run.stand.opened(victim, PARTITIONS // 2)
            if fresh:
                await run.stand.stop(survivor)
                await run.stand.opened(victim)
        except StandError:
            victim.look()
            if not victim.point:
                raise
        else:
            return victim
    message = f"{report.name}: died {TRIES} times before a wave began"
    raise MissedError(message)


async def die_at(
    run: Run, report: Report, point: str, hits: int, *, fresh: bool, pause_ms: int = 0, **values: str
) -> None:
    """The victim dies at the n-th hit of a point with a wave running; the survivor, or a fresh worker, goes on."""
    victim = await armed(run, report, f"{point}:{hits}", fresh=fresh, **values)
    load = await run.load(report.name, pause_ms)
    died = await run.died(victim, load)
    report.note = f"{load.running} running"
    if fresh:
        run.standing = run.stand.worker("successor")
    await run.goes_on(report, load, sorted(victim.owned), died)
    run.settle(report, load)


async def die_after_snapshot(run: Run, report: Report) -> None:
    """The victim dies with decisions in its snapshot whose emits are still in its memory; the successor starts from it.

    Only a successor that finds the dead one's own snapshot shows whether that says which emits are missing.
    """
    values = {"INTERLOCK_SNAPSHOT_DIR": str(run.stand.folder / "snapshots-unsent")}
    victim = await armed(run, report, "snapshot.unsent", fresh=True, INTERLOCK_EMIT_LINGER_MS="4000", **values)
    load = await run.load(report.name)
    died = await run.died(victim, load)
    report.note = f"{load.running} running"
    run.standing = run.stand.worker("successor", **values)
    await run.goes_on(report, load, sorted(victim.owned), died)
    run.settle(report, load)


async def die_joining(run: Run, report: Report, points: Sequence[str]) -> None:
    """Workers that join while a wave runs die one after the other while they take partitions over."""
    survivor = await run.survivor()
    await run.stand.opened(survivor)
    load = await run.load(report.name, LONG_MS * len(points))
    report.note = ", ".join(points)
    for point in points:
        victim = run.stand.worker(point, INTERLOCK_CRASH_AT=point, INTERLOCK_SNAPSHOT_DIR=str(run.stand.folder / point))
        died = await run.died(victim, load)
        await run.takes_over(report, survivor, died)
    run.settle(report, load)


async def with_world(stand: Stand, say: Callable[[str], None], work: Callable[[Run], Awaitable[None]]) -> list[Report]:
    """Run phases on a stand."""
    async with world(stand.settings) as side:
        run = Run(stand, side, say)
        try:
            await work(run)
        finally:
            await run.close()
        return run.reports
