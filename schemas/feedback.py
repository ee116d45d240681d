"""feedback.signals, feedback.health, feedback.causes: how a session goes (R-002-35 to R-002-41)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Id, Json, KeyPart, Millis, Model, Name, Text

SignalKind = Literal["reply_latency", "correction", "interruption", "deviation", "repeat", "rating"]


class Signal(Model):
    """feedback.signals v1: one implicit (or explicit) sign of how it goes."""

    signal_id: Id
    session_id: Id
    kind: SignalKind
    value: float = Field(description="reply_latency: milliseconds; rating: 1 to 5; else 1.0")
    at: Millis = Field(description="event time")
    time_assumed: bool = Field(default=False, description="the customer's clock could not be trusted")
    message_id: Id | None = None
    evidence: Text = ""


class Health(Model):
    """feedback.health v1: one session's score in one window, with the parts that made it (R-002-40)."""

    session_id: Id
    shop: KeyPart
    channel: KeyPart
    window_start: Millis
    window_end: Millis
    score: int = Field(ge=0, le=100)
    parts: dict[str, float] = Field(description="points taken off 100, by signal")
    signals: dict[str, int] = Field(description="how many of each")
    revision: int = Field(default=0, ge=0, description="above 0: a late event changed the score")


class CauseFinding(Model):
    """feedback.causes v1: the module at fault for a surge, with its evidence (R-002-41)."""

    finding_id: Id
    signal: SignalKind
    module: Name
    window_start: Millis
    ratio: float
    evidence: dict[str, Json] = Field(default_factory=dict)
    summary: Text = ""
