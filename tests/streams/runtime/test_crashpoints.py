"""Kill points: nothing without the variable, SIGKILL at the asked hit with it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import streams
from streams.runtime.crashpoints import POINTS

CODE = """
from streams.runtime.crashpoints import crash
for hit in range(5):
    crash("seek.before")
    crash("seek.after")
    print(hit, flush=True)
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    """The code in a process of its own."""
    plain = {name: value for name, value in os.environ.items() if name != "INTERLOCK_CRASH_AT"}
    return subprocess.run([sys.executable, "-c", CODE], env={**plain, **environment}, capture_output=True, text=True,
                          check=False)  # fmt: skip


def test_nothing_happens_without_the_variable() -> None:
    """A worker in service has no kill points: the run ends by itself."""
    assert (0, "0\n1\n2\n3\n4\n") == ((done := run()).returncode, done.stdout)


PLANS = [("seek.before", ""), ("seek.after:3", "0\n1\n"), ("x,seek.before:2", "0\n")]


@pytest.mark.parametrize(("planned", "lived"), PLANS)
def test_process_dies_at_the_asked_hit(planned: str, lived: str) -> None:
    """`name:n` is SIGKILL at the n-th hit, as `kill -9` would be: nothing of the process runs on."""
    done = run(INTERLOCK_CRASH_AT=planned)
    assert (-signal.SIGKILL, lived) == (done.returncode, done.stdout)


def test_every_point_in_the_code_is_listed() -> None:
    """The list that a chaos run goes through names each point in the code, and no other."""
    folder = Path(str(streams.__file__)).parent
    text = "".join(path.read_text() for path in folder.rglob("*.py") if path.name != "crashpoints.py")
    found = set(re.findall(r'(?:crash|pause_at)\("([a-z_.]+)"\)', text))
    assert found <= set(POINTS)
    assert {point for point in POINTS if not point.startswith("effect.")} <= found
