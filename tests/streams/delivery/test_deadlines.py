"""Deadlines: assumed after 15 s, resent after 30 s, followed up once after 2 min."""

from __future__ import annotations

from typing import Any

import pytest

from streams.delivery.table import Held
from tests.streams.delivery.chat import YES_NO, Chat


def _sent(chat: Chat, **fields: Any) -> Chat:
    chat.reply(**fields)
    chat.sent_by_us(100)
    return chat


def _read(chat: Chat, **fields: Any) -> Chat:
    chat.waits()
    _sent(chat, **fields)
    chat.receipt("read", 1_000, source="client")
    return chat


def test_silence_is_a_display_that_says_it_is_assumed() -> None:
    """No delivered receipt in 15 s of sent: displayed, assumed=true (R-002-30, X5)."""
    chat = _sent(Chat())
    chat.later(15_099)
    assert ("sent", False) == chat.held()
    chat.later(15_100)

    assert ("displayed", True) == chat.held()
    assert ("displayed", True, "sent") == (
        chat.statuses()[-1].state, chat.statuses()[-1].assumed, chat.statuses()[-1].previous)  # fmt: skip


def test_a_delivered_receipt_ends_the_silence() -> None:
    """Delivered within 15 s: nothing is assumed (R-002-30)."""
    chat = _sent(Chat())
    chat.receipt("delivered", 14_000)
    chat.later(29_000)
    assert ("delivered", False) == chat.held()


def test_a_report_replaces_the_assumption() -> None:
    """A display that is reported later is no assumption any more, and that is published (X5)."""
    chat = _sent(Chat())
    chat.later(16_000)
    chat.receipt("displayed", 17_000, source="client")

    assert ("displayed", False) == chat.held()
    assert ("displayed", False) == (chat.statuses()[-1].state, chat.statuses()[-1].assumed)


def test_a_failure_beats_the_assumption() -> None:
    """A failure that is reported later is believed over an assumed display (X5)."""
    chat = _sent(Chat())
    chat.later(16_000)
    chat.receipt("failed", 17_000, reason="blocked")
    assert ("failed", False) == chat.held()


@pytest.mark.parametrize("delivered", [False, True])
def test_not_displayed_is_sent_again(delivered: bool) -> None:  # noqa: FBT001 (a parameter of the rule)
    """Not really displayed in 30 s: the same message id, attempt 2 (R-002-31)."""
    chat = _sent(Chat())
    if delivered:
        chat.receipt("delivered", 500)
    chat.later(30_099)
    assert [] == chat.outbound("resend")
    chat.later(30_100)

    (again,) = chat.outbound("resend")
    assert ("m-1", 2, "请问订单号是多少?") == (again.message_id, again.attempt, again.text)
    assert (["m-1:2"], "m-1") == (chat.sends(), chat.get("pending", "m-1:2")["key"])


def test_a_display_disarms_the_resend() -> None:
    """Displayed within 30 s: no resend (R-002-31)."""
    chat = _sent(Chat())
    chat.receipt("displayed", 20_000, source="client")
    chat.later(90_000)
    assert [] == chat.outbound("resend")


@pytest.mark.parametrize(("seen_at", "resends"), [(50, 1), (10_000, 0), (25_000, 0)])
def test_an_assumed_display_disarms_only_if_seen(seen_at: int, resends: int) -> None:
    """An assumed display stands in for a real one only if the customer was online since the send (R-002-31, X5)."""
    chat = Chat()
    chat.reply()
    if seen_at < 100:
        chat.customer(seen_at, "heartbeat")
    chat.sent_by_us(100)
    if seen_at > 100:
        chat.customer(seen_at, "heartbeat")
    chat.later(31_000)
    assert resends == len(chat.outbound("resend"))


def test_going_away_disarms_nothing() -> None:
    """A farewell after the send is no sign that the message was seen: it is sent again (R-002-31, X5)."""
    chat = Chat()
    chat.customer(50, "heartbeat")
    chat.reply()
    chat.sent_by_us(100)
    chat.customer(5_000, "offline")
    chat.later(31_000)
    assert 1 == len(chat.outbound("resend"))


def test_resends_end() -> None:
    """Three attempts in all; then it stays what it is, and a reason says so."""
    chat = _sent(Chat())
    for attempt, at in ((2, 31_000), (3, 62_000), (4, 95_000), (5, 200_000)):
        chat.later(at)
        if f"m-1:{attempt}" in chat.sends():
            chat.sent_by_us(at + 100, attempt=attempt)

    assert [2, 3] == [message.attempt for message in chat.outbound("resend")]
    assert ("displayed", True) == chat.held()
    assert "delivery.resend.exhausted" in chat.rules()
    assert ({}, []) == (chat.state["timers"], chat.sends())


def test_a_resend_is_dropped_when_it_was_displayed_meanwhile() -> None:
    """A resend that comes back from the topic after a real display is not sent (R-002-31)."""
    chat = _sent(Chat())
    chat.receipt("displayed", 1_000)
    chat.reply(at=2_000, attempt=2, kind="resend")
    assert (1, []) == (chat.message()["attempt"], chat.sends())


def test_a_resend_never_lowers() -> None:
    """A new attempt of a delivered message stays delivered, and its own `sent` is no step back (case A01)."""
    chat = _sent(Chat())
    chat.receipt("delivered", 500)
    chat.later(30_200)
    chat.sent_by_us(30_300, attempt=2)
    assert (Held.DELIVERED, 2) == (chat.message()["state"], chat.message()["attempt"])


def test_a_silent_reader_gets_one_follow_up() -> None:
    """Read and silent for 2 min: one follow-up with numbered choices, and no second (R-002-32)."""
    chat = _read(Chat())
    chat.later(120_999)
    assert [] == chat.outbound("follow_up")
    chat.later(121_000)
    (reminder,) = chat.outbound("follow_up")
    assert ([1, 2, 3], "m-1") == ([choice.number for choice in reminder.choices], reminder.in_reply_to)
    assert all(f"{choice.number}. {choice.label}" in reminder.text for choice in reminder.choices)
    assert {"means": ["continue", "human", "stop"]} == reminder.params

    chat.sent_by_us(121_100, message_id=reminder.message_id)
    chat.receipt("read", 122_000, message_id=reminder.message_id, source="client")
    chat.receipt("read", 123_000, source="client")
    chat.later(900_000)
    assert 1 == len(chat.outbound("follow_up"))


def test_a_follow_up_speaks_the_customers_language() -> None:
    """English is followed up in English, with the message's own choices where it had some (R-002-32)."""
    chat = _read(Chat(), language="en")
    chat.later(200_000)
    assert "Please answer with a number" in chat.outbound("follow_up")[0].text

    chinese = _read(Chat(), choices=YES_NO)
    chinese.later(200_000)
    assert (YES_NO, {}) == (chinese.outbound("follow_up")[0].choices, chinese.outbound("follow_up")[0].params)
    assert "请回复数字" in chinese.outbound("follow_up")[0].text


def test_an_answer_ends_the_silence() -> None:
    """A customer who answers is not followed up, also when the answer came before the read receipt (R-002-32)."""
    chat = _read(Chat())
    chat.customer(60_000)
    chat.later(300_000)
    assert [] == chat.outbound("follow_up")

    crossed = Chat()
    crossed.waits()
    _sent(crossed)
    crossed.customer(900)
    crossed.receipt("read", 1_000, source="client")
    crossed.later(300_000)
    assert [] == crossed.outbound("follow_up")


@pytest.mark.parametrize("planning", [
    {"owner": "human"}, {"handover": {"request_id": "hr-1"}}, {"reviews": {"rv-1": {"status": "open"}}}, {"flows": []},
])  # fmt: skip
def test_who_waits_for_us_is_not_reminded(planning: dict[str, Any]) -> None:
    """No follow-up while a person owns it, a review is open, or no answer is awaited (R-002-32)."""
    chat = _read(Chat())
    chat.planning(**planning)
    chat.later(300_000)
    assert [] == chat.outbound("follow_up")
    assert "delivery.follow_up.needless" in chat.rules()


def test_a_review_of_the_past_stops_no_reminder() -> None:
    """A review that was decided is remembered and owes nothing: the customer is reminded (R-002-32)."""
    chat = _read(Chat())
    chat.waits()
    chat.planning(reviews={"rv-1": {"status": "approved"}})
    chat.later(300_000)
    assert 1 == len(chat.outbound("follow_up"))


@pytest.mark.parametrize("waiting_for", ["tool", "review", "none"])
def test_only_the_customers_turn_counts(waiting_for: str) -> None:
    """A flow that waits for a tool or a review is our turn (R-002-32)."""
    chat = _read(Chat())
    chat.waits(waiting_for)
    chat.later(300_000)
    assert [] == chat.outbound("follow_up")


@pytest.mark.parametrize("kind", ["notice", "staff", "follow_up"])
def test_only_replies_are_followed_up(kind: str) -> None:
    """A notice, a person's message and a follow-up itself are never followed up (R-002-32)."""
    chat = _read(Chat(), kind=kind)
    chat.later(300_000)
    assert "delivery.follow_up" not in chat.rules()


def test_a_later_message_makes_it_needless() -> None:
    """The customer is reminded of the newest message only, and not in another session (R-002-32)."""
    chat = _read(Chat())
    chat.reply("m-2", at=30_000)
    chat.later(125_000)
    assert [] == chat.outbound("follow_up")

    other = _read(Chat())
    other.begin("s-2")
    other.later(125_000)
    assert [] == other.outbound("follow_up")


def test_receipts_in_a_backlog_are_read_before_anything_is_sent_again() -> None:
    """A deadline that was answered while the worker was away finds nothing to do (R-002-31)."""
    chat = _sent(Chat())
    chat.receipt("displayed", 12_000, source="client")
    assert [] == [name for name in chat.state["timers"] if name.startswith(("delivery.silence", "delivery.resend"))]
