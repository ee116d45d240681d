"""Lint, types and layers: each gate turns red on a deliberately bad file, under the project's own settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.quality.source import ROOT


def _run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, check=False)


def _ruff(text: str, path: str) -> str:
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--stdin-filename", path, "-"]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "code",
    [
        "import time\n\nNOW = time.time()\n",
        "import datetime\n\nNOW = datetime.datetime.now(tz=datetime.UTC)\n",
        "import uuid\n\nID = uuid.uuid4()\n",
        "import random\n\nDICE = random.randint(1, 6)\n",
    ],
)
def test_hidden_clock_and_randomness_are_banned(code: str) -> None:
    """Time, ids and randomness come in by argument; only streams/clock.py reads them (promise 5)."""
    text = '"""A module."""\n\n' + code

    assert "TID251" in _ruff(text, "agents/bad.py")
    assert "TID251" in _ruff(text, "streams/runtime/bad.py")
    assert "TID251" not in _ruff(text, "streams/clock.py")


def test_assert_in_package_code_is_banned() -> None:
    """A check that `python -O` removes guards nothing; tests assert."""
    assert "S101" in _ruff('"""A module."""\n\nassert True\n', "memory/bad.py")
    assert "S101" not in _ruff('"""A module."""\n\nassert True\n', "tests/memory/bad.py")


def test_every_ignored_rule_has_its_reason() -> None:
    """An ignore in the settings stands beside a comment that says why."""
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.ruff.lint]")[1].splitlines()
    ignores = [line for line in lines if line.startswith('    "') and line.split("#")[0].strip().endswith('",')]

    assert len(ignores) > 10
    assert [] == [line for line in ignores if "#" not in line]


@pytest.mark.slow
def test_types_are_strict(tmp_path: Path) -> None:
    """A function without annotations is an error of the type check."""
    bad = tmp_path / "bad.py"
    bad.write_text("def f(x):\n    return x\n")

    done = _run("mypy", "--config-file", str(ROOT / "pyproject.toml"), str(bad), cwd=tmp_path)

    assert "Function is missing a type annotation" in done.stdout
    assert 1 == done.returncode
