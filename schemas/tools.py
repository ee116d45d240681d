"""tools.calls and tools.results: a call is declared before it runs, and ends in one outcome (promise 6)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Duration, Id, Json, Millis, Model, Name, Text
from schemas.events import Seal

# Questions of our own, no calls of a plan: their outcomes ride on tools.results under names that no tool file can have.
RECALL, PROFILE, MODEL, WRITER = "memory.recall", "crm.profile", "model.reading", "model.remembering"
MODELS = frozenset({MODEL, WRITER})
READINGS = MODELS | {RECALL, PROFILE}


class ToolCall(Model):
    """tools.calls v1 (R-000-11, R-004-04): what will be called, with what, why, and until when."""

    call_id: Id
    session_id: Id
    plan_id: Id
    task_id: Id
    skill: Name
    tool: Name
    risk: Literal["query", "write", "money"]
    args: dict[str, Json] = Field(description="masked where sensitive")
    args_sensitive: tuple[Name, ...] = ()
    args_hash: str = Field(description="hex SHA-256 of tool and clear arguments, canonical JSON")
    seal: Seal | None = Field(default=None, description="the clear sensitive arguments, as JSON")
    seals: dict[Name, Seal] = Field(default={}, description="argument to its own seal, where several messages gave it")
    idempotency_key: Id
    purpose: Text
    expectation: Text
    declared_at: Millis
    deadline: Millis = Field(description="never started after this")
    timeout_ms: Duration
    review_id: Id | None = Field(default=None, description="the request whose approval allows it")


class ToolError(Model):
    """Why a call did not succeed."""

    code: Name
    message: Text


class TokenUsage(Model):
    """What a model call used (R-004-04)."""

    prompt: int = Field(ge=0)
    completion: int = Field(ge=0)


class ToolResult(Model):
    """tools.results v1: the one outcome of a declared call. A fallback is never a success."""

    result_id: Id
    call_id: Id
    tool: Name
    status: Literal["success", "failure", "timeout", "unknown", "refused", "fallback", "cancelled"]
    data: dict[str, Json] = Field(default_factory=dict)
    summary: Text = Field(default="", description="the outcome in words, for people")
    before: dict[str, Json] | None = None
    after: dict[str, Json] | None = None
    error: ToolError | None = None
    attempts: int = Field(default=1, ge=0)
    duration_ms: Duration = 0
    finished_at: Millis
    duplicate: bool = Field(default=False, description="the effect had happened before under this key")
    token_usage: TokenUsage | None = Field(default=None, description="of a tool that is a model")
    confirmed_by: Literal["answer", "query", "none"] = "answer"
    seal: Seal | None = Field(default=None, description="clear values of what is masked in `data`, as JSON")
