"""state.updates and the local snapshots: what was changed since, and the mark that says up to where they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from memory.bus import StateBus
from schemas.state import Mark
from streams.runtime import wire
from streams.runtime.ports import Clock, Outgoing

UPDATE_BYTES = 1_000_000  # states that ride along with one transaction at most
CHUNK = 50  # states encoded between two turns of the event loop


class SavedState(NamedTuple):
    """One row of a snapshot."""

    conversation: str
    kind: str
    version: int
    body: bytes
    next_due: int | None


class SnapshotPort(Protocol):
    """The partition's local snapshot file; calls block, and run in a thread."""

    def write(self, partition: int, changed: Iterable[SavedState], mark: Mapping[str, Any]) -> None:
        """Changed rows and the mark in one transaction."""
        ...

    def silent_since(self, partition: int, until_ms: int) -> list[str]:
        """Closed conversations whose last decision is not later than `until_ms`; some of them at a time."""
        ...

    def forget(self, partition: int, conversations: Iterable[str]) -> None:
        """Take these rows out."""
        ...


def restless(encoded: bytes, *, timers: bool = True) -> bool:
    """Whether an encoded state has pending effects or (`timers`) deadlines; in a string the quotes would be escaped."""
    return b'"pending":{}' not in encoded or (timers and b'"timers":{}' not in encoded)


def row_of(state: Mapping[str, Any], encoded: bytes) -> SavedState:
    """The row of a state and its bytes."""
    dues = [timer["due"] for timer in state["timers"].values()]
    dues += [pending["deadline"] for pending in state["pending"].values()]
    if state["kind"] == "residue" and not dues:
        dues = [state["now"]]  # from when on it is silent: after the time that diffs are kept it is forgotten
    return SavedState(state["conversation"], state["kind"], state["version"], encoded, min(dues, default=None))


def saved(bus: StateBus, conversation: str) -> SavedState | None:
    """The conversation as a row, or None when it is not in memory."""
    state = bus.read(conversation)
    if state is None:
        return None
    return row_of(state, bus.encoded(conversation))


class Checkpoint:
    """Changed conversations of one partition, written along with the diffs at most once in `interval_ms`."""

    def __init__(self, partition: int, bus: StateBus, clock: Clock, interval_ms: int) -> None:
        self._partition = partition
        self._bus = bus
        self._clock = clock
        self._interval_ms = interval_ms
        self._dirty: dict[str, None] = {}
        self._round: dict[str, None] = {}
        self._mark: Mapping[str, Any] | None = None
        self.forgotten: list[str] = []  # get a tombstone with the next commit
        self._last = clock.now_ms()

    def changed(self, conversation: str) -> None:
        """A commit changed the conversation."""
        self._dirty[conversation] = None

    @property
    def open(self) -> bool:
        """Something is not on state.updates yet."""
        return bool(self._dirty) or self._mark is not None

    def ride_along(self, mark: Mapping[str, Any], *, now: bool = False) -> list[Outgoing]:
        """The updates for the next transaction: states as committed so far, and at a round's end its mark.

        `now`: also when nothing changed, or the last round is not long ago.
        A round may take several transactions; its mark says what held when the round began, so a newer
        state in it does no harm: recovery skips the diffs at or below a loaded version.
        """
        if self._mark is None:
            # nothing changed: no round, so a silent partition writes no marks either
            now = now or bool(self.forgotten)
            soon = self._clock.now_ms() - self._last < self._interval_ms
            if not now and (soon or not self._dirty):
                return []
            self._round, self._dirty, self._mark = self._dirty, {}, mark
            self._last = self._clock.now_ms()
        records, size = [self._tombstone(conversation) for conversation in self.forgotten], 0
        self.forgotten = []
        while self._round and size < UPDATE_BYTES:
            record = self._update(self._round.popitem()[0])
            records.append(record)
            size += len(record.value or b"")
        if not self._round:
            records.append(self._marker(self._mark))
            self._mark = None
        return records

    def owes(self, conversation: str) -> bool:
        """The conversation's last version is not on state.updates yet: it must stay in memory."""
        return conversation in self._dirty or conversation in self._round

    def _tombstone(self, conversation: str) -> Outgoing:
        headers = wire.state_headers(wire.UPDATES, f"{conversation}@", self._clock.now_ms())
        return Outgoing(wire.UPDATES, self._partition, conversation.encode(), None, headers)

    def _update(self, conversation: str) -> Outgoing:
        state = self._bus.read(conversation)
        if state is None:
            message = f"{conversation} left memory before its last version was on {wire.UPDATES}"
            raise RuntimeError(message)
        headers = wire.state_headers(wire.UPDATES, f"{conversation}@{state['version']}", self._clock.now_ms())
        return Outgoing(wire.UPDATES, self._partition, conversation.encode(), self._bus.encoded(conversation), headers)

    def _marker(self, mark: Mapping[str, Any]) -> Outgoing:
        key = f"~mark/{self._partition}"
        now = self._clock.now_ms()
        body = Mark(**mark, stamped_at=now).model_dump(mode="json")
        return Outgoing(
            wire.UPDATES,
            self._partition,
            key.encode(),
            orjson.dumps(body),
            wire.state_headers(wire.UPDATES, f"{key}@{mark['diff_offset']}", now),
        )


class Snapshots:
    """Writes the changed rows of one partition to its snapshot file, off the event loop."""

    def __init__(self, partition: int, bus: StateBus, port: SnapshotPort, stays: Callable[[str], bool]) -> None:
        self._partition = partition
        self._bus = bus
        self._port = port
        self._stays = stays
        self._dirty: dict[str, None] = {}

    def changed(self, conversation: str) -> None:
        """A commit changed the conversation."""
        self._dirty[conversation] = None

    async def write(self, mark: Mapping[str, Any]) -> None:
        """One snapshot. The mark is taken first: rows encoded later may be newer than it, never older."""
        taken, self._dirty = self._dirty, {}
        rows = []
        for count, conversation in enumerate(taken, 1):
            row = saved(self._bus, conversation)
            if row is not None:
                rows.append(row)
            # encoding must be done on the loop, where states change; so that it holds up nobody, others come in between
            if count % CHUNK == 0:
                await asyncio.sleep(0)
        try:
            await asyncio.to_thread(self._port.write, self._partition, rows, mark)
        except BaseException:
            self._dirty = {**taken, **self._dirty}  # nothing is lost: the next one writes them
            raise
        for row in rows:
            if row.kind == "residue":
                self._leave(row)

    def _leave(self, row: SavedState) -> None:
        """A closed conversation leaves memory once its residue is on disk and on state.updates, and nobody is at it."""
        state = self._bus.read(row.conversation)
        # a newer version was committed while the file was written: that one is not on disk
        if state is None or state["version"] != row.version:
            return
        if self._stays(row.conversation):
            self.changed(row.conversation)  # looked at again by the next snapshot
        else:
            self._bus.drop(row.conversation)
