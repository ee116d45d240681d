"""Channels of vendors: their names for our messages, and those that never say what was displayed."""

from __future__ import annotations

import dataclasses

from streams.delivery.settings import DeliverySettings
from streams.delivery.step import delivery_step
from tests.streams.conversation import Conversation, row
from tests.streams.delivery.chat import Chat


class VendorChat(Chat):
    """A conversation over a channel that shows a repeat twice and reports no display."""

    def __init__(self, channel: str = "wechat") -> None:
        settings = dataclasses.replace(DeliverySettings(), blind=frozenset({"wechat"}))
        Conversation.__init__(self, row("delivery", delivery_step(settings)), conversation=f"shop-1/{channel}/li")
        self._receipts = 0

    def named(self, at: int, vendor_id: str) -> None:
        """Our sender reports that the channel took it, and what it calls it."""
        self.receipt("sent", at, source="sender", vendor_id=vendor_id)


def test_a_blind_channel_is_sent_nothing_twice() -> None:
    """Where no display can be reported, no one resends because none was (R-002-31); elsewhere it is resent."""
    blind, seeing = VendorChat(), VendorChat("web")
    for chat in (blind, seeing):
        chat.reply()
        chat.sent_by_us(100)
        chat.later(60_000)

    assert [] == blind.outbound("resend")
    assert "delivery.resend.blind" in blind.rules()
    assert 1 == len(seeing.outbound("resend"))


def test_a_roots_message_in_a_blind_channel_is_not_resent() -> None:
    """What counts is the channel that shows it, not the root's own (R-002-31, R-003-05)."""
    chat = VendorChat("web")
    chat.reply(to="shop-1/wechat/li")
    chat.sent_by_us(100)
    chat.later(60_000)

    assert [] == chat.outbound("resend")
    assert "delivery.resend.blind" in chat.rules()


def test_a_receipt_under_the_vendors_name_is_joined() -> None:
    """A vendor's report that names the message its own way counts for ours, with its reason."""
    chat = VendorChat()
    chat.reply()
    chat.named(100, "wechat:200163836")
    chat.receipt("failed", 2_000, message_id="wechat:200163836", reason="failed:user block")

    assert ("failed", False) == chat.held()
    assert "failed:user block" == chat.message()["reason"]
    assert 1 == len(chat.sent("human.requests"))


def test_a_receipt_that_comes_before_the_name_is_parked_and_joined() -> None:
    """The vendor's report may overtake our sender's: it waits, then counts (case A03)."""
    chat = VendorChat()
    chat.reply()
    chat.receipt("delivered", 50, message_id="wechat:7")
    assert ("queued", False) == chat.held()
    chat.named(100, "wechat:7")

    assert ("delivered", False) == chat.held()
    assert [] == chat.get("actions", "parked")


def test_another_messages_name_is_not_taken() -> None:
    """A report under a name that nobody gave stays parked, and touches no message."""
    chat = VendorChat()
    chat.reply()
    chat.named(100, "wechat:7")
    chat.receipt("delivered", 200, message_id="wechat:8")

    assert ("sent", False) == chat.held()
    assert 1 == len(chat.get("actions", "parked"))
