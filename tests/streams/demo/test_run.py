"""The demo's settings, its report, and the whole of it on a broker of its own."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from streams.demo.report import show
from streams.demo.run import SCENARIOS, SHORT, _beside, demo_settings, environment
from streams.scenario.expect import Observation
from streams.scenario.format import load
from streams.scenario.player import Played
from streams.settings import Settings

OUTCOME = "outcome: answered"


def test_demo_shortens_deadlines_and_takes_free_ports() -> None:
    """Only the demo's settings are short; every part of it has a port and a folder of its own (R-002-40)."""
    settings = demo_settings(Settings(), Path("x"), "r1")
    ports = {settings.gateway_port, settings.shop_port, settings.metrics_port, settings.exporter_port,
             settings.keeper_port}  # fmt: skip

    assert 5 == len(ports)
    assert SHORT["window_ms"] == settings.window_ms
    assert 300_000 == Settings().window_ms
    assert f"http://127.0.0.1:{settings.gateway_port}" == settings.gateway_url


def test_children_read_the_settings_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment that a child gets gives it the same settings."""
    base = Settings(channel_dirs=(Path("a b"), Path("c")), tool_urls={"crm_url": "http://crm"})
    settings = demo_settings(base, Path("x"), "r1")
    for name, value in environment(settings).items():
        monkeypatch.setenv(name, value)

    assert settings == Settings()


def test_report_says_what_differs() -> None:
    """The table has each scenario with expectation and outcome; differences follow in words."""
    scenario = load(SCENARIOS / "en-logistics.yaml")
    console = Console(record=True, width=200)

    show(
        console, [Played(scenario, Observation()), Played(scenario, Observation(), ["outcome open, expected answered"])]
    )

    text = console.export_text()
    assert "DIFFERS" in text
    assert "en-logistics: outcome open, expected answered" in text
    assert "1 of 2 conversations came out as expected." in text


def test_report_shows_what_is_remembered() -> None:
    """Each key that a scenario says is remembered, as `interlock memory history` shows it (R-004-10)."""
    console = Console(record=True, width=200)

    show(console, [], {"demo/web/u/preference/carrier": ["nothing -> SF [x]"], "demo/web/u/item/current": []})

    text = console.export_text()
    assert "interlock memory history demo/web/u/preference/carrier\n  nothing -> SF [x]" in text
    assert "item/current\n  nothing was ever written under it" in text


async def test_failure_beside_the_work_ends_it() -> None:
    """When a part of the system ends, playing stops at once with that part's error."""

    async def fails() -> None:
        message = "the worker ended"
        raise OSError(message)

    with pytest.raises(OSError, match="the worker ended"):
        async with asyncio.timeout(5), _beside(fails()):
            await asyncio.sleep(60)


def _takes_sigint() -> None:
    """A shell's background job hands SIGINT down as ignored; a person at a terminal does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _demo(folder: Path, data: Path) -> subprocess.Popen[str]:
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    return subprocess.Popen(
        [sys.executable, "-m", "streams.cli", "demo", str(folder)], stdin=subprocess.DEVNULL, text=True,
        preexec_fn=_takes_sigint,  # noqa: PLW1509 (these tests start no threads)
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        env={**cleared, "INTERLOCK_DATA_DIR": str(data), "COLUMNS": "200"},
    )  # fmt: skip


def _left_behind(data: Path) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(data) in line]


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_demo_exits_1_when_an_outcome_differs_and_leaves_nothing(tmp_path: Path) -> None:
    """Two scenarios come out right, one is made to differ: table, exit status 1, and no process left.

    The memory is applied by the demo's keeper, found by a later session, and shown.
    """
    folder = tmp_path / "scenarios"
    folder.mkdir()
    shutil.copy(SCENARIOS / "zh-refund-with-order.yaml", folder)
    shutil.copy(SCENARIOS / "zh-remembers.yaml", folder)
    wrong = (SCENARIOS / "en-refund-status.yaml").read_text(encoding="utf-8").replace(OUTCOME, "outcome: refunded")
    (folder / "wrong.yaml").write_text(wrong, encoding="utf-8")

    demo = _demo(folder, tmp_path / "data")
    output, _ = demo.communicate(timeout=200)

    assert 1 == demo.returncode, output
    assert "2 of 3 conversations came out as expected." in output
    assert re.search(r"interlock memory history \S+/preference/carrier\n  .*nothing -> 快递偏好：顺丰", output)
    assert "en-refund-status: outcome answered, expected refunded" in output
    assert re.search(r"Metrics: worker http://127\.0\.0\.1:\d+/metrics", output)
    assert [] == _left_behind(tmp_path / "data")


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_ctrl_c_ends_the_demo_and_all_of_its_processes(tmp_path: Path) -> None:
    """SIGINT in the middle: exit status 130, and nothing runs on."""
    data = tmp_path / "data"
    demo = _demo(SCENARIOS, data)
    end = time.monotonic() + 120
    while not (data / "demo" / "logs" / "keeper.log").exists() and time.monotonic() < end:
        time.sleep(0.2)

    demo.send_signal(signal.SIGINT)
    output, _ = demo.communicate(timeout=60)

    assert 130 == demo.returncode, output
    assert "Traceback" not in output
    assert [] == _left_behind(data)
