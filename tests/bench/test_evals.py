"""`make eval-understanding`: every evaluation is run, and a row is never left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.evals import calibration, intents
from bench.evals.run import main, modules


@pytest.fixture(name="nowhere")
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INTERLOCK_EVAL_DATA", str(tmp_path))


def test_a_module_with_rows_is_an_evaluation() -> None:
    """A file in the folder is found by its `rows`, the runner itself is none."""
    assert {"intents", "calibration"} <= set(modules())
    assert not {"run", "data"} & set(modules())


@pytest.mark.usefixtures("nowhere")
def test_without_data_a_row_has_no_value_and_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """A row that can't be measured is printed with null and the reason, and is no failure."""
    assert 0 == main(["--only", "intents,calibration_error"])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert {*intents.ROWS, "calibration_error"} == {line["name"] for line in lines}
    assert all(line["value"] is None and "INTERLOCK_EVAL_DATA" in line["note"] for line in lines)


@pytest.mark.usefixtures("nowhere")
def test_an_unknown_row_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt name ends with 2 and the names that there are."""
    assert 2 == main(["--only", "calibration_eror"])
    assert "calibration_error" in capsys.readouterr().err


@pytest.mark.usefixtures("nowhere")
def test_one_that_breaks_hides_no_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An evaluation with a bug is printed as its rows without value, and the exit status is 1."""

    def broken() -> None:
        message = "a bug"
        raise RuntimeError(message)

    monkeypatch.setattr(calibration, "rows", broken)

    assert 1 == main(["--only", "intents,calibration"])
    out = capsys.readouterr().out
    assert "RuntimeError: a bug" in out
    assert "intent_trained" in out
