"""The producers' examples, run as they stand against a real gateway or broker."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streams.settings import Settings
from tests.e2e.system import running
from tests.quality.source import ROOT
from tests.streams.gateway.keys import ORDERS, key_file
from tests.streams.runtime.kafka_rig import Rig

FOLDER = ROOT / "examples" / "producers"
HTTP = {"python": (sys.executable, "http_python.py"), "node": ("node", "http_node.mjs"), "curl": ("sh", "http_curl.sh")}


def need(program: str) -> None:
    """Without the program the test is skipped, in CI it fails."""
    if shutil.which(program) is None:
        if os.environ.get("CI"):
            message = f"{program} is not on PATH: install it"
            raise RuntimeError(message)
        pytest.skip(f"{program} is not on PATH")


def run(*arguments: str, key: str = "") -> subprocess.CompletedProcess[str]:
    """The example's output."""
    environment = {**os.environ, "INTERLOCK_GATEWAY_KEY": key}
    return subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", HTTP)
async def test_an_example_speaks_to_the_gateway(name: str) -> None:
    """Message, batch with one refusal, and CloudEvent arrive; run again they are the same events (R-003-05, A15)."""
    command, file = HTTP[name]
    need(sys.executable if name == "python" else name)
    async with running() as system:
        done = await asyncio.to_thread(run, command, str(FOLDER / file), system.url)
        again = await asyncio.to_thread(run, command, str(FOLDER / file), system.url)
        events = system.values("channel.events", f"demo/app/c-{name}")

    assert (0, 0, "") == (done.returncode, again.returncode, done.stderr)
    assert [f"{name}-1", f"{name}-2", f"{name}-4"] == [event.id for event in events]
    assert ["message", "heartbeat", "rating"] == [event.body.kind for event in events]
    assert "body.score" in done.stdout


@pytest.mark.parametrize("name", HTTP)
async def test_an_example_shows_its_key(name: str, tmp_path: Path) -> None:
    """Where the gateway asks for keys, the CloudEvent is refused without one and taken with it; the rest needs none."""
    command, file = HTTP[name]
    need(sys.executable if name == "python" else name)
    settings = Settings(bootstrap_servers="none", producer_key_file=key_file(tmp_path))
    async with running(settings) as system:
        without = await asyncio.to_thread(run, command, str(FOLDER / file), system.url)
        before = [event.id for event in system.values("channel.events", f"demo/app/c-{name}")]
        done = await asyncio.to_thread(run, command, str(FOLDER / file), system.url, key=ORDERS)
        after = [event.id for event in system.values("channel.events", f"demo/app/c-{name}")]

    assert (False, True) == (without.returncode == 0, "key_missing" in without.stdout + without.stderr)
    assert ([f"{name}-1", f"{name}-2"], [f"{name}-1", f"{name}-2", f"{name}-4"]) == (before, after)
    assert (0, False) == (done.returncode, ORDERS in done.stdout + done.stderr)


@pytest.mark.kafka
def test_the_library_example_speaks_to_the_broker(broker: str, tmp_path: Path) -> None:
    """Twenty events are with the broker when the example ends, and the refused one is named by its field (C21)."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    done = run(sys.executable, str(FOLDER / "kafka_python.py"), rig.bootstrap, str(tmp_path))

    assert ("refused: body.kind: missing\nsent: 20\n", 0) == (done.stdout, done.returncode)
    assert 20 == len(rig.records("channel.events"))
