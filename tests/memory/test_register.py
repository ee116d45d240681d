"""The memory register: chains, traces, and what a rollback sets back (R-004-10, R-004-11)."""

from __future__ import annotations

from typing import Any

from memory.register import Register
from schemas.memory import MemoryRestore, MemoryWrite

KEY = "demo/web/u-1/preference/carrier"


class Line:
    """Writes as the one writer makes them: each names what was there before it."""

    def __init__(self) -> None:
        self.register, self._count = Register(), 0

    def write(self, trace: str, value: str | None, key: str = KEY, **more: Any) -> MemoryWrite:
        """One write."""
        self._count += 1
        made = MemoryWrite(
            write_id=f"w-{self._count}", trace_id=trace, session_id="s", key=key, source="customer",
            value_before=self.register.value(key), trigger_context="m",
            value_after={"summary": value} if value else None,
            timestamp=1_767_578_400_000 + self._count, **more,
        )  # fmt: skip
        self.register.add(made)
        return made

    def roll_back(self, trace: str, own: str, *over: str) -> tuple[MemoryRestore, ...]:
        """The rollback, carried out as the conversation's owner does it."""
        plan = self.register.rollback(trace, over)
        for one in plan.restores:
            self.write(
                own, one.value["summary"] if one.value else None, one.key, undoes=one.undoes, restores=one.restores
            )
        return plan.restores

    def now(self, key: str = KEY) -> str | None:
        """What is known."""
        value = self.register.value(key)
        return value["summary"] if value else None


def test_history_is_by_key_and_writes_are_by_trace() -> None:
    """Both look-ups, in order; a write that was published again counts once (R-004-10)."""
    line = Line()
    first, other = line.write("t1", "A"), line.write("t1", "X", "demo/web/u-1/item/current")
    second = line.write("t2", "B")
    line.register.add(first)
    assert (first, second) == line.register.history(KEY)
    assert [first, other] == line.register.of_trace("t1")
    assert [] == line.register.of_trace("none")
    assert [] == list(line.register.breaks())


def test_a_rollback_sets_all_keys_of_the_trace_back() -> None:
    """Each key gets what stood before the trace's first write of it (R-004-11)."""
    line = Line()
    line.write("t1", "A")
    line.write("t2", "B")
    line.write("t2", "C")
    line.write("t2", "X", "demo/web/u-1/item/current")
    assert 2 == len(line.roll_back("t2", "r2"))
    assert ("A", None) == (line.now(), line.now("demo/web/u-1/item/current"))
    assert ("w-3", "w-2") == line.register.history(KEY)[-1].undoes
    assert "w-1" == line.register.history(KEY)[-1].restores


def test_a_rollback_can_be_rolled_back() -> None:
    """The rollback's own trace takes it back, and so on (R-004-11)."""
    line = Line()
    line.write("t1", "A")
    line.write("t2", "B")
    for trace, own, wanted in [("t2", "r1", "A"), ("r1", "r2", "B"), ("r2", "r3", "A"), ("r3", "r4", "B")]:
        line.roll_back(trace, own)
        assert wanted == line.now()
    assert [] == list(line.register.breaks())


def test_a_later_write_is_a_conflict() -> None:
    """What others wrote since is shown and stays, unless the key is named (R-004-11)."""
    line = Line()
    line.write("t1", "A")
    line.write("t2", "B")
    third = line.write("t3", "C")
    plan = line.register.rollback("t2")
    assert ((), (third,)) == (plan.restores, plan.conflicts[0].later)
    assert {"summary": "A"} == plan.conflicts[0].value
    line.roll_back("t2", "r2", KEY)
    assert "A" == line.now()


def test_a_later_write_that_was_rolled_back_is_none() -> None:
    """When the later trace is undone, what the earlier one wrote stands again, and can be undone (R-004-11)."""
    line = Line()
    for trace, value in [("t1", "A"), ("t2", "B"), ("t3", "C")]:
        line.write(trace, value)
    line.roll_back("t3", "r3")
    line.roll_back("t2", "r2")
    assert "A" == line.now()
    line.roll_back("t1", "r1")
    assert line.now() is None


def test_the_same_value_said_anew_is_a_write_of_its_own() -> None:
    """A, B, then A again by another trace: undoing the first A leaves the second (R-004-11)."""
    line = Line()
    line.write("t1", "A")
    line.write("t2", "B")
    line.write("t3", "A")
    assert () == line.roll_back("t1", "r1")
    assert "A" == line.now()


def test_a_trace_that_wrote_between_others_undoes_only_its_last() -> None:
    """The trace's write below another's stays, as what the other one built on (R-004-11)."""
    line = Line()
    for trace, value in [("t1", "A"), ("t2", "B"), ("t1", "C")]:
        line.write(trace, value)
    line.roll_back("t1", "r1")
    assert "B" == line.now()


def test_twice_rolled_back_is_once() -> None:
    """A trace that was rolled back has nothing left to undo (R-004-11)."""
    line = Line()
    line.write("t1", "A")
    line.roll_back("t1", "r1")
    assert () == line.roll_back("t1", "r2")
    assert 2 == len(line.register.history(KEY))


def test_a_break_in_a_chain_is_found() -> None:
    """A write whose value before is not the value after of the one before it shows (R-004-08)."""
    line = Line()
    first = line.write("t1", "A")
    stray = first.model_copy(update={"write_id": "w-x", "value_before": {"summary": "Z"}})
    line.register.add(stray)
    assert [(first, stray)] == [(one.first, one.second) for one in line.register.breaks()]
