"""What is done with a customer's sealed values stands in the conversation's register; forgetting empties its state."""

from __future__ import annotations

from memory.bus import empty
from schemas.step import Draft
from schemas.system import SystemEvent

RECORDED = frozenset({"unsealed", "raw_viewed", "held", "hold_released"})
FORGOTTEN = "forgotten"
# What goes on: versions, known ids and emit positions; the session's ids; health windows that are still open.
_KEPT = frozenset({"kind", "schema", "conversation", "version", "now", "runtime", "session", "feedback", "timers"})
_COUNTS = ("windows", "forgotten", "last_score")
_GOES_ON = ("feedback.window", "session.")  # timers: a window is still scored, and then the conversation closes


def record(draft: Draft, event: SystemEvent) -> None:
    """The part of the system step for a customer's conversation."""
    if event.kind == FORGOTTEN:
        _forget(draft)
    if event.kind in RECORDED or event.kind == FORGOTTEN:
        # Looking at a conversation must not open it again: without a deadline it would stay in memory for ever.
        if draft.origin["kind"] != "state" or draft.version == 1:
            draft.set("residue", "kind")
        told = "; ".join(f"{name}: {value}" for name, value in event.data.items())
        draft.reason(f"privacy.{event.kind}", f"by {event.by}; {told}", event.event_id)


def _forget(draft: Draft) -> None:
    """Nothing that was said, known or done stays, and nothing that waits; counts and scores do."""
    nothing = empty(draft.conversation)
    for section in [name for name in draft.state if name not in _KEPT]:
        if section in nothing:
            draft.set(nothing[section], section)
        else:
            draft.delete(section)
    feedback = draft.get("feedback", default={})
    draft.set({**nothing["feedback"], **{name: feedback[name] for name in _COUNTS if name in feedback}}, "feedback")
    for name in [name for name in draft.get("timers") if not name.startswith(_GOES_ON)]:
        draft.cancel(name)
    if not draft.get("timers"):
        draft.set("residue", "kind")
