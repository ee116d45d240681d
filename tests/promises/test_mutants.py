"""The list of mutants is kept in step with the code; running them is `make mutants`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.promises.broken import MUTANTS, Mutant
from tests.promises.mutants import DOCS, applied, main, module_of, noticed_by, row, run, stale
from tests.quality.source import ROOT

ONE = MUTANTS[0]


def test_every_mutant_still_applies() -> None:
    """The line that a mutant breaks stands exactly once in its file, and the broken one says something else."""
    assert [] == stale()


@pytest.mark.parametrize(
    ("change", "told"),
    [({"old": "no such line"}, "stands 0 times"), ({"old": "\n"}, "times, not once"),
     ({"new": ONE.old}, "breaks nothing"), ({"new": "return ("}, "is no Python"),
     ({"file": "streams/gone.py"}, "No such file")],
)  # fmt: skip
def test_a_mutant_that_does_not_apply_is_told(
    change: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any is run, by file and line, and the command fails: a mutant that is skipped proves nothing."""
    assert 2 == main([], [replace(ONE, **change)])
    assert told in capsys.readouterr().out


def test_a_mutant_is_applied_and_taken_back(tmp_path: Path) -> None:
    """In the copy, and only while its test runs."""
    file = tmp_path / ONE.file
    file.parent.mkdir(parents=True)
    whole = (ROOT / ONE.file).read_text(encoding="utf-8")
    file.write_text(whole, encoding="utf-8")
    with applied(tmp_path, ONE):
        assert whole.replace(ONE.old, ONE.new) == file.read_text(encoding="utf-8")
    assert whole == file.read_text(encoding="utf-8")


def test_a_selection_without_tests_is_an_error(tmp_path: Path) -> None:
    """A test that did not run has not failed, and has noticed nothing."""
    (tmp_path / "test_one.py").write_text("def test_it() -> None:\n    assert True\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="selects no test"):
        run(tmp_path, tmp_path / "test_one.py", "kafka", "")


def _listed(one: Mutant, page: str) -> bool:
    return row(one) in page and noticed_by(one).is_file()


def test_every_promise_has_its_test_and_its_mutants() -> None:
    """Ten promises, each with one module named after it and at least one mutant, on one page (design, section 3)."""
    counted = Counter(one.promise for one in MUTANTS if not one.test)
    assert set(range(1, 11)) == set(counted)
    page = DOCS.read_text(encoding="utf-8")
    for promise in counted:
        assert module_of(promise).name in page
    assert [] == [one.breaks for one in MUTANTS if not _listed(one, page)]
