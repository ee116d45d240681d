"""Kills at random moments under steady load: customers come and go, two workers take turns in dying."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams.runtime.wire import DIFFS
from streams.scenario.format import Scenario
from streams.scenario.player import Played, play
from tests.chaos import evidence
from tests.chaos.customers import stock, wave
from tests.chaos.phases import GOES_ON_S, Load, Run
from tests.chaos.report import Report
from tests.chaos.stand import PARTITIONS, Process

CUSTOMERS = 6  # at a time
THINK_MS = 500
ROUND = 20  # kills between two checks of everything that the round's customers left
BETWEEN_S = (5.0, 9.0)  # the session timeout lies in it: some die while the last death is still being repaired


@dataclass
class Death:
    """A worker that was killed: when, and with which partitions open."""

    at_ms: int
    owned: frozenset[int]


@dataclass
class Round:
    """Customers and deaths between two checks."""

    name: str
    starts: Mapping[tuple[str, int], int]
    scenarios: list[Scenario] = field(default_factory=list)
    tasks: list[asyncio.Task[Played]] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)


async def random_kills(run: Run, kills: int, seed: int) -> None:
    """Kill so often, in rounds; each round is a report."""
    chance = random.Random(seed)
    workers = [await run.survivor()]
    await run.stand.opened(workers[0])
    workers.append(run.stand.worker("second"))
    done = 0
    while done < kills:
        count = min(ROUND, kills - done)
        report = await _round(run, workers, chance, f"kills-{done + 1}-{done + count}", count)
        done += count
        run.say(f"{done} of {kills} kills: {'pass' if report.passed else 'FAIL'}")
        if report.slipped:
            again = await _round(run, workers, chance, f"{report.name}-repeated", count)
            report.excused = again.passed
    run.standing = workers[0]
    await run.stand.stop(workers[1])


async def _round(run: Run, workers: list[Process], chance: random.Random, name: str, count: int) -> Report:
    report = Report(name)
    began = time.monotonic()
    this = Round(name, await asyncio.to_thread(evidence.ends, run.stand.settings))
    coming = asyncio.create_task(_customers(run, this))
    for _ in range(count):
        await asyncio.sleep(chance.uniform(*BETWEEN_S))
        this.deaths.append(await _kill_one(run, report, workers, chance))
    await asyncio.sleep(BETWEEN_S[1])
    if coming.done():  # by an error alone: without customers all that is checked would pass
        coming.result()
    coming.cancel()
    await asyncio.to_thread(_recoveries, run, report, this)
    run.settle(report, Load(this.name, this.scenarios, this.starts, this.tasks))
    await run.settled()
    report.seconds = time.monotonic() - began
    return report


async def _kill_one(run: Run, report: Report, workers: list[Process], chance: random.Random) -> Death:
    index = chance.randrange(len(workers))
    victim = workers[index]
    victim.look()
    owned = frozenset(victim.owned)
    if not victim.alive:
        report.faults.append(f"{victim.name} ended by itself with {victim.popen.returncode}:\n{victim.tail()}")
    at = victim.kill()
    workers[index] = run.stand.worker("next")
    return Death(at, owned)


async def _customers(run: Run, this: Round) -> None:
    """As one is done the next one comes."""
    names = (f"{this.name}-{number}" for number in range(10_000))
    while True:
        while sum(not task.done() for task in this.tasks) < CUSTOMERS:
            made, orders = wave(this.name, CUSTOMERS, THINK_MS, label=next(names))
            await asyncio.to_thread(stock, run.stand.folder, orders)
            this.scenarios += made
            this.tasks += [asyncio.create_task(play(one, run.side)) for one in made]
        await asyncio.sleep(0.2)


def _recoveries(run: Run, report: Report, this: Round) -> None:
    """How long each death's partitions stood still; a death that the next one overtook is not counted."""
    wanted = {place: offset for place, offset in this.starts.items() if place[0] == DIFFS}
    written = evidence.records(run.stand.settings, wanted)
    moments = {number: [one.time for one in written if one.partition == number] for number in range(PARTITIONS)}
    for death, following in zip(this.deaths, [*this.deaths[1:], None], strict=True):
        seconds = _stood_still(death, moments)
        overtaken = following is not None and following.at_ms < death.at_ms + seconds * 1000
        if seconds and not overtaken:
            report.recovery_s.append(seconds)
            if seconds > GOES_ON_S:
                report.faults.append(f"went on {seconds:.1f} s after the death at {death.at_ms}")


def _stood_still(death: Death, moments: Mapping[int, Sequence[int]]) -> float:
    """Seconds to the first diff on any of its partitions; 0 when it had none."""
    after = [moment for number in death.owned for moment in moments[number] if moment > death.at_ms]
    return (min(after) - death.at_ms) / 1000 if after else 0.0
