"""actions.outbound, delivery.receipts, delivery.states: from the rendered reply to the read mark (R-002-29)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from schemas.base import ConversationId, Duration, Id, Json, Language, Millis, Model, Name, Text
from schemas.events import Seal


class DeliveryState(StrEnum):
    """Where a message is. Order and moves are in the delivery step's table."""

    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    DISPLAYED = "displayed"
    READ = "read"
    FAILED = "failed"


class EvidenceRef(Model):
    """What a statement to the customer rests on, chosen from a closed list (R-004-15, R-004-16)."""

    kind: Literal["tool_result", "memory_write", "task_plan", "customer_message"]
    id: Id


class Choice(Model):
    """A numbered choice under a message."""

    number: int = Field(ge=1, le=9)
    label: Text


class OutboundMessage(Model):
    """actions.outbound v1: an approved template with its parameters, rendered."""

    message_id: Id = Field(description="also the channel's dedup id: a resend keeps it")
    session_id: Id
    attempt: int = Field(default=1, ge=1)
    kind: Literal["reply", "follow_up", "resend", "notice", "staff"]
    template_id: Name
    params: dict[str, Json] = Field(default_factory=dict)
    language: Language
    text: Text
    choices: tuple[Choice, ...] = ()
    in_reply_to: Id | None = None
    evidence: tuple[EvidenceRef, ...] = ()
    claims_success: bool = Field(default=False, description="says that something was done: needs a success result")
    seal: Seal | None = Field(
        default=None, description="as JSON: the clear `text` of a colleague, or the clear address"
    )
    to: ConversationId | None = Field(
        default=None, description="the linked conversation whose channel shows it; none: the record's own"
    )


class Receipt(Model):
    """delivery.receipts v1: what a channel, a client or our own sender reported."""

    receipt_id: Id
    message_id: Id
    attempt: int | None = Field(default=None, ge=1)
    state: Literal["queued", "sent", "delivered", "displayed", "read", "failed"]
    occurred_at: Millis | None = Field(default=None, description="the provider's time; never invented (A07)")
    reason: Text = ""
    source: Literal["sender", "vendor", "client"] = "vendor"
    vendor_id: Id | None = Field(default=None, description="sender: what the vendor's receipts will call the message")
    retryable: bool = Field(
        default=False, description="sender: outcome unknown or the fault may pass; a repeat keeps the message id (A13)"
    )


class DeliveryStatus(Model):
    """delivery.states v1: what we hold to be true of a message, and what changed it."""

    message_id: Id
    session_id: Id
    state: DeliveryState
    previous: DeliveryState | None
    attempt: int = Field(ge=1)
    at: Millis
    assumed: bool = Field(default=False, description="nobody reported it: a timer assumed it (R-002-30, X5)")
    reason: Text = ""
    receipt_id: Id | None = None
    out_of_order: bool = Field(default=False, description="a late receipt: kept in the history, state not lowered")
    provider_at: Millis | None = Field(default=None, description="the provider's time of this report, if it gave one")
    latency_ms: Duration | None = Field(default=None, description="queued to provider_at; null without it (A07)")
    unseen: tuple[DeliveryState, ...] = Field(default=(), description="lower states that nobody reported (A09)")
