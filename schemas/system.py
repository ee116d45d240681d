"""system.events, timers.fired and the dead letters: what the pipeline says of itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Id, Json, Millis, Model, Name, Text
from schemas.events import Seal


class SystemEvent(Model):
    """system.events v1: something that changed what the pipeline does."""

    event_id: Id
    kind: Literal[
        "pack_loaded",
        "model_loaded",
        "rules_loaded",
        "unsealed",
        "raw_viewed",
        "held",
        "hold_released",
        "forgotten",
        "memory_restored",
        "rollout",
        "checkpoint",
        "partition_paused",
        "partition_resumed",
    ]
    subject: Id
    by: Id
    at: Millis
    data: dict[str, Json] = Field(default_factory=dict)


class TimerFired(Model):
    """timers.fired v1: a deadline that passed, after everything appended before it was handled."""

    timer_id: Id = Field(description="conversation, version that set it, and its index there")
    name: Id
    due: Millis
    set_by: int = Field(ge=1, description="the state version that set it")
    data: dict[str, Json] = Field(default_factory=dict)


class DeadLetter(Model):
    """`*.dlq` v1: a record that can't be processed, byte for byte, with where it stood and why (promise 10)."""

    topic: Name
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    time: int = Field(description="append time, milliseconds; -1 unknown")
    reason: Text
    code: Name
    field: Text | None = None
    key: str | None = Field(description="base64 of the record's key; null if it had none")
    seal: Seal | None = Field(description="the exact value bytes, base64 inside the seal; null if the value was null")
    headers: tuple[tuple[str, str | None], ...] = Field(default=(), description="names and base64 values, in order")
    size: int = Field(ge=0)
    sealed_for: Id | None = Field(
        default=None, description="the owner of the seal's key: the conversation, or the letter; null: the topic"
    )
    session_id: Id | None = None
    record: dict[str, Json] | None = Field(
        default=None, description="the decoded value instead of the seal, where it was readable and holds no secret"
    )

    @property
    def owner(self) -> str:
        """Whose key the seal is under."""
        return self.sealed_for or f"topic:{self.topic}"
