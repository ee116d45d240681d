"""human.requests and human.decisions: what people are asked, and what they decided."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Id, Json, Millis, Model, Name, Text
from schemas.events import Seal
from schemas.memory import MemoryRestore


class HumanRequest(Model):
    """human.requests v1: a hand-over of the conversation, or the review of one call (R-003-13, R-003-18)."""

    request_id: Id
    session_id: Id
    kind: Literal["handover", "review"]
    rule: Name
    reason: Text
    requested_at: Millis
    expires_at: Millis | None = None
    call_hash: str | None = Field(default=None, description="a review: hash of tool and arguments that it is bound to")
    tool: Name | None = None
    args: dict[str, Json] = Field(default_factory=dict, description="masked")
    context: dict[str, Json] = Field(default_factory=dict, description="what the person needs to go on")
    status: Literal["open", "closed"] = Field(default="open", description="closed: nobody need answer it any more")
    asked: int = Field(default=1, ge=1, description="how often people were asked, this time included")


class HumanDecision(Model):
    """human.decisions v1: a person's word. It beats every rule (X9)."""

    decision_id: Id
    kind: Literal["approve", "refuse", "takeover", "release", "reply", "memory"]
    by: Id
    decided_at: Millis
    request_id: Id | None = None
    call_hash: str | None = None
    reason: Text = Field(default="", description="masked")
    text: Text = Field(default="", description="a reply's words to the customer, masked")
    seal: Seal | None = Field(default=None, description="the clear `text` and `reason` as JSON, where they were masked")
    memory: tuple[MemoryRestore, ...] = Field(default=(), description="memory: what is set, by key")
    undone_trace: Id | None = Field(default=None, description="memory: the trace whose writes are rolled back")
