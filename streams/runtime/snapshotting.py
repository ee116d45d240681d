"""The local snapshots as recovery and the partitions use them: over `memory.snapshots`, in the runtime's terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from memory.snapshots import SnapshotError, SnapshotStore
from schemas.state import Mark
from streams.runtime.checkpoint import SavedState, row_of

ROWS = 2_000  # rows imported at once


@dataclass(slots=True)
class Loaded:
    """A snapshot or checkpoint: encoded states, and the mark that says up to where they hold."""

    states: dict[str, bytes] = field(default_factory=dict)
    mark: Mapping[str, Any] | None = None


class LocalSnapshots:
    """SnapshotPort, and the source of a recovery. Open states come into memory, residues stay on disk."""

    def __init__(self, store: SnapshotStore, now_ms: Any) -> None:
        self._store = store
        self._now_ms = now_ms

    def write(self, partition: int, changed: Iterable[SavedState], mark: Mapping[str, Any]) -> None:
        """Changed rows and the mark in one transaction. Raises OSError: the last snapshot stays as it is."""
        try:
            self._store.write(partition, changed, Mark(**mark, stamped_at=self._now_ms()))
        except SnapshotError as error:
            raise OSError(str(error)) from error

    def find(self, partition: int, conversation: str) -> bytes | None:
        """One conversation as last written; a closed one's residue is only here."""
        row = self._store.find(partition, conversation)
        return None if row is None else row[3]

    def load(self, partition: int, log_start: int, log_end: int) -> Loaded | None:
        """The newest whole snapshot that the log goes on from, or None."""
        snapshot = self._store.load(partition, log_start, log_end)
        if snapshot is None:
            return None
        states = {row[0]: row[3] for row in snapshot.rows("state") if row[3] is not None}
        return Loaded(states, snapshot.mark.model_dump(mode="json"))

    def adopt(self, partition: int, loaded: Loaded) -> None:
        """A new file from a checkpoint; its residues leave memory."""
        # no checkpoint: the first snapshot will have all that the diffs give
        if loaded.mark is None:
            return
        closed: list[str] = []
        with self._store.begin_import(partition) as fresh:
            for rows in _chunks(loaded.states):
                fresh.add(rows)
                closed.extend(row.conversation for row in rows if row.kind == "residue")
            fresh.finish(Mark(**loaded.mark))
        # a closed conversation is found by `find`, when it is heard again
        for conversation in closed:
            del loaded.states[conversation]


def _chunks(states: Mapping[str, bytes]) -> Iterator[list[SavedState]]:
    rows: list[SavedState] = []
    for encoded in states.values():
        rows.append(row_of(orjson.loads(encoded), encoded))
        if len(rows) == ROWS:
            yield rows
            rows = []
    yield rows
