"""messages.normalized: every kind of customer input as one checked message (R-002-02, R-002-03, X4)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Fen, Id, Language, Millis, Model, Name, Share, Text
from schemas.events import Seal

INTENTS = (
    "refund", "refund_status", "refund_amount", "return", "return_status", "exchange", "change_phone", "points",
    "cancel", "change_address", "change_order", "invoice", "logistics", "hurry_up", "payment", "coupon_price",
    "product_question", "complaint", "account", "human", "greeting", "thanks", "confirm", "deny", "stop",
    "out_of_scope", "inform",
)  # fmt: skip
"""What a customer may mean. A flow file names those that begin it; a reader of messages may know more."""


class Evidence(Model):
    """A field and the span of the raw text that it was read from (R-002-48)."""

    field: Name
    value: Text
    start: int = Field(ge=0, description="first code point of the raw text")
    end: int = Field(ge=0, description="one past the last code point")


class TargetItem(Model):
    """The thing that the customer talks of."""

    category: Text | None = None
    sku_id: Id | None = None
    order_id: Id | None = None
    colour: Text | None = None
    size: Text | None = None


class Address(Model):
    """A postal address or phone that the customer gave; the clear value is in the seal."""

    text: Text
    phone: Text | None = Field(default=None, description="masked")


class SecondaryIntent(Model):
    """Another wish in the same message, with its own slots."""

    intent: Name
    confidence: Share
    target_item: TargetItem | None = None
    amount: Fen | None = None
    address: Address | None = None


class MessageRef(Model):
    """Which message this is: ids for tracing, not part of the reading."""

    message_id: Id
    event_id: Id
    session_id: Id
    at: Millis = Field(description="checked event time")
    revision: int = Field(default=1, ge=1)
    time_assumed: bool = Field(default=False, description="no believable customer's clock: `at` is the append time")


class NormalizedMessage(Model):
    """messages.normalized v1: 12 fields, 7 required and 5 conditional, and the ids of the message."""

    ref: MessageRef
    intent: Name
    confidence: Share
    evidence: tuple[Evidence, ...]
    urgency: Literal["low", "medium", "high"] = "medium"
    language: Language
    sentiment: Literal["angry", "impatient", "disappointed", "neutral", "pleased"]
    text: Text = Field(description="masked")
    target_item: TargetItem | None = None
    amount: Fen | None = None
    address: Address | None = None
    time_reference: Text | None = None
    secondary_intents: tuple[SecondaryIntent, ...] = ()
    return_words: bool = Field(default=False, description="the customer used words of returning (R-000-18)")
    reason: Text | None = Field(default=None, description="why they want it, when they said so")
    seal: Seal | None = Field(default=None, description="clear values of masked slots, as JSON by field")
    marks: tuple[Name, ...] = Field(
        default=(), description="what a reader of the message should know: `missing_item`, `unreadable`, "
        "`contradicts_return_words`, `late`, `resolved`"
    )  # fmt: skip
