"""From a state and one input to a whole decision: pure, the same today, in a year, and in replay (promise 5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from memory.bus import apply, pointer, recent_key, sent_key
from schemas.step import MISSING, Decision, Draft, Input, State
from schemas.topics import TOPICS
from streams.runtime.table import Row

log = logging.getLogger(__name__)

REPEAT = "repeat"  # an emit that was published again was handled before
REDELIVERED = "redelivered"  # this very record was handled before
AHEAD = "ahead"  # an emit whose predecessor was not handled: its emitter will publish both again


class StepFailedError(Exception):
    """A step raised: our bug, on this record. The record becomes a dead letter with the step's name."""

    def __init__(self, row: str, cause: BaseException) -> None:
        super().__init__(f"step {row} failed: {type(cause).__name__}")
        self.row = row


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that is ready to commit: the diff (but for `handled` and `unsent`), and the state after it."""

    cause: Input
    before: State
    after: dict[str, Any]
    diff: dict[str, Any]

    def encoded(self, handled: Mapping[str, int], unsent: int) -> bytes:
        """The diff as it is committed, with what was handled and sent by then."""
        self.diff["handled"], self.diff["unsent"] = handled, unsent
        return orjson.dumps(self.diff)


def standing(state: State, cause: Input) -> str | None:
    """REDELIVERED, REPEAT or AHEAD for a record that must not be decided (now), None for one that must."""
    runtime = state["runtime"]
    if cause.offset <= runtime["at"].get(cause.topic, -1):
        return REDELIVERED
    if cause.position is None:
        return None
    source, version, index = cause.position
    # versions begin at 1, so (0, 0) lies below every position
    heard = tuple(runtime["heard"].get(f"{cause.topic}|{source}", (0, 0)))
    if (version, index) <= heard:
        return REPEAT
    return AHEAD if cause.previous is not None and cause.previous > heard else None


def decide(rows: Sequence[Row], state: State, cause: Input) -> Decided:
    """Run the topic's steps in table order. Raises StepFailedError when one of them does."""
    shut = cause if cause.clear is None else replace(cause, clear=None)
    draft = Draft(state, shut)
    if cause.value is None:
        draft.reason("runtime.null", "a record without a value asks for nothing here")
    elif cause.position is None and recent_key(cause.topic, cause.id) in state["runtime"]["recent"]:
        draft.reason("runtime.duplicate", "this id was handled before", cause.id)
    elif cause.topic == "timers.fired" and not _take_timer(draft, cause):
        draft.reason("runtime.timer_stale", "the deadline was cancelled or set anew", cause.id)
    else:
        if draft.get("kind") != "state":
            draft.set("state", "kind")
        for row in rows:
            _run(row, draft, cause if row.opens_seal else shut)  # clear text is for those alone who may have it
        return finish(draft)
    return finish(unopened(draft))


def unopened(draft: Draft) -> Draft:
    """The draft of a record that no step takes: it opens no conversation that never was, but leaves a residue.

    An open state without a deadline would stay in memory for ever, one for each key that somebody makes up.
    """
    if draft.version == 1 and not draft.conversation.startswith("~"):
        draft.set("residue", "kind")
    return draft


def _run(row: Row, draft: Draft, cause: Input) -> None:
    """One step; what an optional one had done when it raised is taken back, and the others go on (R-002-49)."""
    mark = draft.mark() if row.optional else None
    try:
        row.step(draft, cause)
    except Exception as error:
        log.exception("step %s failed on %s [%d] at %d", row.name, cause.topic, cause.partition, cause.offset)
        if mark is None:
            raise StepFailedError(row.name, error) from error
        # all of it: half of what a step sets is worse than nothing
        draft.rewind(mark)
        draft.reason("runtime.step_left_out", f"{row.name} failed: {type(error).__name__}", cause.id)


def _take_timer(draft: Draft, cause: Input) -> bool:
    timer = draft.get("timers", cause.value.name)
    if timer is None or timer["set_by"] != cause.value.set_by:
        return False
    # before the steps run: one that sets the same name anew must not be undone
    draft.cancel(cause.value.name)
    return True


def finish(draft: Draft) -> Decided:
    """The draft as a diff, applied by the same code that recovery and replay use."""
    before = draft.origin
    decision = draft.finish()
    diff = _diff(draft, decision)
    return Decided(draft.cause, before, apply(before, diff), diff)


def _diff(draft: Draft, decision: Decision) -> dict[str, Any]:
    before, cause = draft.origin, draft.cause
    session, earlier = decision.state["session"], before["session"]
    diff: dict[str, Any] = {
        "conversation": draft.conversation,
        "base": draft.version - 1,
        "version": draft.version,
        "session_id": session["id"] if session else None,
        "now": draft.now,
        "cause": {
            "topic": cause.topic, "partition": cause.partition, "offset": cause.offset, "time": cause.time,
            "id": cause.id, "type": cause.type, "trace": cause.trace,
            "position": list(cause.position) if cause.position else None,
        },
        "gathered": dict(cause.gathered),
        "changes": [_change(*change) for change in decision.changes],
        "reasons": [{"rule": rule, "text": text, "evidence": list(evidence)}
                    for rule, text, evidence in decision.reasons or (("runtime.unchanged", "", ()),)],
        "emits": _emits(draft, decision),
        "whole": None,
    }  # fmt: skip
    if session and session["id"] != (earlier or {}).get("id"):
        diff["whole"] = before  # a session's first diff starts from the whole state
    return diff


def _change(path: tuple[str, ...], before: Any, after: Any) -> dict[str, Any]:
    change = {"path": pointer(path)}
    if before is not MISSING:
        change["before"] = before
    if after is not MISSING:
        change["after"] = after
    return change


def _emits(draft: Draft, decision: Decision) -> list[dict[str, Any]]:
    last: dict[str, Sequence[int]] = dict(draft.origin["runtime"]["sent"])
    emits = []
    # each names the one before it on its topic to that key, so that a reader notices one that is missing
    for index, emit in enumerate(decision.emits):
        row = sent_key(emit.topic, emit.key, draft.conversation)
        previous = last.get(row, (0, 0))
        emits.append({
            "topic": emit.topic, "key": emit.key, "id": emit.id, "type": TOPICS[emit.topic].type,
            "data": emit.value.model_dump(mode="json"), "previous": list(previous),
        })  # fmt: skip
        last[row] = (draft.version, index)
    return emits


def by_topic(rows: Sequence[Row]) -> Mapping[str, tuple[Row, ...]]:
    """The rows of each input topic, in table order."""
    topics = {topic for row in rows for topic in row.inputs}
    return {topic: tuple(row for row in rows if topic in row.inputs) for topic in topics}
