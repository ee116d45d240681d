"""Local snapshots: one SQLite file a partition, changed rows and the log positions in one transaction (R-002-13).

Write-ahead logging with `synchronous=NORMAL` is enough: after a crash or a power cut the last transactions may
be missing but are never half there, and what is missing is read again from state.diffs, from the file's own offset.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from memory.snapshot_file import Row, SnapshotError, SnapshotFile, Stamp
from schemas.state import Mark

__all__ = ["Import", "Row", "Snapshot", "SnapshotError", "SnapshotStore"]

SKIPPED = "interlock_snapshot_skipped_total"
_FOLDERS = 1_000  # workers on one machine, at most


class Snapshot:
    """A whole snapshot: its mark, and its rows: `open` is what belongs in memory, a residue stays on disk."""

    def __init__(self, file: SnapshotFile, mark: Mark, open_: list[Row]) -> None:
        self._file = file
        self.mark = mark
        self.open = open_

    def rows(self, kind: str | None = None) -> Iterator[Row]:
        """All rows, or those of a kind (`state` or `residue`), streamed."""
        return self._file.rows(kind)


class SnapshotStore:
    """The snapshots of one worker, in a folder that it alone uses (a lock is held while it lives).

    `on_metric(name, 1, reason=…)` counts skipped files. Every method may be called in a thread; `find` and `due`
    also answer on the event loop, as a write never makes them wait.
    """

    def __init__(
        self, folder: Path, cluster_id: str, topic_id: str, on_metric: Callable[..., None], log: logging.Logger
    ) -> None:
        """Lock the folder. Raises SnapshotError when another worker holds it."""
        self.folder, self.cluster, self.topic = folder, cluster_id, topic_id
        self._on_metric, self._log = on_metric, log
        self._files: dict[int, SnapshotFile] = {}
        self._opening = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            message = f"{folder}: another worker holds this snapshot folder; give each worker its own"
            raise SnapshotError(message) from error

    @classmethod
    def claim(
        cls, root: Path, cluster_id: str, topic_id: str, on_metric: Callable[..., None], log: logging.Logger
    ) -> Self:
        """The first free folder under `root` (`0`, `1`, …), locked: a restarted worker finds its own again."""
        for number in range(_FOLDERS):
            try:
                return cls(root / str(number), cluster_id, topic_id, on_metric, log)
            except SnapshotError:
                continue
        message = f"{root}: {_FOLDERS} snapshot folders are in use"
        raise SnapshotError(message)

    def path(self, partition: int) -> Path:
        """The partition's file."""
        return self.folder / f"partition-{partition:04d}.sqlite"

    def write(self, partition: int, changed: Iterable[Row], mark: Mark) -> None:
        """Changed rows and the mark, in one transaction (row: conversation, kind, version, body, next deadline in ms).

        The first write into a new file must hand over every state. Raises SnapshotError when the mark goes back.
        """
        self._file(partition).write(changed, mark)

    def forget(self, partition: int, conversations: Iterable[str]) -> None:
        """Take these conversations out of the file; the mark stays as it is. Raises SnapshotError."""
        self._file(partition).write(((name, "residue", 0, None, None) for name in conversations), None)

    def load(self, partition: int, log_start: int, log_end: int | None = None) -> Snapshot | None:
        """The snapshot, checked whole, or None: torn, foreign, stale or none at all.

        `log_start` and `log_end` are the offsets of state.diffs. A file is stale when diffs that follow it are gone,
        foreign when it is ahead of the log. One that is not used is moved aside and counted, and the log says why.
        """
        self.release(partition)
        if not self.path(partition).exists():
            return None
        try:
            return self._checked(partition, log_start, log_end)
        except SnapshotError as error:
            self._skip(partition, error)
            return None

    def find(self, partition: int, conversation: str) -> Row | None:
        """One conversation as last written, open or closed (a closed one's residue is only here)."""
        if partition not in self._files and not self.path(partition).exists():
            return None
        return self._file(partition).find(conversation)

    def due(self, partition: int, until_ms: int, limit: int = 1_000) -> list[tuple[str, int]]:
        """Conversations with a deadline at or before `until_ms`, and the deadline; the earliest first.

        A residue's is the time of its last decision.
        """
        if partition not in self._files and not self.path(partition).exists():
            return []
        return self._file(partition).due(until_ms, limit)

    def age_ms(self, partition: int, now_ms: int) -> int | None:
        """How old the newest snapshot is (R-002-16); None when there is none."""
        if partition not in self._files:
            return None
        mark = self._files[partition].mark()
        return None if mark is None else max(0, now_ms - mark.stamped_at)

    def mark(self, partition: int) -> Mark | None:
        """Up to where the partition's file holds; None when there is none."""
        there = partition in self._files or self.path(partition).exists()
        return self._file(partition).mark() if there else None

    def whole(self, partition: int) -> tuple[Iterator[Row], Mark | None]:
        """All rows, and a mark that is not newer than they are: a copy may hold more than its mark says, never less."""
        mark = self.mark(partition)
        return (iter(()) if mark is None else self._file(partition).rows()), mark

    def begin_import(self, partition: int) -> Import:
        """A new file from state.updates, beside the old one until it is finished."""
        self.release(partition)
        fresh = self.path(partition).with_suffix(".importing")
        _remove(fresh)
        file = SnapshotFile(fresh, self._stamp(partition), importing=True)
        return Import(file, lambda: self._adopt(partition, fresh))

    def release(self, partition: int) -> None:
        """Close the partition's file: it was revoked, or is read anew."""
        file = self._files.pop(partition, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        """Close all files and give the folder back."""
        for partition in list(self._files):
            self.release(partition)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stamp(self, partition: int) -> Stamp:
        return Stamp(self.cluster, self.topic, partition)

    def _file(self, partition: int) -> SnapshotFile:
        with self._opening:
            if partition not in self._files:
                self._files[partition] = SnapshotFile(self.path(partition), self._stamp(partition))
            return self._files[partition]

    def _adopt(self, partition: int, fresh: Path) -> None:
        self.release(partition)
        _remove(self.path(partition))
        fresh.replace(self.path(partition))
        _sync(self.folder)
        self._file(partition)

    def _checked(self, partition: int, log_start: int, log_end: int | None) -> Snapshot:
        file = self._file(partition)
        rows = file.verified()
        mark = file.mark()
        if mark is None:
            message = f"{file.path}: it was never written to the end"
            raise SnapshotError(message)
        # The diff right after the snapshot must still be there; one that is missing is a gap (promise 3).
        if mark.diff_offset + 1 < log_start:
            message = f"{file.path}: it ends at offset {mark.diff_offset}, and the log starts at {log_start}"
            raise SnapshotError(message, "stale")
        # A topic that was made anew has small offsets again; its states are other states.
        if log_end is not None and mark.diff_offset >= log_end:
            message = f"{file.path}: it ends at offset {mark.diff_offset}, and the log before, at {log_end}"
            raise SnapshotError(message, "foreign")
        return Snapshot(file, mark, rows)

    def _skip(self, partition: int, error: SnapshotError) -> None:
        self.release(partition)
        path = self.path(partition)
        aside = path.with_suffix(".skipped")
        path.replace(aside)  # one is kept to look at
        _remove(path)  # its write-ahead log must not meet the next file
        self._log.warning("snapshot of partition %d skipped (%s), kept as %s: %s",
                          partition, error.reason, aside.name, error)  # fmt: skip
        self._on_metric(SKIPPED, 1, reason=error.reason)


class Import:
    """A file in the making: a worker without a snapshot streams state.updates into it, later rows over earlier.

    `finish` makes it the partition's snapshot; until then, and after a crash, it is nothing.
    """

    def __init__(self, file: SnapshotFile, adopt: Callable[[], None]) -> None:
        self._file, self._adopt = file, adopt

    def add(self, rows: Iterable[Row]) -> None:
        """Some rows (a few thousand at a time is fast)."""
        self._file.write(rows, None)

    def finish(self, mark: Mark) -> None:
        """The checkpoint's mark; the file is on disk and in place when this returns."""
        self._file.write((), mark)
        self._file.close()
        _sync(self._file.path)
        self._adopt()

    def abandon(self) -> None:
        """Throw it away."""
        self._file.close()
        _remove(self._file.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        if kind is not None:
            self.abandon()


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
