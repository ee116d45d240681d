"""Receipts ahead of their message: parked, joined, or orphaned with a reason (case A03)."""

from __future__ import annotations

import base64

from tests.streams.conversation import T0
from tests.streams.delivery.chat import Chat

TEN_MINUTES = 600_000


def test_a_receipt_waits_for_its_message() -> None:
    """`delivered` that comes before our record is parked, then joined: it ends delivered (case A03)."""
    chat = Chat()
    chat.receipt("delivered", 200, message_id="m-103")
    assert 1 == len(chat.get("actions", "parked"))
    chat.reply("m-103", at=500)

    assert ("delivered", False) == chat.held("m-103")
    assert ([], {}) == (chat.get("actions", "parked"), {k: v for k, v in chat.state["timers"].items() if "parked" in k})


def test_parked_receipts_join_by_rank() -> None:
    """Several parked receipts of a message end in the highest, whatever their order (case A03, case A07)."""
    chat = Chat()
    for at, state in ((10, "read"), (20, "sent"), (30, "delivered")):
        chat.receipt(state, at)  # type: ignore[arg-type]
    chat.receipt("delivered", 40, message_id="m-other")
    chat.reply(at=50)

    assert ("read", False) == chat.held()
    assert ["m-other"] == [entry["receipt"]["message_id"] for entry in chat.get("actions", "parked")]


def test_a_receipt_without_a_message_is_an_orphan() -> None:
    """After ten minutes it is a dead letter with coordinates, value and reason (case A03)."""
    chat = Chat()
    chat.receipt("delivered", 200, message_id="m-103")
    offset = chat.decided[-1].cause.offset
    chat.later(200 + TEN_MINUTES - 1)
    assert [] == chat.sent("delivery.receipts.dlq")
    chat.later(200 + TEN_MINUTES)

    (letter,) = chat.sent("delivery.receipts.dlq")
    assert ("delivery.receipts", 3, offset, "orphan") == (letter.topic, letter.partition, letter.offset, letter.code)
    assert ("m-103", T0 + 200) == (letter.record["message_id"], letter.time)
    assert "no send record in 600 s" in letter.reason
    assert b"shop-1/web/li" == base64.b64decode(letter.key)
    assert [] == chat.get("actions", "parked")


def test_parking_is_bounded() -> None:
    """The seventeenth parked receipt makes the oldest an orphan at once: nothing grows, nothing is silent."""
    chat = Chat()
    for number in range(17):
        chat.receipt("delivered", number, message_id=f"m-{number}")

    assert 16 == len(chat.get("actions", "parked"))
    (letter,) = chat.sent("delivery.receipts.dlq")
    assert "m-0" == letter.record["message_id"]


def test_each_receipt_has_its_own_ten_minutes() -> None:
    """The deadline follows the oldest parked receipt; a later one keeps its whole time."""
    chat = Chat()
    chat.receipt("delivered", 0, message_id="m-a")
    chat.receipt("delivered", 60_000, message_id="m-b")
    chat.later(TEN_MINUTES)
    assert ["m-a"] == [letter.record["message_id"] for letter in chat.sent("delivery.receipts.dlq")]
    chat.later(TEN_MINUTES + 60_000)
    assert ["m-a", "m-b"] == [letter.record["message_id"] for letter in chat.sent("delivery.receipts.dlq")]
    assert {} == chat.state["timers"]
