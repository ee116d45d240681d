"""A conversation's state at any version, from state.updates and state.diffs alone; a version that is gone is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from memory.bus import apply, empty, revert, verify
from schemas.errors import InterlockError
from schemas.partition import place
from streams.reader import LogSource
from streams.replay.find import NotFoundError
from streams.runtime.ports import Record
from streams.runtime.wire import DIFFS, UPDATES


class VersionGoneError(InterlockError):
    """The version can't be rebuilt from what the topics still hold, or never was."""


class ForkError(InterlockError):
    """The register has a version twice with different content: two owners wrote (promise 3)."""


@dataclass(slots=True)
class History:
    """What the topics hold of a conversation: states by version, and diffs by the version that they made."""

    conversation: str
    states: dict[int, dict[str, Any]] = field(default_factory=dict)
    diffs: dict[int, dict[str, Any]] = field(default_factory=dict)
    places: dict[int, Record] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        """The highest version that is known; 0 when nothing is."""
        return max([0, *self.states, *self.diffs])


def read_history(source: LogSource, conversation: str) -> History:
    """Read the conversation's partition of both topics. Raises NotFoundError, ForkError."""
    places = []
    for topic in (UPDATES, DIFFS):
        count = source.partitions(topic)
        if not count:
            message = f"there is no topic {topic}: run `interlock topics apply`, and a worker"
            raise NotFoundError(message)
        places.append((topic, place(conversation, count), 0))
    key = conversation.encode()
    history = history_of(conversation, source.read(places, None, lambda found, _: found == key))
    if not history.newest:
        message = f"{conversation}: no such conversation on {UPDATES} or {DIFFS}"
        raise NotFoundError(message)
    return history


def history_of(conversation: str, records: Iterable[Record]) -> History:
    """A history from records of state.updates and state.diffs. Raises ForkError."""
    history = History(conversation)
    for record in records:
        if record.value is None:
            continue  # a tombstone: the diffs say what there was
        value = orjson.loads(record.value)
        if record.topic == UPDATES:
            history.states[value["version"]] = value
        else:
            _add(history, record, value)
    return history


def _add(history: History, record: Record, diff: dict[str, Any]) -> None:
    version = diff["version"]
    known = history.places.get(version)
    if known is not None:
        message = (f"{history.conversation}: version {version} stands twice on {DIFFS} {record.partition},"
                   f" at offsets {known.offset} and {record.offset}")  # fmt: skip
        raise ForkError(message)
    history.diffs[version], history.places[version] = diff, record
    if diff.get("whole"):
        history.states.setdefault(diff["base"], diff["whole"])


def state_at(history: History, version: int | None = None) -> dict[str, Any]:
    """The state at a version (None: the newest). Raises VersionGoneError; never gives another version.

    Forwards from the nearest state or from the beginning, each diff checked against the value before; else
    backwards from a later state: then without the runtime's bookkeeping, which diffs do not hold.
    """
    wanted = history.newest if version is None else version
    if wanted in history.states:
        return history.states[wanted]
    if wanted == 0:
        return empty(history.conversation)
    # Forwards first: it checks every value before, and ends with the runtime's own part.
    state = _forwards(history, wanted) or _backwards(history, wanted)
    if state is None:
        raise VersionGoneError(_gone(history, wanted))
    return state


def _forwards(history: History, wanted: int) -> dict[str, Any] | None:
    base = max((version for version in history.states if version < wanted), default=0)
    if any(version not in history.diffs for version in range(base + 1, wanted + 1)):
        return None
    state = history.states.get(base) or empty(history.conversation)
    for version in range(base + 1, wanted + 1):
        verify(state, history.diffs[version])
        state = apply(state, history.diffs[version])
    return state


def _backwards(history: History, wanted: int) -> dict[str, Any] | None:
    base = min((version for version in history.states if version > wanted), default=None)
    if base is None or any(version not in history.diffs for version in range(wanted + 1, base + 1)):
        return None
    state = history.states[base]
    for version in range(base, wanted, -1):
        state = revert(state, history.diffs[version])
    return state


def readable_versions(history: History) -> list[tuple[int, int]]:
    """Ranges of versions that can be rebuilt, both ends included."""
    good = {*history.states, *_reached(history), *([0] if 1 in history.diffs else [])}
    ranges: list[tuple[int, int]] = []
    for version in sorted(good):
        if ranges and ranges[-1][1] == version - 1:
            ranges[-1] = (ranges[-1][0], version)
        else:
            ranges.append((version, version))
    return ranges


def _reached(history: History) -> Iterable[int]:
    starts = {*history.states, 0} if 1 in history.diffs else set(history.states)
    for start in starts:
        version = start
        while version + 1 in history.diffs:
            version += 1
            yield version
        version = start
        while version > 1 and version in history.diffs:
            version -= 1
            yield version


def _gone(history: History, wanted: int) -> str:
    if wanted > history.newest or wanted < 0:
        return f"{history.conversation}: there is no version {wanted}; the newest is {history.newest}"
    ranges = ", ".join(f"{low}" if low == high else f"{low} to {high}" for low, high in readable_versions(history))
    return f"{history.conversation}: version {wanted} is gone; the topics still hold {ranges or 'none'}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs between two states: a missing side is None and `had` or `has` is false."""

    path: tuple[str, ...]
    before: Any
    after: Any
    had: bool = True
    has: bool = True


def differences(before: Any, after: Any, path: tuple[str, ...] = ()) -> list[Difference]:
    """What differs between two JSON values, by path; lists of another length are compared as a whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        found: list[Difference] = []
        for name in [*before, *(name for name in after if name not in before)]:
            inner = (*path, name)
            if name not in after:
                found.append(Difference(inner, before[name], None, has=False))
            elif name not in before:
                found.append(Difference(inner, None, after[name], had=False))
            else:
                found += differences(before[name], after[name], inner)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [one for number, (old, new) in pairs for one in differences(old, new, (*path, str(number)))]
    return [] if orjson.dumps(before) == orjson.dumps(after) else [Difference(path, before, after)]
