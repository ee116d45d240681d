"""The parts of the chaos run that decide what it says: logs read, customers made, deaths timed, figures written."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import orjson
import pytest

from schemas.topics import INPUT_TOPICS
from streams.runtime.crashpoints import POINTS as KNOWN
from tests.chaos import evidence, kills, run
from tests.chaos.checks import Violation
from tests.chaos.customers import WAVE, stock, wave
from tests.chaos.kills import Death, _stood_still
from tests.chaos.phases import Run
from tests.chaos.report import Report, line, measures
from tests.chaos.stand import Process, now_ms

if TYPE_CHECKING:
    from streams.scenario.http import HttpWorld
    from tests.chaos.stand import Stand


def process(log: Path) -> Process:
    """A process that has ended, with this log."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return Process("worker-1", ended, log)


def said(message: str) -> str:
    """A worker's log line."""
    return orjson.dumps({"level": "INFO", "message": message}).decode() + "\n"


def test_a_worker_log_tells_which_partitions_are_open(tmp_path: Path) -> None:
    """Partitions open one by one, are lost one by one, and all are given back at a revoke (promise 2)."""
    log = tmp_path / "log"
    lines = [said("assigned partitions [0, 1]"), said("partition 1 opens with 3"), "not JSON\n",
             said("partition 0 opens with 1"), '{"message": "half a li']  # fmt: skip
    log.write_text("".join(lines))
    worker = process(log)
    worker.look()
    assert {0, 1} == worker.owned
    with log.open("a") as more:
        more.write('ne"}\n' + said("partition 1 lost: fenced") + said("revoked partitions [0]"))
    worker.look()
    assert (set(), ["partition 1 lost: fenced"]) == (worker.owned, worker.lost)


def test_a_worker_log_tells_its_point(tmp_path: Path) -> None:
    """A death counts as one at a point only when the process said so itself."""
    log = tmp_path / "log"
    log.write_text('{"signal": 9, "point": "commit.before"}\n')
    worker = process(log)
    worker.look()
    assert "commit.before" == worker.point


def test_waves_share_nothing(tmp_path: Path) -> None:
    """Each customer has a conversation and an order of their own, which the shop knows, in both languages."""
    (first, orders), (second, others) = wave("one"), wave("two")
    assert 2 * WAVE == len({scenario.conversation for scenario in first + second})
    assert 2 * WAVE == len({order.order_id for order in orders + others})
    assert {"zh", "en"} == {scenario.language for scenario in first}
    assert {"refunded", "answered", "address_changed"} == {scenario.expect.outcome for scenario in first}
    stock(tmp_path, orders)
    stock(tmp_path, orders)  # again: nothing is there twice


def test_every_point_of_a_phase_is_known() -> None:
    """A phase names points that the runtime has, at least 12 of them (the register of points)."""
    points = {point for point, _ in run.POINTS}
    assert points <= set(KNOWN)
    assert len(points) >= 12
    assert {"commit.after", "snapshot.unsent", "send.acknowledged", "transaction.committed", "timer.before"} <= set(
        run.phases()
    )


def test_every_register_topic_is_read() -> None:
    """The checks see every input topic, the register, the checkpoint and all dead letters."""
    assert {*INPUT_TOPICS, "state.diffs", "state.updates", *(f"{topic}.dlq" for topic in INPUT_TOPICS)} <= set(
        evidence.READ)  # fmt: skip


@pytest.mark.parametrize(("owned", "seconds"), [({0}, 4.0), ({0, 1}, 2.5), ({2}, 0.0), (set(), 0.0)])
def test_a_death_is_timed_to_the_first_diff_of_its_partitions(owned: set[int], seconds: float) -> None:
    """Diffs before the death, and those of other partitions, say nothing about who took over."""
    moments = {0: [900, 5_000], 1: [1_000, 3_500], 2: [500], 3: [1_001]}
    assert seconds == _stood_still(Death(1_000, frozenset(owned)), moments)


def test_figures_count_what_was_found() -> None:
    """Forks, lost records and doubled effects are counted by their rules, with the times in a note."""
    fork = Violation("fork", "demo/web/c", 3, "state.diffs [0] at 7", "twice")
    report = Report("p", conversations=20, recovery_s=[6.0, 8.0], violations=[fork, fork])
    forks, lost, double = (orjson.loads(one) for one in measures([report]))
    assert ("forks", 2, 20, None) == (forks["name"], forks["value"], forks["n"], forks["baseline"])
    assert ("recovery_lost", 0) == (lost["name"], lost["value"])
    assert "went on after median 7.0 s, at most 8.0 s" == lost["note"]
    assert ("effects_double", 0) == (double["name"], double["value"])
    assert not report.passed
    assert "fork: demo/web/c version 3 (state.diffs [0] at 7): twice" in line(report)


@pytest.mark.parametrize(("second", "excused"), [([], True), (["late"], False)])
async def test_a_phase_that_slipped_once_is_excused(second: list[str], *, excused: bool) -> None:
    """A phase that was late runs once more and must pass; both runs are reported (promise 10)."""
    told: list[str] = []
    runner = Run(cast("Stand", None), cast("HttpWorld", None), told.append)
    first = Report("commit-before", faults=["went on 16.0 s after the death"])

    async def phase(runner: Run, report: Report) -> None:
        report.faults += second
        runner.reports.append(report)

    await run.once_more(runner, first, {"commit.before": phase})

    assert ["commit-before-repeated"] == [one.name for one in runner.reports]
    assert excused == first.passed


@pytest.mark.parametrize("only", ["none", ","])
def test_a_run_of_nothing_is_refused(only: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a phase and a kill nothing could fail (promise 10)."""
    with pytest.raises(SystemExit, match="2"):
        run.main(["--only", only])
    assert "a run of nothing would pass" in capsys.readouterr().err


async def test_a_round_without_customers_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the customers' side breaks, kills among nobody prove nothing (promise 10)."""
    monkeypatch.setattr(kills, "BETWEEN_S", (0.0, 1.0))
    monkeypatch.setattr(evidence, "ends", lambda _settings: {})
    runner = Run(cast("Stand", SimpleNamespace(settings=None, folder=Path("/nowhere"))), cast("HttpWorld", None), print)
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        await kills._round(runner, [], random.Random(1), "kills-1", 0)


@pytest.mark.parametrize(
    ("fault", "late"),
    [
        ("went on 16.0 s after the death", True),
        ("all partitions were open 15.4 s after the death", True),
        ("worker-3-x: 4 open partitions: not within 90 s", True),
        ("worker-3-x died when all conversations were over", True),
        ("x/web/c-1: refund ('500618', 5000): 0 times, expected 1", False),
        ("x/web/c-1: step 2: refund.confirm not heard within 75000 ms", False),
        ("x/web/c-1: not in the register at all", False),
        ("worker-3 ended by itself with 1:\nTraceback", False),
        ("Traceback (most recent call last):\n...", False),
    ],
)
def test_only_lateness_is_worth_another_run(fault: str, *, late: bool) -> None:
    """What a customer was told, and an end by itself, count at once: a repetition that passes shows nothing."""
    assert late == Report("x", faults=[fault]).slipped
    assert not Report("x", faults=[fault, "x/web/c-1: not in the register at all"]).slipped


def test_a_violation_has_no_excuse() -> None:
    """What was lost or done twice fails the run, whatever a repetition shows (promise 10)."""
    report = Report("x", faults=["late"], violations=[Violation("fork", "c", 3, "state.diffs [0] at 7", "twice")])
    assert not report.slipped
    report.excused = True
    assert not report.passed


def test_the_clock_is_wall_time() -> None:
    """Deaths are compared with append times, so both are UTC milliseconds."""
    assert now_ms() > 1_700_000_000_000
