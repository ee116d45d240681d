"""A memory write as the stores keep it: the fact that holds from then on, and what it states of orders and people."""

from __future__ import annotations

from typing import Any

from memory.keeping import fact_of, relations_of
from schemas.memory import MemoryWrite

T0 = 1_767_578_400_000
COMPLAINT = {"summary": "parcel late", "about": "logistics", "order_id": "1001"}


def write(kind: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> MemoryWrite:
    """The second write of a key."""
    return MemoryWrite(write_id="w-2", trace_id="t-2", session_id="s", key=f"demo/web/u-1/{kind}", value_before=before,
                       value_after=after, source="customer", trigger_context="m", timestamp=T0)  # fmt: skip


def stated(of: MemoryWrite) -> list[tuple[str, str, bool]]:
    """Each relation with whom or what it leads to, and whether it holds."""
    return sorted((one.kind, one.end.id, one.active) for one in relations_of(of))


def test_what_is_taken_back_is_over() -> None:
    """A complaint that is set back takes all its relations with it; none is just left standing (R-002-19, case J07)."""
    assert [("ABOUT", "1001", False), ("FILED_COMPLAINT", "c1", False)] == stated(
        write("complaint/c1", COMPLAINT, None)
    )


def test_only_what_changed_is_over() -> None:
    """Of a complaint that someone else takes over the one before is over, and the rest still holds (R-002-19)."""
    before, after = ({**COMPLAINT, "handled_by": who} for who in ("ann", "bob"))
    assert [
        ("ABOUT", "1001", True), ("FILED_COMPLAINT", "c1", True), ("HANDLED_BY", "ann", False),
        ("HANDLED_BY", "bob", True),
    ] == stated(write("complaint/c1", before, after))  # fmt: skip


def test_an_order_of_a_task_that_failed_is_nobodys() -> None:
    """Only an order that something was done for is known to be the customer's (R-002-19)."""
    done, failed = ({"summary": "x", "order_id": "1001", "outcome": name} for name in ("done", "failed"))
    assert [("MADE_ORDER", "1001", True)] == stated(write("problem/p", None, done))
    assert [] == stated(write("problem/p", None, failed))


def test_each_fact_states_the_order_for_itself() -> None:
    """A rollback of one problem with an order does not end what another one states (R-004-11, case J09)."""
    value = {"summary": "x", "order_id": "1001", "outcome": "done"}
    stating = [next(iter(relations_of(write(name, None, value)))) for name in ("problem/p1", "problem/p2")]
    (ended,) = relations_of(write("problem/p1", value, None))

    assert 2 == len({one.id for one in stating})
    assert (stating[0].id, False) == (ended.id, ended.active)


def test_a_value_that_is_gone_is_an_inactive_fact() -> None:
    """Nothing is deleted: the trail keeps what was known, as what no longer holds (case J07)."""
    gone = fact_of(write("preference/carrier", {"summary": "carrier: sf", "choice": ["sf"]}, None))
    assert (False, "carrier: sf", {"choice": ["sf"]}) == (gone.active, gone.summary, gone.fields)
