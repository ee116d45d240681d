"""memory.writes: the memory register (R-004-08): what was written, over what, by whom, because of what."""

from __future__ import annotations

from typing import Literal

from schemas.base import Id, Json, Millis, Model, Text


class MemoryWrite(Model):
    """memory.writes v1. Tool text is no source (R-004-09)."""

    write_id: Id
    trace_id: Id
    session_id: Id
    key: Id
    value_before: Json
    value_after: Json
    source: Literal["assistant", "task_summary", "customer", "staff"]
    trigger_context: Text
    timestamp: Millis
