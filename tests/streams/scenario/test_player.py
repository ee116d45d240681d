"""Each kind of step does what it says, played on the real pipeline in memory."""

from __future__ import annotations

import pytest

from streams.scenario.format import parse
from streams.scenario.local import play_in_memory
from streams.scenario.player import Played
from streams.settings import Settings

HEAD = "name: one\ntitle: One\nlanguage: en\n"


def _play(sender: str, steps: str, more: str = "", outcome: str = "answered") -> Played:
    text = f"{HEAD}sender: {sender}\n{more}steps:\n{steps}expect:\n  outcome: {outcome}\n"
    return play_in_memory([parse(text, "one.yaml")], Settings())[0]


def test_what_is_not_heard_in_time_is_a_fault_of_its_step() -> None:
    """A wait for a message that does not come ends after its time and names the step."""
    played = _play(
        "c-en-logistics", "  - say: Where is my order OD100008?\n  - hear: refund.success\n    within_ms: 500\n"
    )

    assert ["step 2: refund.success not heard within 500 ms"] == played.faults


def test_event_sent_again_is_the_same_event() -> None:
    """The same producer id twice is one message and one answer (case A15, B03)."""
    steps = "  - say: Where is my order OD100008?\n    id: q\n  - send_again: q\n  - send_again: q\n  - hear: any\n"
    seen = _play("c-en-logistics", steps).seen

    assert ["logistics"] == seen.intents
    assert ["logistics.status"] == seen.templates


@pytest.mark.parametrize(("receipts", "state"), [("none", "sent"), ("delivered", "delivered"), ("read", "read")])
def test_client_reports_as_far_as_the_script_says(receipts: str, state: str) -> None:
    """A client reports nothing, delivery, display or reading, each a receipt of its own (R-002-29)."""
    steps = "  - say: Where is my order OD100008?\n  - hear: any\n"
    seen = _play("c-en-logistics", steps, f"receipts: {receipts}\n").seen

    assert state in [row["state"] for row in seen.of("delivery.states")]
    assert {state} == set(seen.deliveries.values())


def test_customer_who_left_reads_when_they_come_back() -> None:
    """A closed window gets nothing; opened again, it shows what was kept."""
    steps = (
        "  - say: Where is my order OD100008?\n  - leave\n  - wait: 3000\n  - come_back\n  - hear: logistics.status\n"
    )
    played = _play("c-en-logistics", steps)

    assert [] == played.faults
    assert {"read"} == set(played.seen.deliveries.values())


def test_edit_replaces_the_message() -> None:
    """An edited message is read again as its new revision (case B13)."""
    steps = (
        "  - say: Where is my order OD100001?\n    id: q\n"
        "  - edit: q\n    text: Where is my order OD100008?\n  - hear: logistics.status\n"
    )
    seen = _play("c-en-logistics", steps).seen

    assert [1, 2] == [row["ref"]["revision"] for row in seen.of("messages.normalized")]


def test_staff_reply_reaches_the_customer() -> None:
    """After a takeover the words are the person's own."""
    steps = "  - say: I want to talk to a human\n  - staff: takeover\n  - staff: {does: reply, text: Good morning}\n"
    seen = _play("c-en-human", steps, outcome="handed_over").seen

    assert "Good morning" in [row["text"] for row in seen.of("actions.outbound")]


def test_wait_past_a_deadline_follows_the_settings() -> None:
    """A wait counted from a named deadline lets it pass, whatever the settings say (R-002-32)."""
    steps = "  - say: I want to return my order OD100011\n  - hear: any\n  - wait: {past: follow_up, ms: 2000}\n"
    seen = _play("c-en-away", steps, outcome="abandoned").seen

    assert ["reply", "follow_up"] == [row["kind"] for row in seen.of("actions.outbound")]


def test_refused_review_moves_no_money() -> None:
    """A reviewer who refuses leaves the shop's ledger empty (R-003-18)."""
    steps = (
        "  - say: Please refund order OD100014, it is broken\n  - hear: refund.confirm\n  - say: yes\n  - wait: 5000\n"
    )
    seen = _play("c-en-timeout", steps, "approver: refuse\n", "explained").seen

    assert [] == seen.effects
    assert "refund.success" not in seen.templates
