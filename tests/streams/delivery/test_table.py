"""The delivery table, pair by pair (R-002-29)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from schemas.delivery import DeliveryState
from streams.delivery.table import MOVES, RANK, Event, Held, held, mermaid, move, state_of, unseen

DOC = Path(__file__).parents[3] / "docs" / "delivery.md"
PAIRS = list(itertools.product(Held, Event))


def _rank(row: Held) -> int:
    return RANK[state_of(row).value]


def test_table_covers_every_state() -> None:
    """Each state has a row, and each row names only states and events that exist (R-002-29)."""
    assert set(MOVES) == set(Held)
    assert {"queued", "sent", "delivered", "displayed", "read", "failed"} == {state_of(row).value for row in Held}


@pytest.mark.parametrize(("row", "event"), PAIRS)
def test_nothing_lowers_a_state(row: Held, event: Event) -> None:
    """No pair leads to a lower state, but a new attempt that leaves `failed` (case A01, case A05)."""
    after = move(row, event)
    if (row, event) == (Held.FAILED, Event.ATTEMPT):
        assert Held.QUEUED is after
    else:
        assert _rank(row) <= _rank(after)


@pytest.mark.parametrize("event", [event for event in Event if event is not Event.ATTEMPT])
def test_failed_is_left_by_an_attempt_only(event: Event) -> None:
    """No receipt and no deadline brings a failed message back to life (case A05)."""
    assert Held.FAILED is move(Held.FAILED, event)


@pytest.mark.parametrize("row", [Held.DELIVERED, Held.DISPLAYED, Held.READ])
def test_what_arrived_can_not_fail(row: Held) -> None:
    """A failure reported after proof of delivery is late: the message did arrive."""
    assert row is move(row, Event.FAILED)


def test_an_assumption_is_weaker_than_a_report() -> None:
    """An assumed display gives way to a reported display, read or failure, and to nothing lower (X5)."""
    after = {event: move(Held.ASSUMED, event) for event in Event}
    changed = {event: row for event, row in after.items() if row is not Held.ASSUMED}
    assert {Event.DISPLAYED: Held.DISPLAYED, Event.READ: Held.READ, Event.FAILED: Held.FAILED} == changed


def test_only_what_is_sent_is_assumed() -> None:
    """Silence turns `sent` into an assumed display and nothing else (R-002-30)."""
    assert [Held.SENT] == [row for row in Held if move(row, Event.SILENCE) is not row]


@pytest.mark.parametrize("row", list(Held))
def test_rows_and_stored_states_agree(row: Held) -> None:
    """A stored state with its `assumed` mark is the row that it came from."""
    assert row is held(state_of(row).value, assumed=row is Held.ASSUMED)


def test_unseen_names_the_gaps() -> None:
    """Lower states that nobody reported are named; a failure has none (case A09)."""
    assert (DeliveryState.SENT,) == unseen("delivered", {"queued": None, "delivered": 1})
    assert (DeliveryState.SENT, DeliveryState.DELIVERED, DeliveryState.DISPLAYED) == unseen("read", {"read": None})
    assert () == unseen("failed", {})


def test_diagram_in_the_docs_is_the_table() -> None:
    """docs/delivery.md shows the diagram that the table makes, word for word."""
    assert f"```mermaid\n{mermaid()}\n```" in DOC.read_text(encoding="utf-8")
