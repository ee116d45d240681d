"""state.updates and state.diffs: the state of a conversation, and the register of all that changed it.

The sections' own shapes are in `schemas.sections`. A diff is the commit (promise 4): cause, gathered
inputs, changed values before and after, reasons and emits; everything else is derived from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from schemas.base import Id, Json, Model, Name, Text
from schemas.sections import (
    ActionsState,
    Bookkeeping,
    FeedbackState,
    IdentityState,
    MemoryState,
    PendingEffect,
    PerceptionState,
    PlanningState,
    SessionState,
    TimerState,
    ToolsState,
)

SCHEMA = 1


class ConversationState(Model):
    """The state bus's object for one conversation (R-002-46); version 0 is an empty one.

    A closed conversation is the same object with its sections emptied, kind `residue`: versions never
    start again, repeats are known, and the next message opens it again.
    """

    kind: Literal["state", "residue"] = "state"
    schema_: int = Field(default=SCHEMA, alias="schema")
    conversation: Id
    version: int = Field(ge=0)
    now: int = Field(ge=0, description="the latest time that a decision of this conversation saw, milliseconds")
    identity: IdentityState = IdentityState()
    session: SessionState | None = None
    perception: PerceptionState = PerceptionState()
    memory: MemoryState = MemoryState()
    planning: PlanningState = PlanningState()
    tools: ToolsState = ToolsState()
    actions: ActionsState = ActionsState()
    feedback: FeedbackState = FeedbackState()
    timers: dict[str, TimerState] = {}
    pending: dict[str, PendingEffect] = Field(default={}, description="declared effects without an outcome yet")
    runtime: Bookkeeping = Bookkeeping()


class Mark(Model):
    """The end of a checkpoint: up to where state.updates holds every state of its partition."""

    kind: Literal["mark"] = "mark"
    diff_offset: int = Field(ge=0, description="every state at or below this diff is on state.updates")
    handled: dict[str, int] = Field(description="input topic to the offset below which all is handled")
    unsent: int = Field(ge=0, description="the lowest diff offset whose emits were not all acknowledged")
    stamped_at: int


StateUpdate = Annotated[ConversationState | Mark, Field(discriminator="kind")]


class Cause(Model):
    """The record that a decision answers."""

    topic: Name
    partition: int
    offset: int
    time: int = Field(description="append time, milliseconds")
    id: Id = Field(description="CloudEvents id")
    type: Name
    trace: str = Field(default="", description="W3C traceparent")
    position: tuple[str, int, int] | None = Field(
        default=None, description="an emit's source conversation, version and index"
    )


class Change(Model):
    """One changed value. A missing `before` means that it was created, a missing `after` deleted."""

    path: str = Field(description="JSON Pointer, RFC 6901")
    before: Json = None
    after: Json = None

    @model_serializer(mode="wrap")
    def _as_it_was(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Null and missing are two things: only what was set is written."""
        return {name: value for name, value in dump(self).items() if name in self.model_fields_set}


class Reason(Model):
    """Why: the rule's id, in words, on what evidence."""

    rule: Name
    text: Text = ""
    evidence: tuple[str, ...] = ()


class EmitRecord(Model):
    """A record that follows from a decision."""

    topic: Name
    key: Id
    id: Id
    type: Name
    data: dict[str, Json]
    previous: tuple[int, int] = Field(
        description="version and index of this conversation's emit before it on that topic to that key; (0, 0) for none"
    )


class Diff(Model):
    """state.diffs v1: one decision, whole."""

    conversation: Id
    base: int = Field(ge=0)
    version: int = Field(ge=1)
    session_id: Id | None
    now: int
    cause: Cause
    gathered: dict[str, Json] = {}
    changes: tuple[Change, ...]
    reasons: tuple[Reason, ...] = Field(min_length=1)
    emits: tuple[EmitRecord, ...] = ()
    handled: dict[str, int] = Field(description="input topic to the offset below which all is handled")
    unsent: int = Field(ge=0, description="the lowest diff offset whose emits were not all acknowledged")
    whole: dict[str, Json] | None = Field(
        default=None, description="a session's first diff: the state before the changes"
    )
