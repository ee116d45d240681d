"""What a backup brings back, by pure rules: nobody who was forgotten, and the register's later writes on top."""

from __future__ import annotations

from dataclasses import replace

from memory.facts.port import Fact
from memory.facts.superseding import SUMMARY_MAX
from memory.keeping import fact_of
from memory.restoring import changes, facts_with, later, stays
from tests.streams.keeping import T0, writes

MADE = list(writes(42))  # two of each key


def _facts(count: int) -> list[Fact]:
    return facts_with([], MADE[:count])


def _current(facts: list[Fact]) -> dict[str, str]:
    return {f"{fact.customer}/{fact.key}": fact.write_id for fact in facts if fact.active}


def test_who_was_forgotten_stays_forgotten_and_may_come_anew() -> None:
    """What was written up to the moment of forgetting is gone, what came behind it is theirs (promise 9)."""
    assert stays(lambda _: None, "demo/web/u", T0)
    assert [False, False, True] == [stays({"u": T0}.get, "u", at) for at in (T0 - 1, T0, T0 + 1)]


def test_the_register_stands_on_top_of_the_backup() -> None:
    """From any moment on: backup and later writes give the facts and trails of the whole register (R-004-11)."""
    whole = sorted(_facts(42), key=lambda fact: fact.write_id)
    for count in (0, 1, 21, 30, 42):
        assert whole == sorted(facts_with(_facts(count), MADE), key=lambda fact: fact.write_id)
    assert {write.key: write.write_id for write in MADE} == _current(whole)


def test_what_the_store_refused_is_not_brought_in_by_the_register() -> None:
    """A summary that is too long never was in a store (R-002-18)."""
    long = MADE[0].model_copy(update={"value_after": {"summary": "x" * (SUMMARY_MAX + 1)}})
    assert [] == facts_with([], [long])


def test_only_the_shops_own_writes_count() -> None:
    """Another shop's writes, and those of who was forgotten since, are none of a restore's."""
    other = MADE[0].model_copy(update={"key": MADE[0].key.replace("demo/", "other/")})
    found = later([other, *MADE[:14]], "demo", {"demo/web/u-1": T0 + 1}.get)
    assert [write for number, write in enumerate(MADE[:14]) if number != 1] == found


def test_changes_are_told_by_key() -> None:
    """What comes, what goes, what is another; what stays as it is is only counted."""
    one, two, three = (fact_of(write) for write in MADE[:3])
    found = changes([one, two], [replace(one, summary="else", write_id="w"), three])
    assert {
        f"{one.customer}/{one.key}": (one.summary, "else"),
        f"{two.customer}/{two.key}": (two.summary, None),
        f"{three.customer}/{three.key}": (None, three.summary),
    } == found.lines
    assert (0, 1) == (found.same, changes([one], [one]).same)
