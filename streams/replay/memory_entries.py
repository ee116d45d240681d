"""The entries of the memory register as people read them: writes, and what staff decided about them (R-004-10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas.memory import MemoryRestore, MemoryWrite, Remembered
from schemas.people import HumanDecision
from streams.replay.words import when


def entry_of(write: MemoryWrite) -> dict[str, Any]:
    """A write as one entry of the register."""
    return {"entry": "write", **write.model_dump(mode="json")}


def entries_of(writes: Iterable[MemoryWrite], decisions: Iterable[HumanDecision], key: str) -> list[dict[str, Any]]:
    """The entries of a key in their order: writes, and before those that follow from one the decisions of staff."""
    made = [(write.timestamp, entry_of(write)) for write in writes]
    # by the clock of who decided it may come behind what follows from it
    follows = {entry["trigger_context"].partition(": ")[0]: time for time, entry in reversed(made)}
    asked = [
        (follows.get(decision.decision_id, decision.decided_at), _asked(decision, restore))
        for decision in decisions for restore in decision.memory if restore.key == key
    ]  # fmt: skip
    return [entry for _, entry in sorted([*asked, *made], key=lambda one: one[0])]


def _asked(decision: HumanDecision, restore: MemoryRestore) -> dict[str, Any]:
    return {
        "entry": "decision", "decision_id": decision.decision_id, "key": restore.key, "by": decision.by,
        "reason": decision.reason, "undone_trace": decision.undone_trace, "value_before": restore.now,
        "value_after": restore.value, "timestamp": decision.decided_at,
    }  # fmt: skip


def text_of(entry: dict[str, Any]) -> str:
    """One entry on one line."""
    what = f"{summary(entry['value_before'])} -> {summary(entry['value_after'])}"
    if entry["entry"] == "decision":
        asked = f"rollback of {entry['undone_trace']}" if entry["undone_trace"] else "set"
        why = f": {entry['reason']}" if entry["reason"] else ""
        head = f"{when(entry['timestamp'])}  {entry['decision_id']}  {entry['key']}  {what}"
        return f"{head}  asked by {entry['by']}, {asked}{why}"
    return (f"{when(entry['timestamp'])}  {entry['write_id']}  {entry['key']}  {what}  {entry['source']}, "
            f"{entry['trigger_context']}  trace {entry['trace_id']}")  # fmt: skip


def summary(value: Remembered) -> str:
    """What is remembered in a few words."""
    return "nothing" if value is None else str(value.get("summary", value))
