"""session: closes a conversation that has been silent for long enough, when nothing of it is pending."""

from __future__ import annotations

from typing import Any

from memory.bus import empty
from schemas.step import Draft, Input, Step
from schemas.topics import INPUT_TOPICS
from streams.runtime.table import Row
from streams.runtime.wire import SYSTEM_TOPICS
from streams.settings import Settings

TIMER = "session.close"
# `runtime`: versions, known ids and emit positions go on; `feedback`: a repeat is found across sessions (3 days)
KEPT = ("kind", "schema", "conversation", "version", "now", "runtime", "feedback", "session")


def session_step(close_after_ms: int) -> Step:
    """One deadline runs while the conversation is open; when it fires, it looks how long the silence is.

    (Not set anew by every event: that would be one more change in each diff.)
    """

    def step(draft: Draft, cause: Input) -> None:
        if cause.topic == "timers.fired" and cause.value.name == TIMER:
            _close(draft, close_after_ms)
        elif draft.get("timers", TIMER) is None:
            draft.timer(TIMER, draft.now + close_after_ms)

    return step


def _close(draft: Draft, close_after_ms: int) -> None:
    """A versioned decision like any other; what is left is the residue (design: state bus)."""
    silent_since = _last_heard(draft)
    if draft.now - silent_since < close_after_ms:
        draft.timer(TIMER, silent_since + close_after_ms)
        draft.reason("session.active", "the customer was heard meanwhile")
        return
    if open_work(draft):
        draft.timer(TIMER, draft.now + close_after_ms)
        draft.reason("session.kept", "a call, message, deadline or person is still pending")
        return
    # sections are reset, not removed: a state has the same shape open and closed
    nothing = empty(draft.conversation)
    # what is known of the customer is the ground of the next write (R-004-08), in whatever year it comes
    nothing["memory"]["known"] = draft.get("memory", "known", default={})
    for section in nothing:
        if section not in KEPT:
            draft.set(nothing[section], section)
    draft.set("residue", "kind")
    draft.reason("session.closed", "silent, and nothing pending")


def _last_heard(draft: Draft) -> int:
    """When the customer last wrote or was seen, milliseconds; 0 when never."""
    wrote: int = draft.get("session", "last_customer_at", default=0)
    seen: int = draft.get("actions", "last_online") or 0
    return max(wrote, seen)


def open_work(draft: Draft) -> bool:
    """Whether a call, a message, a deadline, a flow or a person is still at work on the conversation."""
    planning: dict[str, Any] = draft.get("planning")
    return bool(draft.get("pending") or draft.get("timers") or planning["flows"] or planning["queue"]
                or planning["reviews"] or planning["owner"] == "human")  # fmt: skip


def row(settings: Settings) -> Row:
    """The session row; it runs last, so that it sees what the others left pending."""
    return Row(
        name="session",
        inputs=tuple(topic for topic in INPUT_TOPICS if topic not in SYSTEM_TOPICS),  # a late fact opens it again, too
        step=session_step(settings.close_after_ms),
        failure_domain="the state bus of one partition",
        degrade="the conversation stays open in memory, all else goes on; with work pending its deadline is set anew",
        alarm="InterlockStatesGrow: interlock_states_open rises for a day",
        optional=True,
    )
