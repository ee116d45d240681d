"""`interlock scenario`: a user's own files, checked and played."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streams.cli import build
from streams.scenario.format import ScenarioError

FILE = """name: mine
title: Mine
language: en
sender: c-en-logistics
steps:
  - say: Where is my order OD100008?
  - hear: logistics.status
expect:
  outcome: {outcome}
"""


def _scenario(*arguments: str) -> Result:
    return CliRunner().invoke(build(), ["scenario", *arguments])


def test_own_file_is_played_in_memory(tmp_path: Path) -> None:
    """A file that comes out as it expects exits 0 with a table."""
    path = tmp_path / "mine.yaml"
    path.write_text(FILE.format(outcome="answered"))

    done = _scenario("run", "--memory", str(path))

    assert 0 == done.exit_code, done.output
    assert "1 of 1 conversations came out as expected." in done.stdout


def test_other_outcome_exits_1_and_says_how_it_differs(tmp_path: Path) -> None:
    """A difference is told in words and by the exit status."""
    path = tmp_path / "mine.yaml"
    path.write_text(FILE.format(outcome="refunded"))

    done = _scenario("run", "--memory", str(path))

    assert 1 == done.exit_code
    assert "mine: outcome answered, expected refunded" in done.stdout


def test_check_reads_without_playing(tmp_path: Path) -> None:
    """A folder is read file by file; what is wrong names file, step and field."""
    (tmp_path / "a.yaml").write_text(FILE.format(outcome="answered"))
    (tmp_path / "b.yaml").write_text(FILE.format(outcome="answered").replace("say:", "shout:"))

    done = _scenario("check", str(tmp_path))

    with pytest.raises(ScenarioError, match=r"b\.yaml: step 1: one of say, hear"):
        raise done.exception or AssertionError(done.output)
