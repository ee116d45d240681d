"""The list of mutants is kept in step with the code; running them is `make mutants`."""

from __future__ import annotations

from collections import Counter

from tests.promises.mutants import DOCS, MUTANTS, module_of, stale


def test_every_mutant_still_applies() -> None:
    """The line that a mutant breaks stands exactly once in its file, and the broken one is another."""
    assert [] == stale()
    assert all(one.old != one.new for one in MUTANTS)


def test_every_promise_has_its_test_and_its_mutants() -> None:
    """Ten promises, each with one module named after it and at least one mutant, on one page (design, section 3)."""
    counted = Counter(one.promise for one in MUTANTS)
    assert set(range(1, 11)) == set(counted)
    page = DOCS.read_text(encoding="utf-8")
    for promise in counted:
        assert module_of(promise).name in page
    for one in MUTANTS:
        assert f"| {one.breaks} | `{one.file}` | fails |" in page
