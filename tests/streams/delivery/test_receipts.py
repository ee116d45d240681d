"""Receipts: joined by rank, kept in a history, never invented."""

from __future__ import annotations

from tests.streams.conversation import T0
from tests.streams.delivery.chat import Chat

HOUR = 3_600_000


def test_a_reply_is_registered_and_its_send_declared() -> None:
    """A message on actions.outbound is queued, with one send under its message id (R-002-29, case A13)."""
    chat = Chat()
    reply = chat.reply()

    assert ("queued", False) == chat.held()
    effect = chat.get("pending", "m-1:1")
    assert ("send", "m-1", 3_000) == (effect["kind"], effect["key"], effect["timeout_ms"])
    assert reply.model_dump(mode="json") == effect["request"]


def test_the_whole_way() -> None:
    """Sent, delivered, displayed and read are taken in turn, each published once (R-002-29)."""
    chat = Chat()
    chat.reply()
    chat.sent_by_us(80)
    for at, state in ((300, "delivered"), (900, "displayed"), (1_500, "read")):
        chat.receipt(state, at, ts=at - 50, source="client")  # type: ignore[arg-type]

    assert ["queued", "sent", "delivered", "displayed", "read"] == [status.state for status in chat.statuses()]
    assert [None, None, 250, 850, 1_450] == [status.latency_ms for status in chat.statuses()]
    assert [] == chat.sends()


def test_a_late_sent_is_history() -> None:
    """A late `sent` leaves `delivered`, fills in its own time, and is marked out of order (case A01)."""
    chat = Chat()
    chat.reply("m-101")
    chat.receipt("delivered", 2_500, ts=2_000, message_id="m-101")
    chat.receipt("sent", 2_600, ts=1_000, message_id="m-101")

    assert ("delivered", False) == chat.held("m-101")
    assert {"sent": T0 + 1_000, "delivered": T0 + 2_000} == chat.message("m-101")["at"]
    last = chat.statuses("m-101")[-1]
    assert ("delivered", "delivered", True, T0 + 1_000) == (
        last.state, last.previous, last.out_of_order, last.provider_at)  # fmt: skip
    assert "delivery.out_of_order" in chat.rules()


def test_failed_keeps_its_reason() -> None:
    """A delayed `sent` does not revive a failed message, nor erase why it failed (case A05)."""
    chat = Chat()
    chat.reply("m-105")
    chat.receipt("failed", 3_100, ts=3_000, message_id="m-105", reason="window_closed")
    chat.receipt("sent", 3_200, ts=1_000, message_id="m-105")
    chat.receipt("read", 3_300, message_id="m-105")

    assert ("failed", "window_closed") == (chat.message("m-105")["state"], chat.message("m-105")["reason"])


def test_a_new_attempt_leaves_failed() -> None:
    """An explicit new attempt of the same message starts again from queued, without the old reason (case A05)."""
    chat = Chat()
    chat.reply()
    chat.receipt("failed", 1_000, reason="window_closed")
    chat.reply(at=2_000, attempt=2)

    assert ("queued", 2, "") == tuple(chat.message()[name] for name in ("state", "attempt", "reason"))
    chat.receipt("failed", 2_100, attempt=1, reason="old")
    chat.receipt("sent", 2_200, attempt=1)
    assert "queued" == chat.message()["state"]
    chat.sent_by_us(2_300, attempt=2)
    assert "sent" == chat.message()["state"]


def test_no_time_is_invented() -> None:
    """Receipts without a time in any order end in `read` by rank, with no time and no latency (case A07)."""
    chat = Chat()
    chat.reply("m-107")
    for at, state in ((1_000, "delivered"), (2_000, "queued"), (3_000, "sent"), (4_000, "read")):
        chat.receipt(state, at, message_id="m-107")  # type: ignore[arg-type]

    assert "read" == chat.message("m-107")["state"]
    assert {None} == set(chat.message("m-107")["at"].values())
    assert {(None, None)} == {(status.provider_at, status.latency_ms) for status in chat.statuses("m-107")}


def test_gaps_are_accepted() -> None:
    """`delivered` without a `sent` counts, and the status says what was not seen (case A09)."""
    chat = Chat()
    chat.reply("m-109")
    chat.receipt("queued", 500, message_id="m-109")
    chat.receipt("delivered", 900, message_id="m-109")

    assert ("delivered", ("sent",)) == (chat.statuses("m-109")[-1].state, chat.statuses("m-109")[-1].unseen)
    assert "sent" not in chat.message("m-109")["at"]


def test_a_repeated_receipt_says_nothing_new() -> None:
    """The same state reported again under another id changes nothing and is not published."""
    chat = Chat()
    chat.reply()
    chat.receipt("delivered", 500)
    before, published = chat.message(), len(chat.statuses())
    chat.receipt("delivered", 900)

    assert (before, published) == (chat.message(), len(chat.statuses()))
    assert "delivery.receipt.repeat" == chat.rules()[-1]


def test_two_records_of_one_message_are_one_send() -> None:
    """The same message put on the topic by two writers is sent once (case A15)."""
    chat = Chat()
    chat.reply()
    chat.reply(at=5)

    assert (["m-1:1"], 1) == (chat.sends(), len(chat.statuses()))
    assert "delivery.outbound.repeat" == chat.rules()[-1]


def test_a_display_counts_once_in_five_seconds() -> None:
    """Displays within 5 s of the last counted one are dropped, a later one counts (R-002-33)."""
    chat = Chat()
    chat.reply()
    for at in (1_000, 2_000, 5_999, 6_000, 7_000):
        chat.receipt("displayed", at, source="client")

    assert (2, T0 + 6_000) == (chat.message()["displays"], chat.message()["displayed_seen"])


def test_an_unknown_outcome_is_repeated_under_one_key() -> None:
    """A send that timed out is not failed; it is repeated under the same dedup id (case A13)."""
    chat = Chat()
    chat.reply("m-113")
    chat.receipt("failed", 5_000, message_id="m-113", source="sender", reason="timeout", retryable=True)
    assert ("queued", "timeout") == (chat.message("m-113")["state"], chat.message("m-113")["reason"])
    chat.later(6_000)

    resent = chat.outbound("resend")
    assert [("m-113", 2)] == [(message.message_id, message.attempt) for message in resent]
    assert ["m-113:2"] == chat.sends()
    assert "m-113" == chat.get("pending", "m-113:2")["key"]


def test_a_receipt_ends_the_unknown() -> None:
    """When a receipt tells the outcome before the repeat, nothing is sent again (case A13)."""
    chat = Chat()
    chat.reply()
    chat.receipt("failed", 5_000, source="sender", reason="timeout", retryable=True)
    chat.receipt("delivered", 5_500)
    chat.later(20_000)

    assert ("delivered", False) == chat.held()
    assert [] == chat.outbound("resend")


def test_attempts_end() -> None:
    """After three unknown outcomes the message is failed with its reason, and a person is asked once."""
    chat = Chat()
    chat.reply()
    for attempt, at in ((1, 1_000), (2, 10_000), (3, 20_000)):
        chat.receipt("failed", at, attempt=attempt, source="sender", reason="refused", retryable=True)
        chat.later(at + 9_000)

    assert ("failed", 3, "refused") == tuple(chat.message()[name] for name in ("state", "attempt", "reason"))
    (request,) = chat.sent("human.requests")
    assert ("handover", "delivery.failed", "m-1") == (request.kind, request.rule, request.context["message_id"])
    assert {} == chat.state["timers"]


def test_a_person_is_asked_once_a_session() -> None:
    """A second failure in the session, or one while a hand-over is open, asks nobody again."""
    chat = Chat()
    for message_id in ("m-1", "m-2"):
        chat.reply(message_id)
        chat.receipt("failed", 100, message_id=message_id, reason="blocked")
    assert 1 == len(chat.sent("human.requests"))

    other = Chat()
    other.planning(handover={"request_id": "hr-1"})
    other.reply()
    other.receipt("failed", 100, reason="blocked")
    assert [] == other.sent("human.requests")


def test_messages_stay_bounded() -> None:
    """At most 12 messages are kept; the oldest go first, but none for which something is pending."""
    chat = Chat()
    chat.reply("m-0")  # never answered: its send stays pending
    for number in range(1, 60):
        chat.reply(f"m-{number}", at=number * 1_000)
        chat.receipt("read", number * 1_000 + 10, message_id=f"m-{number}")
        chat.sent_by_us(number * 1_000 + 20, message_id=f"m-{number}")
        chat.customer(number * 1_000 + 30)

    kept = list(chat.get("actions", "messages"))
    assert 12 == len(kept)
    assert {"m-0", "m-59"} <= set(kept)
    assert "m-1" not in kept


def test_presence_is_kept() -> None:
    """Whatever a customer's client does says that they are there; going offline says that they are not."""
    chat = Chat()
    chat.customer(1_000, "heartbeat")
    assert (True, T0 + 1_000) == (chat.get("actions", "online"), chat.get("actions", "last_online"))
    chat.customer(2_000, "offline")
    assert (False, T0 + 1_000) == (chat.get("actions", "online"), chat.get("actions", "last_online"))
    chat.reply(at=3_000)
    chat.receipt("read", HOUR, source="client")
    assert (True, T0 + HOUR) == (chat.get("actions", "online"), chat.get("actions", "last_online"))
