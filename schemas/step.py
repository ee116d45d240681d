"""What a step sees and does: an Input, a Draft that records every change, and the Decision that comes out.

A step is a function `step(draft, input) -> None`. It reads `draft.get`, writes `draft.set`, and never
reads a clock, a random number or another conversation (promise 5). States are plain JSON dictionaries
that nobody mutates: a change copies only the dictionaries along its path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.base import Model

State = Mapping[str, Any]
MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING", "__bool__": lambda _: False})()


@dataclass(frozen=True, slots=True)
class Input:
    """One record for a conversation, decoded and checked.

    `value` is the topic's model, or None for a record without a value. `time` is the broker's append
    time in milliseconds. `clear` is the opened seal (a dict or None), for steps whose row may open it.
    """

    topic: str
    partition: int
    offset: int
    time: int
    key: str
    id: str
    type: str
    value: Any
    trace: str = ""
    position: tuple[str, int, int] | None = None
    previous: tuple[int, int] | None = None
    clear: Any = None
    gathered: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Emit:
    """A record that follows from the decision; `key` is a conversation id."""

    topic: str
    key: str
    id: str
    value: Model


@dataclass(frozen=True, slots=True)
class Decision:
    """What a step decided: changes `(path, before, after)`, reasons `(rule, text, evidence)`, emits."""

    state: State
    changes: tuple[tuple[tuple[str, ...], Any, Any], ...]
    reasons: tuple[tuple[str, str, tuple[str, ...]], ...]
    emits: tuple[Emit, ...]


def same(left: Any, right: Any) -> bool:
    """JSON equality: 1, 1.0 and true differ (case J03)."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def put(state: State, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The state with `value` at `path` (MISSING deletes); the one given is left as it was."""
    copy = dict(state)
    if len(path) == 1:
        if value is MISSING:
            copy.pop(path[0], None)
        else:
            copy[path[0]] = value
        return copy
    copy[path[0]] = put(copy.get(path[0]) or {}, path[1:], value)
    return copy


def look(state: Any, path: tuple[str, ...], default: Any = None) -> Any:
    """The value at `path`, or `default`."""
    for part in path:
        if not isinstance(state, dict) or part not in state:  # not Mapping: its check is ten times slower
            return default
        state = state[part]
    return state


class Draft:
    """A decision in the making. `now` is the later of the cause's append time and the state's last now."""

    def __init__(self, state: State, cause: Input) -> None:
        self.state = state
        self.cause = cause
        self.origin = state
        # Never back: append times of two topics are not in order, and a deadline must not be set in the past.
        self.now = max(cause.time, state["now"])
        self.version: int = state["version"] + 1
        self.conversation: str = state["conversation"]
        self.emits: list[Emit] = []
        self._touched: dict[tuple[str, ...], None] = {}
        self._reasons: list[tuple[str, str, tuple[str, ...]]] = []
        self._ids = 0

    def get(self, *path: str, default: Any = None) -> Any:
        """The value at the path as this decision has it so far. Never mutate it."""
        return look(self.state, path, default)

    def set(self, value: Any, *path: str) -> None:
        """Set a JSON value (model dumps included: plain dict, list, str, int, float, bool, None).

        An object over an object changes only the keys that differ, so that diffs stay small.
        """
        current = look(self.state, path, MISSING)
        if type(current) is dict and type(value) is dict and current.keys() & value.keys():
            for key in [name for name in current if name not in value]:  # a set has another order in each process
                self._put(MISSING, (*path, key))
            for key, part in value.items():
                self.set(part, *path, key)
            return
        if current is not MISSING and value is not MISSING and same(current, value):
            return
        if current is MISSING and value is MISSING:
            return
        parent: Any = self.state
        for length, name in enumerate(path[:-1], 1):  # a missing parent is created by the same change
            parent = parent.get(name)
            if not isinstance(parent, dict):
                for part in reversed(path[length:]):
                    value = {part: value}
                path = path[:length]
                break
        self._put(value, path)

    def _put(self, value: Any, path: tuple[str, ...]) -> None:
        self._touched[path] = None
        self.state = put(self.state, path, value)

    def delete(self, *path: str) -> None:
        """Remove the value at the path, if it is there."""
        self.set(MISSING, *path)

    def new_id(self, prefix: str) -> str:
        """An id derived from the cause and a running index: the same at every replay."""
        self._ids += 1
        cause = self.cause
        seed = f"{self.conversation}|{cause.topic}|{cause.id}|{self.version}|{self._ids}"
        return f"{prefix}-{hashlib.sha256(seed.encode()).hexdigest()[:20]}"

    def emit(self, topic: str, value: Model, key: str | None = None) -> str:
        """A record to publish after the commit, keyed by this conversation unless said; its id."""
        emit_id = f"{hashlib.sha256(self.conversation.encode()).hexdigest()[:12]}.{self.version}.{len(self.emits)}"
        self.emits.append(Emit(topic, key or self.conversation, emit_id, value))
        return emit_id

    def reason(self, rule: str, text: str = "", *evidence: str) -> None:
        """Why: a rule's id, in words, on what evidence (message, call, rule or record ids)."""
        self._reasons.append((rule, text, evidence))

    def timer(self, name: str, due: int, data: dict[str, Any] | None = None) -> None:
        """Start (or restart) the named deadline; names start with the processor's, as `delivery.`."""
        self._ids += 1
        self.set({"due": due, "set_by": self.version, "index": self._ids, "data": data or {}}, "timers", name)

    def cancel(self, name: str) -> None:
        """Stop the named deadline, if it runs."""
        self.delete("timers", name)

    def effect(
        self, effect_id: str, kind: str, *, key: str, timeout_ms: int, deadline: int, request: dict[str, Any]
    ) -> None:
        """Declare a call ("tool") or a send ("send"): it runs after the commit, outside the lanes."""
        pending = {
            "kind": kind,
            "key": key,
            "declared_at": self.now,
            "deadline": deadline,
            "timeout_ms": timeout_ms,
            "set_by": self.version,
            "request": request,
        }
        self.set(pending, "pending", effect_id)

    def settle(self, effect_id: str) -> bool:
        """The effect has its outcome; False if it was not pending (a repeat)."""
        known = self.get("pending", effect_id) is not None
        self.delete("pending", effect_id)
        return known

    def mark(self) -> tuple[Any, ...]:
        """Where the draft stands, for `rewind`."""
        return self.state, tuple(self.emits), dict(self._touched), tuple(self._reasons), self._ids

    def rewind(self, mark: tuple[Any, ...]) -> None:
        """As it was at the mark: nothing that was set, emitted or said since then is left."""
        self.state, emits, self._touched, reasons, self._ids = mark
        self.emits, self._reasons = list(emits), list(reasons)

    def finish(self) -> Decision:
        """The decision: changes with before and after, reasons and emits."""
        changes = []
        for path in self._touched:
            # Paths are looked at as they ended: a value set and set back is no change at all.
            if any(path[:length] in self._touched for length in range(1, len(path))):
                continue  # covered by the change of a parent
            before, after = look(self.origin, path, MISSING), look(self.state, path, MISSING)
            if (before is MISSING) != (after is MISSING) or not same(before, after):
                changes.append((path, before, after))
        return Decision(self.state, tuple(changes), tuple(self._reasons), tuple(self.emits))


Step = Callable[[Draft, Input], None]
Needs = Callable[[State, Input], Mapping[str, Any]]
