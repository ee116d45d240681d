"""The local snapshots as recovery and the partitions use them: over `memory.snapshots`, in the runtime's terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from memory.copier import Copier
from memory.snapshots import Import, Row, SnapshotError, SnapshotStore
from schemas.state import Mark
from streams.runtime.checkpoint import SavedState, row_of

ROWS = 2_000  # rows imported at once
FORGET = 1_000  # residues forgotten at once


@dataclass(slots=True)
class Loaded:
    """A snapshot or checkpoint: encoded states, and the mark that says up to where they hold."""

    states: dict[str, bytes] = field(default_factory=dict)
    mark: Mapping[str, Any] | None = None
    dues: dict[str, int] = field(default_factory=dict)  # of a state with deadlines the earliest, UTC milliseconds


class CheckpointImport:
    """state.updates as it streams by: open states into memory, all of it into a new file when there is one.

    A residue is never kept in memory here, however many there are.
    """

    def __init__(self, loaded: Loaded, file: Import | None) -> None:
        self._loaded = loaded
        self._file = file
        self._latest: dict[str, bytes | None] = {}

    def add(self, conversation: str, encoded: bytes | None) -> None:
        """The conversation's state, later ones over earlier; None: it is forgotten, and its diffs are gone already."""
        self._latest[conversation] = encoded
        if len(self._latest) == ROWS:
            self._pass_on()

    def finish(self, mark: Mapping[str, Any]) -> None:
        """The last mark: everything before it was added."""
        self._pass_on()
        self._loaded.mark = mark
        if self._file is not None:
            self._file.finish(Mark(**mark))

    def _pass_on(self) -> None:
        rows: list[tuple[str, str, int, bytes | None, int | None]] = []
        for conversation, encoded in self._latest.items():
            row = None if encoded is None else row_of(orjson.loads(encoded), encoded)
            rows.append((conversation, "residue", 0, None, None) if row is None else row)
            self._loaded.states.pop(conversation, None)
            self._loaded.dues.pop(conversation, None)
            # without a file there is nowhere else for a residue
            if row is not None and (row.kind == "state" or self._file is None):
                self._loaded.states[conversation] = row.body
                if row.kind == "state" and row.next_due is not None:
                    self._loaded.dues[conversation] = row.next_due
        self._latest.clear()
        if self._file is not None:
            self._file.add(rows)


class LocalSnapshots:
    """SnapshotPort, and the source of a recovery. Open states come into memory, residues stay on disk."""

    def __init__(self, store: SnapshotStore, now_ms: Any) -> None:
        self._store = store
        self._now_ms = now_ms
        self.copier: Copier | None = None  # where snapshots are copied, too

    def write(self, partition: int, changed: Iterable[SavedState], mark: Mapping[str, Any]) -> None:
        """Changed rows and the mark in one transaction. Raises OSError: the last snapshot stays as it is."""
        rows: list[Row] = list(changed)
        stamped = Mark(**mark, stamped_at=self._now_ms())
        try:
            before = self._store.mark(partition)
            self._store.write(partition, rows, stamped)
        except SnapshotError as error:
            raise OSError(str(error)) from error
        if self.copier is not None:
            self.copier.written(partition, rows, stamped, None if before is None else before.diff_offset)

    def silent_since(self, partition: int, until_ms: int) -> list[str]:
        """Closed conversations whose last decision is not later than `until_ms`, the longest silent first."""
        names = [conversation for conversation, _ in self._store.due(partition, until_ms, FORGET)]
        rows = [row for row in (self._store.find(partition, name) for name in names) if row is not None]
        return [row[0] for row in rows if row[1] == "residue"]

    def forget(self, partition: int, conversations: Iterable[str]) -> None:
        """Take these rows out; the mark stays. Raises OSError."""
        self._store.forget(partition, conversations)

    def find(self, partition: int, conversation: str) -> bytes | None:
        """One conversation as last written; a closed one's residue is only here."""
        row = self._store.find(partition, conversation)
        return None if row is None else row[3]

    def load(self, partition: int, log_start: int, log_end: int) -> Loaded | None:
        """The newest whole snapshot that the log goes on from, else the one of its copies, or None."""
        snapshot = self._store.load(partition, log_start, log_end)
        if snapshot is None and self.copier is not None:
            begin = partial(self._store.begin_import, partition)
            if self.copier.restore(partition, begin, log_start, log_end):
                snapshot = self._store.load(partition, log_start, log_end)
        if snapshot is None:
            return None
        states = {row[0]: row[3] for row in snapshot.open if row[3] is not None}
        dues = {row[0]: row[4] for row in snapshot.open if row[4] is not None}
        return Loaded(states, snapshot.mark.model_dump(mode="json"), dues)

    def begin_import(self, partition: int) -> Import:
        """A new file, beside the one that is there until it is finished."""
        return self._store.begin_import(partition)
