"""The state bus: every open conversation's state, in process, versioned, written by compare-and-set.

A diff applied to the state before it gives the state after it, here, at recovery and in replay: `apply`
is the only code that does so. States at rest are JSON bytes; the hot ones are also kept decoded.
"""

from __future__ import annotations

import base64
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from schemas.state import SCHEMA
from schemas.step import MISSING, State, look, put, same

RECENT_MS = 86_400_000  # producers' event ids are remembered for a day,
RECENT_MAX = 256  # and no more than this of them a conversation
# Known by their offset alone: rubbish under a customer's key must not push out what the customer sent (case A15).
NAMELESS = frozenset({"unreadable", "null", "pause"})


class VersionConflictError(Exception):
    """Two writers, or a gap: a bug, which stops the partition (promise 2 and 3)."""

    def __init__(self, conversation: str, expected: int, found: int) -> None:
        super().__init__(f"{conversation}: expected version {expected}, found {found}: a gap, or two writers")
        self.conversation, self.expected, self.found = conversation, expected, found


class DiffMismatchError(Exception):
    """A diff says of a value what it was before, and the state has another: log and state are not of one history."""

    def __init__(self, conversation: str, version: int, path: str) -> None:
        super().__init__(f"{conversation}: the diff to version {version} has another value before at {path!r}")
        self.conversation, self.version, self.path = conversation, version, path


def empty(conversation: str) -> dict[str, Any]:
    """Version 0 of a conversation: every section there, nothing in it."""
    return {
        "kind": "state", "schema": SCHEMA, "conversation": conversation, "version": 0, "now": 0, "session": None,
        "perception": {"messages": {}, "intents": {}, "language": None},
        "memory": {"anchor": {}, "summaries": [], "known": {}},
        "planning": {"flows": [], "owner": "agent", "queue": [], "turns": 0, "asked": {}, "clarified": 0,
                     "reviews": {}, "handover": None, "last_message": None},
        "tools": {"calls": {}},
        "actions": {"messages": {}, "parked": [], "last_online": None, "online": False},
        "feedback": {"windows": {}, "waiting_since": None, "last_keywords": [], "topics": {}, "last_score": None,
                     "last_outbound_at": None},
        "timers": {}, "pending": {}, "runtime": {"at": {}, "heard": {}, "recent": {}, "sent": {}, "paused": {}},
    }  # fmt: skip


def recent_key(topic: str, record_id: str) -> str:
    """How a producer's id is remembered: 72 bits of a hash, 12 characters."""
    digest = hashlib.blake2b(f"{topic}|{record_id}".encode(), digest_size=9).digest()
    return base64.urlsafe_b64encode(digest).decode()


def sent_key(topic: str, key: str, conversation: str) -> str:
    """What the last emit is remembered under: a reader sees the emits to its own key only, so each key has a row."""
    return topic if key == conversation else f"{topic}|{key}"


def pointer(path: tuple[str, ...]) -> str:
    """A path as a JSON Pointer (RFC 6901): "~" and "/" in a key are escaped (case J05)."""
    plain = "/".join(path)
    if "~" not in plain and plain.count("/") == len(path) - 1:  # nearly always: no key needs an escape
        return f"/{plain}"
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def unpointer(text: str) -> tuple[str, ...]:
    """The path of a JSON Pointer."""
    parts = text.split("/")[1:]
    if "~" not in text:
        return tuple(parts)
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def readable(text: str) -> str:
    """A JSON Pointer as people read it, such as `planning › asked › tools/get~order`; an empty key is `""`."""
    return " › ".join(part or '""' for part in unpointer(text))


def apply(state: State, diff: Mapping[str, Any]) -> dict[str, Any]:
    """The state after a diff (as plain JSON). Raises VersionConflictError when the diff's base is not this version."""
    if diff["base"] != state["version"] or diff["version"] != state["version"] + 1:
        raise VersionConflictError(diff["conversation"], diff["base"], state["version"])
    after = dict(diff.get("whole") or state)
    for change in diff["changes"]:
        after = put(after, unpointer(change["path"]), change.get("after", MISSING))
    after["version"], after["now"] = diff["version"], diff["now"]
    # Derived from the diff and not stored in it: the bookkeeping would be half of every diff.
    after["runtime"] = _bookkeeping(after["runtime"], diff)
    return after


def verify(state: State, diff: Mapping[str, Any]) -> None:
    """Every value that the diff calls `before` is what the state has. Raises DiffMismatchError with the first other."""
    base = diff.get("whole") or state
    for change in diff["changes"]:
        found, before = look(base, unpointer(change["path"]), MISSING), change.get("before", MISSING)
        if (found is MISSING) != (before is MISSING) or not same(found, before):
            raise DiffMismatchError(diff["conversation"], diff["version"], change["path"])


def revert(state: State, diff: Mapping[str, Any]) -> dict[str, Any]:
    """The state before a diff, for reading. Raises VersionConflictError when the diff did not lead to this version.

    A diff has no before of the runtime's bookkeeping, so that is left out, unless the diff has the whole state.
    """
    if diff["version"] != state["version"]:
        raise VersionConflictError(diff["conversation"], diff["version"], state["version"])
    if diff.get("whole"):
        return dict(diff["whole"])
    before = dict(state)
    for change in reversed(diff["changes"]):
        before = put(before, unpointer(change["path"]), change.get("before", MISSING))
    before["version"] = diff["base"]
    for name in ("now", "runtime"):
        before.pop(name, None)
    return before


def _bookkeeping(runtime: Mapping[str, Any], diff: Mapping[str, Any]) -> dict[str, Any]:
    cause = diff["cause"]
    topic, position = cause["topic"], cause.get("position")
    result = dict(runtime)
    result["at"] = {**runtime["at"], topic: max(cause["offset"], runtime["at"].get(topic, -1))}
    if position:
        result["heard"] = {**runtime["heard"], f"{topic}|{position[0]}": [position[1], position[2]]}
    elif cause.get("type") not in NAMELESS:
        result["recent"] = _remember(runtime["recent"], recent_key(topic, cause["id"]), cause["time"])
    if diff["emits"]:
        last = {sent_key(emit["topic"], emit["key"], diff["conversation"]): [diff["version"], index]
                for index, emit in enumerate(diff["emits"])}  # fmt: skip
        result["sent"] = {**runtime["sent"], **last}
    return result


def _remember(recent: Mapping[str, int], key: str, time: int) -> dict[str, int]:
    """Oldest first, so that only the head is looked at: this runs in every decision."""
    kept = dict(recent)
    kept.pop(key, None)
    while kept:
        oldest = next(iter(kept))
        if len(kept) < RECENT_MAX and kept[oldest] >= time - RECENT_MS:
            break
        del kept[oldest]
    kept[key] = time
    return kept


def encode(state: State) -> bytes:
    """A state as JSON bytes; decoding and encoding again gives the same bytes."""
    return orjson.dumps(state)


def decode(encoded: bytes) -> dict[str, Any]:
    """A state from its bytes."""
    state: dict[str, Any] = orjson.loads(encoded)
    return state


class StateBus:
    """The states of one partition. Not for several threads: one owner, one event loop (promise 2)."""

    def __init__(self, hot: int = 1_000) -> None:
        self._cold: dict[str, bytes] = {}
        self._hot: OrderedDict[str, State] = OrderedDict()
        self._size = hot

    def __len__(self) -> int:
        return len(self._cold) + sum(conversation not in self._cold for conversation in self._hot)

    def __iter__(self) -> Iterator[str]:
        yield from list(self._cold)
        yield from [conversation for conversation in self._hot if conversation not in self._cold]

    def load(self, conversation: str, encoded: bytes) -> None:
        """A state from a snapshot or checkpoint; it is decoded when it is first touched."""
        self._cold[conversation] = encoded
        self._hot.pop(conversation, None)

    def read(self, conversation: str) -> State | None:
        """The state (never mutate it), or None when the conversation is not open here."""
        state = self._hot.get(conversation)
        if state is not None:
            self._hot.move_to_end(conversation)
            return state
        encoded = self._cold.get(conversation)
        if encoded is None:
            return None
        state = decode(encoded)
        self._keep(conversation, state)
        return state

    def encoded(self, conversation: str) -> bytes:
        """The state as JSON bytes. Raises KeyError when the conversation is not open here."""
        state = self._hot.get(conversation)
        return self._cold[conversation] if state is None else encode(state)

    def write(self, state: State, expected: int) -> None:
        """Compare-and-set: the stored version must be `expected` (0: none). Raises VersionConflictError."""
        conversation = state["conversation"]
        current = self.read(conversation)
        found = 0 if current is None else current["version"]
        if found != expected or state["version"] != expected + 1:
            raise VersionConflictError(conversation, expected, found)
        # The old bytes go at once: a state that is both hot and cold must not have two versions.
        self._cold.pop(conversation, None)
        self._keep(conversation, state)

    def drop(self, conversation: str) -> None:
        """A closed conversation leaves memory."""
        self._cold.pop(conversation, None)
        self._hot.pop(conversation, None)

    def _keep(self, conversation: str, state: State) -> None:
        self._hot[conversation] = state
        self._hot.move_to_end(conversation)
        while len(self._hot) > self._size:
            cooled, old = self._hot.popitem(last=False)
            if cooled not in self._cold:
                # a copy of the exact size: the encoder's own buffer would keep twice the room (measured)
                self._cold[cooled] = bytes(memoryview(encode(old)))
