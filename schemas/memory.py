"""memory.writes: the memory register (R-004-08): what was written, over what, by whom, because of what.

It is the only way into the stores. The writes of a key are a chain: each one's `value_before` is the
`value_after` of the one before it, and a rollback is a write like any other.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schemas.base import Id, Json, Millis, Model, Text

# conversation, kind and subject: `demo/web/u-1/preference/carrier`
WriteKey = Annotated[
    str, StringConstraints(max_length=256, pattern=r"^[^/~\x00-\x1f\x7f][^/\x00-\x1f\x7f]*(/[^/\x00-\x1f\x7f]+){4}$")
]
Remembered = dict[str, Json] | None
"""What is known under a key: `summary` (masked, one line) and fields, a clear value only in a `seal`; or nothing."""


def customer_of(conversation: str) -> tuple[str, str]:
    """Shop and customer as the stores name them; the customer is the whole conversation, so no two ever share one."""
    return conversation.partition("/")[0], conversation


class MemoryWrite(Model):
    """memory.writes v1. Tool text is no source (R-004-09)."""

    write_id: Id
    trace_id: Id = Field(description="the trace of the message, task or decision that it follows from")
    session_id: Id
    key: WriteKey = Field(description="conversation/kind/subject, such as demo/web/u-1/preference/carrier")
    value_before: Remembered
    value_after: Remembered = Field(description="null: from now on nothing is known under the key")
    source: Literal["assistant", "task_summary", "customer", "staff"]
    trigger_context: Text = Field(description="message, plan or decision and the rule; masked")
    timestamp: Millis
    undoes: tuple[Id, ...] = Field(default=(), description="the writes of the key that this one takes back")
    restores: Id | None = Field(default=None, description="the write whose value stands again; null: none did")


class MemoryRestore(Model):
    """One key that a person sets: back, as the register has it (R-004-11), or to a value of their own."""

    key: WriteKey
    head: Id | None = Field(description="the key's last write then; when another is the last now, nothing is set")
    now: Remembered = Field(description="its value then; counts only when the state no longer knows the key")
    value: Remembered
    undoes: tuple[Id, ...] = Field(default=(), description="none: a value of their own")
    restores: Id | None = None
