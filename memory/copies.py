"""Copies of snapshots in object storage: a base, then what changed since, each whole or not there (R-002-13).

A copy is parts of compressed rows and, written last, a manifest that names them with their hashes. A change builds
on every copy at or above its `after`, so copies of several owners of a partition make one chain.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import cramjam
import orjson
from pydantic import ValidationError

from memory.object_store import ObjectStore, ObjectStoreError
from memory.snapshot_file import Row, Stamp
from memory.snapshots import Import
from schemas.base import Id, Model
from schemas.state import Mark

PART_ROWS = 5_000  # rows in one object: about 20 MB before compression
KEPT_BASES = 2  # the newest may be the one that can't be read


class CopyError(OSError):
    """A copy that can't be used; the message names the object and what is wrong with it."""


class Part(Model):
    """One object of rows."""

    name: Id
    rows: int
    sha256: str


class Manifest(Model):
    """What a copy is made of. `after` is the diff offset that it builds on; null for a base, which has every row."""

    stamp: tuple[int, str, str, int]
    after: int | None
    mark: Mark
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A base and the changes after it, in order."""

    copies: tuple[Manifest, ...]

    @property
    def mark(self) -> Mark:
        """Up to where the whole chain holds."""
        return self.copies[-1].mark


class Copies:
    """The copies of one cluster's partitions. Calls block. Raises ObjectStoreError when the storage does not answer.

    `token` is this worker's own, so that two that once owned a partition never write the same object.
    """

    def __init__(self, store: ObjectStore, cluster: str, topic: str, token: str, log: logging.Logger) -> None:
        self._store, self._log, self._token = store, log, token
        self._cluster, self._topic = cluster, topic

    def save(self, partition: int, rows: Iterable[Row], mark: Mark, after: int | None) -> int:
        """A base (`after` is None) or the changes after that diff offset; how many rows it has."""
        name = f"{self._folder(partition)}{mark.diff_offset:020d}-{mark.stamped_at:015d}-{self._token}"
        parts: list[Part] = []
        for number, some in enumerate(_batches(rows)):
            body = _packed(some)
            part = Part(name=f"{name}.{number:05d}.rows", rows=len(some), sha256=hashlib.sha256(body).hexdigest())
            self._store.put(part.name, body)
            parts.append(part)
        manifest = Manifest(stamp=self._stamp(partition), after=after, mark=mark, parts=tuple(parts))
        self._store.put(f"{name}.manifest", orjson.dumps(manifest.model_dump(mode="json")))
        return sum(part.rows for part in parts)

    def newest(self, partition: int) -> Chain | None:
        """The chain on the newest base, or None. A manifest that can't be read is told, and left out."""
        return next(self._chains(partition), None)

    def restore(self, partition: int, begin: Callable[[], Import], log_start: int, log_end: int) -> bool:
        """Make the partition's snapshot from its copies, from the newest base that can be read.

        `log_start` and `log_end` are the offsets of state.diffs: a copy that the log does not go on from is no use.
        One whose parts the storage does not give is passed over, too; where all are so, that is raised.
        """
        failed: ObjectStoreError | None = None
        for chain in self._chains(partition):
            if not log_start <= chain.mark.diff_offset + 1 <= log_end:
                self._log.warning("copies of partition %d end at offset %d; the log holds %d to %d: not used",
                                  partition, chain.mark.diff_offset, log_start, log_end)  # fmt: skip
                continue
            try:
                with begin() as file:
                    for copy in chain.copies:
                        for part in copy.parts:
                            file.add(self._rows(part))
                    file.finish(chain.mark)
            except (CopyError, ObjectStoreError) as error:
                failed = error if isinstance(error, ObjectStoreError) else failed
                self._log.warning("a copy of partition %d is not used: %s", partition, error)
                continue
            return True
        if failed is not None:
            raise failed
        return False

    def prune(self, partition: int) -> None:
        """Delete what lies before the oldest base that is kept: manifests first, so that none names a missing part."""
        names = self._store.names(self._folder(partition))
        bases = sorted((one for one in self._found(names, partition) if one.after is None), key=_order)
        if len(bases) <= KEPT_BASES:
            return
        oldest = f"{self._folder(partition)}{bases[-KEPT_BASES].mark.diff_offset:020d}"
        gone = [name for name in names if name < oldest]
        for name in sorted(gone, key=lambda one: not one.endswith(".manifest")):
            self._store.delete(name)

    def _chains(self, partition: int) -> Iterator[Chain]:
        """On the newest base first."""
        found = self._found(self._store.names(self._folder(partition)), partition)
        for base in sorted((one for one in found if one.after is None), key=_order, reverse=True):
            yield _chained(base, found)

    def _found(self, names: Iterable[str], partition: int) -> list[Manifest]:
        return [one for name in names if name.endswith(".manifest") and (one := self._read(name, partition))]

    def _read(self, name: str, partition: int) -> Manifest | None:
        try:
            manifest = Manifest.model_validate_json(self._store.get(name))
        except ValidationError as error:
            self._log.warning("copy %s is not used: %d faults in its manifest", name, error.error_count())
            return None
        return manifest if manifest.stamp == self._stamp(partition) else None

    def _rows(self, part: Part) -> list[Row]:
        body = self._store.get(part.name)
        if hashlib.sha256(body).hexdigest() != part.sha256:
            message = f"{part.name} is not what its manifest says"
            raise CopyError(message)
        return _unpacked(body)

    def _stamp(self, partition: int) -> tuple[int, str, str, int]:
        return tuple(Stamp(self._cluster, self._topic, partition).encoded())  # type: ignore[return-value]

    def _folder(self, partition: int) -> str:
        return f"{self._cluster}/{self._topic}/{partition:04d}/"


def _chained(base: Manifest, found: Iterable[Manifest]) -> Chain:
    """A change is taken when it builds on what there is and goes further; a gap ends the chain."""
    copies = [base]
    for one in sorted((one for one in found if one.after is not None), key=_order):
        reached = copies[-1].mark.diff_offset
        if one.after is not None and one.after <= reached < one.mark.diff_offset:
            copies.append(one)
    return Chain(tuple(copies))


def _order(one: Manifest) -> tuple[int, int]:
    return one.mark.diff_offset, one.mark.stamped_at


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while some := list(islice(left, PART_ROWS)):
        yield some


def _packed(rows: list[Row]) -> bytes:
    """Two lines a row, the second the state as it is (canonical JSON has no line feed), empty for a deleted one."""
    lines = [line for name, kind, version, body, due in rows
             for line in (orjson.dumps([name, kind, version, due]), body or b"")]  # fmt: skip
    return bytes(cramjam.zstd.compress(b"\n".join(lines), 1))  # higher levels cost more than they save


def _unpacked(body: bytes) -> list[Row]:
    lines = bytes(cramjam.zstd.decompress(body)).split(b"\n")
    heads = (orjson.loads(line) for line in lines[::2])
    return [(name, kind, version, state or None, due)
            for (name, kind, version, due), state in zip(heads, lines[1::2], strict=True)]  # fmt: skip
