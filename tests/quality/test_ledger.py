"""The ledger: what is called done has a test that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quality import ledger
from tests.quality.source import ROOT, parse, suites


def _write(folder: Path, *rows: str) -> Path:
    path = folder / "requirements.md"
    path.write_text("# Ledger\n\n| id | what | status | where |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.slow
def test_everything_done_is_proven() -> None:
    """Each requirement and case that the ledger calls done is named by a test."""
    items = [*ledger.read(ledger.REQUIREMENTS), *ledger.read(ledger.CASES)]

    assert [] == ledger.unproven(items, ledger.named(suites()))


def test_all_requirements_are_listed() -> None:
    """The ledger holds every id of the four source documents and the ten conflicts between them."""
    ids = {item.id for item in ledger.read(ledger.REQUIREMENTS)}
    counts = {"R-000": 30, "R-002": 49, "R-003": 41, "R-004": 23}

    wanted = {f"{document}-{number:02}" for document, last in counts.items() for number in range(1, last + 1)}

    assert wanted | {f"X{number}" for number in range(1, 11)} == ids


def test_done_without_a_test_is_a_fault(tmp_path: Path) -> None:
    """An id called done that no test names is reported with its line; one called later is not."""
    path = _write(tmp_path, "| R-000-01 | goals | done | here |", "| R-000-02 | form | later | |")

    faults = ledger.unproven(ledger.read(path), {})

    assert ["requirements.md:5: R-000-01 is called done, but no test names it"] == faults
    assert [] == ledger.unproven(ledger.read(path), {"R-000-01": ["tests/x.py::test_x"]})


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["| R-000-01 | goals | perhaps | |"], "requirements.md:5: a row is"),
        (["| R-000-01 | goals | done |"], "requirements.md:5: a row is"),
        (["| A01 | x | done | y |", "| A01 | x | done | y |"], "requirements.md:6: A01 stands here twice"),
    ],
)
def test_bad_row_is_named(tmp_path: Path, rows: list[str], fault: str) -> None:
    """A row that can't be read says file, line and what it should be."""
    with pytest.raises(ValueError, match=fault):
        ledger.read(_write(tmp_path, *rows))


def test_ids_are_found_in_docstrings_and_parameters() -> None:
    """A test names an id in its docstring or its parameters, and the ledger's table prints it below the id."""
    text = '@pytest.mark.parametrize("x", ["B01"])\ndef test_x(x: str) -> None:\n    """Rule (R-002-30, case A03)."""\n'
    proofs = ledger.named([parse(text, ROOT / "tests" / "x.py")])

    assert {"R-002-30", "A03", "B01"} == set(proofs)
    assert ["A03  done   late", "         tests/x.py::test_x"] == ledger.table(
        [ledger.Item("A03", "late", "done", "", "x:1")], proofs
    )
