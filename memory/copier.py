"""Copies every snapshot to object storage on a thread of its own, which nothing waits for (R-002-13, R-002-16)."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memory.copies import Copies
from memory.object_store import ObjectStoreError
from memory.snapshot_file import Row
from memory.snapshots import Import
from schemas.state import Mark

COPIED = "interlock_snapshot_copied_timestamp_seconds"
FAILED = "interlock_snapshot_copy_failures_total"
_QUEUED = 64  # snapshots that wait for a slow storage; one that finds no room is made up for by a base
_WAIT_S = 10.0  # at the end, for what is under way
_REBASED = 1.0  # changes that add up to so many times the base make a new one: a restore then reads twice at most
_LEAST = 10_000  # rows of changes that are no reason for a new base


@dataclass(slots=True)
class _Reached:
    """Up to where a partition is copied by this worker, and by how many rows."""

    offset: int
    base: int
    changes: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    partition: int
    rows: list[Row]
    mark: Mark
    after: int | None  # the snapshot before this one


Whole = Callable[[int], tuple[Iterable[Row], Mark | None]]
"""All rows of a partition's snapshot file, and a mark that is not newer than they are."""


class Copier:
    """Takes snapshots as they are written. A base is made first, after a failure, and when the changes outweigh it.

    `metrics(name, value)` sets the time up to which all snapshots are copied (UTC seconds); `count` counts failures.
    """

    def __init__(self, copies: Copies, whole: Whole, metrics: Callable[..., None], count: Callable[..., None],
                 log: logging.Logger) -> None:  # fmt: skip
        self._copies, self._whole = copies, whole
        self._metrics, self._count, self._log = metrics, count, log
        self._jobs: queue.Queue[_Job | None] = queue.Queue(_QUEUED)
        self._reached: dict[int, _Reached] = {}
        self._failing: set[int] = set()
        self._thread = threading.Thread(target=self._work, name="snapshot-copies", daemon=True)
        self._thread.start()

    def written(self, partition: int, rows: list[Row], mark: Mark, after: int | None) -> None:
        """A snapshot was written: these rows changed after the one that ended at `after`. Never blocks."""
        try:
            self._jobs.put_nowait(_Job(partition, rows, mark, after))
        except queue.Full:
            self._log.warning("copies of snapshots can't keep up; the next of partition %d is whole", partition)
            self._count(FAILED, 1, reason="behind")

    def restore(self, partition: int, begin: Callable[[], Import], log_start: int, log_end: int) -> bool:
        """The partition's snapshot from its copies; False, and said, where there is none or no storage."""
        try:
            return self._copies.restore(partition, begin, log_start, log_end)
        except ObjectStoreError as error:
            self._count(FAILED, 1, reason="restore")
            self._log.warning("no copy of partition %d could be read: %s", partition, error)
            return False

    def close(self) -> None:
        """What waits is copied, but for at most ten seconds."""
        try:
            self._jobs.put(None, timeout=_WAIT_S)
        except queue.Full:
            self._log.warning("copies of snapshots are not finished; the next worker's are whole")
        self._thread.join(_WAIT_S)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._copy(job)
                self._failing.discard(job.partition)
                if not self._failing:  # the time grows old while one partition has no copy
                    self._metrics(COPIED, job.mark.stamped_at / 1_000)
            except OSError as error:  # the storage's, or the snapshot file's: the next one is whole
                self._failed(job.partition, "put")
                self._log.warning("snapshot of partition %d not copied: %s", job.partition, error)
            except Exception:  # noqa: BLE001 (a bug of ours must not end all copies; its log line has the trace)
                self._failed(job.partition, "bug")
                self._log.exception("snapshot of partition %d not copied", job.partition)

    def _failed(self, partition: int, reason: str) -> None:
        # its place stays: the next snapshot begins behind it, and so is copied whole
        self._failing.add(partition)
        self._count(FAILED, 1, reason=reason)

    def _copy(self, job: _Job) -> None:
        reached = self._reached.get(job.partition)
        follows = reached is not None and job.after is not None and job.after <= reached.offset
        if reached is None or not follows or reached.changes > max(_LEAST, _REBASED * reached.base):
            self._base(job.partition)
            return
        if job.mark.diff_offset <= reached.offset:
            return  # the base that was made meanwhile has it
        reached.changes += self._copies.save(job.partition, job.rows, job.mark, job.after)
        reached.offset = job.mark.diff_offset

    def _base(self, partition: int) -> None:
        rows, mark = self._whole(partition)
        if mark is None:
            return
        count = self._copies.save(partition, rows, mark, None)
        self._reached[partition] = _Reached(mark.diff_offset, count)
        self._copies.prune(partition)
