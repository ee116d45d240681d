"""`python -m tests.chaos.run` kills, freezes and replaces workers while customers are served; 1 on any violation."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.chaos import evidence, special
from tests.chaos.kills import random_kills
from tests.chaos.phases import MissedError, Phase, Run, die_after_snapshot, die_at, die_joining, with_world
from tests.chaos.report import Report, line, measures
from tests.chaos.stand import Stand, StandError, now_ms, stand

# point, and which hit of it kills: late enough that all customers are under way, and that the windows of the phase
# before, which close when a worker opens, do not reach it
POINTS: tuple[tuple[str, int], ...] = (
    ("commit.before", 20), ("transaction.begun", 20), ("transaction.produced", 20), ("transaction.committed", 20),
    ("commit.after", 20), ("visible.after", 20), ("emit.before", 60), ("emit.after", 61),
    ("send.acknowledged", 20), ("effect.tool.before", 3), ("effect.tool.after", 4), ("effect.send.before", 5),
    ("effect.send.after", 5),
)  # fmt: skip


def phases() -> dict[str, Phase]:
    """All phases by name, in the order in which they run."""
    made: dict[str, Phase] = {}
    for number, (point, hits) in enumerate(POINTS):
        made[point] = partial(die_at, point=point, hits=hits, fresh=number % 3 == 0)
    # a session's window ends at the latest 21 s after its first message: customers who think are there then
    made["timer.before"] = partial(die_at, point="timer.before", hits=2, fresh=False, pause_ms=24_000)
    # the group is told every few seconds: customers in a hurry are done before the third time
    made["group.after"] = partial(die_at, point="group.after", hits=3, fresh=False, pause_ms=12_000)
    made["snapshot.unsent"] = die_after_snapshot
    for group in (("fence.before", "fence.after", "recover.diffs"), ("recover.done", "seek.before", "seek.after")):
        made[group[0]] = partial(die_joining, points=group)
    return {**made, **special.PHASES}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 on any violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0, help="kills at random moments after the named points")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments; 0: from the clock, printed")
    parser.add_argument("--only", default="", help="names of phases, split by commas; none: only kills")
    parser.add_argument("--keep", type=Path, default=None, help="keep logs and broker data in this folder")
    chosen = parser.parse_args(arguments)
    seed = chosen.seed or now_ms() % 1_000_000
    unknown = set(filter(None, chosen.only.split(","))) - phases().keys() - {"none"}
    if unknown:
        parser.error(f"no such phase: {', '.join(sorted(unknown))}; there are {', '.join(phases())}")
    wanted = {name: phase for name, phase in phases().items() if not chosen.only or name in chosen.only.split(",")}
    if not wanted and not chosen.kills:
        parser.error("neither a phase nor a kill is asked for: a run of nothing would pass")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends with us
    with stand(chosen.keep) as made:
        logging.basicConfig(filename=made.folder / "customers.log", level=logging.INFO, force=True)
        reports = asyncio.run(with_world(made, say, lambda run: everything(run, wanted, chosen.kills, seed)))
        reports.append(final(made))
    for measure in measures(reports):
        say(measure)
    for report in reports:
        if report.faults or report.violations:  # at the end, where it is seen
            say(f"{'excused' if report.passed else 'FAILED'}: {line(report)}")
    return 0 if all(report.passed for report in reports) else 1


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


async def everything(run: Run, wanted: Mapping[str, Phase], kills: int, seed: int) -> None:
    """All phases, then the random kills."""
    for name, phase in wanted.items():
        await one(run, name, phase)
        await run.settled(leave=2)
    await run.settled()
    for report in [*run.reports]:
        if report.slipped:
            await once_more(run, report, wanted)
    if kills:
        say(f"{kills} kills at random moments, seed {seed}")
        await random_kills(run, kills, seed)


async def once_more(run: Run, report: Report, wanted: Mapping[str, Phase]) -> None:
    """A phase that slipped runs again by itself; when that passes, the first is excused. Both are told."""
    name = next((name for name in wanted if title_of(name) == report.name.removesuffix("-again")), None)
    if name is None:
        return
    again = Report(f"{title_of(name)}-repeated")
    try:
        with run.unhurried():
            await attempt(run, again, wanted[name])
    except MissedError as missed:
        run.give_up(again, str(missed))
    await run.settled()
    report.excused = again.passed


def title_of(name: str) -> str:
    """A phase's name as its customers' shop is called."""
    return name.replace(".", "-").replace("_", "-")


async def one(run: Run, name: str, phase: Phase) -> None:
    """One phase; when the stand breaks, that is the phase's failure. One that did not come about is tried once more."""
    title = title_of(name)
    try:
        await attempt(run, Report(title), phase)
    except MissedError as error:
        run.call_off(title, str(error))
        again = Report(f"{title}-again")
        try:
            with run.unhurried():
                await attempt(run, again, phase)
        except MissedError as missed:
            run.give_up(again, str(missed))


async def attempt(run: Run, report: Report, phase: Phase) -> None:
    """Raises MissedError when the death missed the customers; any other failure is the report's."""
    began = time.monotonic()
    try:
        await phase(run, report)
        report.seconds = time.monotonic() - began
    except MissedError:
        raise
    except StandError as error:
        run.give_up(report, str(error))
    except Exception as error:  # noqa: BLE001 (whatever it is, the other phases still say something)
        run.give_up(report, "".join(traceback.format_exception(error)))


def final(made: Stand) -> Report:
    """All records since the beginning, and what a fresh owner would start from."""
    report = Report("everything")
    began = time.monotonic()
    report.violations += evidence.examine_all(made.settings)
    for worker in made.workers:
        worker.kill()
    report.violations += evidence.rebuilt_all(made.settings)
    report.seconds = time.monotonic() - began
    say("\n".join([f"{report.name}: {'pass' if report.passed else 'FAIL'} in {report.seconds:.1f} s",
                   *(str(one) for one in report.violations[:50])]))  # fmt: skip
    return report


if __name__ == "__main__":
    sys.exit(main())
