"""One snapshot file: rows with checksums, totals that tell pages of two times apart, and whose it is."""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from schemas.state import Mark

FORMAT = 1
# conversation, kind (state or residue), version, the state as JSON bytes (None deletes it), next deadline in ms
Row = tuple[str, str, int, bytes | None, int | None]

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE states (conversation TEXT PRIMARY KEY, kind TEXT NOT NULL, version INTEGER NOT NULL,
                     body BLOB NOT NULL, due INTEGER, checksum INTEGER NOT NULL);
CREATE INDEX states_due ON states (due) WHERE due IS NOT NULL;
"""
_LIVE = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
_IMPORTING = "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"  # synced once, at its end
_COLUMNS = "conversation, kind, version, body, due, checksum"


class SnapshotError(OSError):
    """A snapshot folder or file that can't be used as asked; the message names it, `reason` is for the metric."""

    def __init__(self, message: str, reason: str = "torn") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Stamp:
    """Whose snapshot it is: a file of another cluster, topic or partition is never loaded."""

    cluster: str
    topic: str
    partition: int

    def encoded(self) -> list[object]:
        """As it stands in the file."""
        return [FORMAT, self.cluster, self.topic, self.partition]


class SnapshotFile:
    """One partition's file: one connection writes, another reads, and neither waits for the other."""

    def __init__(self, path: Path, stamp: Stamp, *, importing: bool = False) -> None:
        """Open the file, or begin it. Raises SnapshotError when it is damaged or another's."""
        self.path = path
        self.stamp = stamp
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()
        existed = path.exists() and path.stat().st_size > 0
        self._writer = _connect(path)
        self._reader: sqlite3.Connection | None = None
        try:
            self._writer.executescript(_IMPORTING if importing else _LIVE)
            if not existed:
                self._begin()
            found = self._meta("stamp")
        except (sqlite3.DatabaseError, ValueError) as error:
            self.close()
            raise SnapshotError(_damaged(path, error)) from error
        if found != stamp.encoded():
            self.close()
            message = f"{path}: made for another cluster, topic or partition"
            raise SnapshotError(message, "foreign")

    def write(self, rows: Iterable[Row], mark: Mark | None) -> None:
        """Rows and mark in one transaction; without a mark only rows. Raises SnapshotError if the mark goes back."""
        with self._write_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._store(rows)
                if mark is not None:
                    self._mark(mark)
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                message = f"{self.path}: not written ({error})"
                raise SnapshotError(message) from error
            except BaseException:
                self._roll_back()
                raise

    def mark(self) -> Mark | None:
        """Up to where the log is in this file; None when nothing was written. Raises SnapshotError when damaged."""
        found = self._query("SELECT value FROM meta WHERE name = 'mark'")
        if not found:
            return None
        try:
            fields, checksum = orjson.loads(found[0][0])
            if checksum == zlib.crc32(orjson.dumps(fields)):
                return Mark.model_validate(fields)
        except (TypeError, ValueError):
            pass  # said below: what can't be read is as damaged as what does not add up
        raise SnapshotError(_damaged(self.path, "its mark"))

    def verified(self) -> list[Row]:
        """The open states, once every page and row was looked at.

        Raises SnapshotError when anything is damaged, missing or of another time.
        """
        rows: list[Row] = []
        try:
            found = self._query("PRAGMA quick_check(1)")
            if found != [("ok",)]:
                raise SnapshotError(_damaged(self.path, found[0][0]))
            count = total = 0
            # one pass for both: the next owner waits for this
            for stored_row in self._scan(""):
                row = _decode(stored_row, self.path)
                count, total = count + 1, total ^ stored_row[5]
                if row[1] == "state":
                    rows.append(row)
            stored = self._query("SELECT value FROM meta WHERE name = 'totals'")
            if not stored or orjson.loads(stored[0][0]) != [count, total]:
                raise SnapshotError(_damaged(self.path, "rows and totals are of different times"))
        except (sqlite3.DatabaseError, ValueError) as error:
            raise SnapshotError(_damaged(self.path, error)) from error
        return rows

    def rows(self, kind: str | None = None) -> Iterator[Row]:
        """Rows as committed, streamed; only those of a kind if given. Not while it is written to."""
        condition = "" if kind is None else " WHERE kind = ?"
        for row in self._scan(condition, *(() if kind is None else (kind,))):
            yield _decode(row, self.path)

    def find(self, conversation: str) -> Row | None:
        """One row. Raises SnapshotError when it is damaged."""
        found = self._query(f"SELECT {_COLUMNS} FROM states WHERE conversation = ?", conversation)  # noqa: S608
        return _decode(found[0], self.path) if found else None

    def due(self, until_ms: int, limit: int) -> list[tuple[str, int]]:
        """Conversations with a deadline at or before `until_ms`, the earliest first."""
        sql = "SELECT conversation, due FROM states WHERE due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?"
        return self._query(sql, until_ms, limit)

    def close(self) -> None:
        """Close both connections; the write-ahead log is folded into the file."""
        with self._write_lock, self._read_lock:
            if self._reader is not None:
                self._reader.close()
            self._writer.close()

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _begin(self) -> None:
        self._writer.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        self._put_meta("stamp", self.stamp.encoded())
        self._put_meta("totals", [0, 0])

    def _mark(self, mark: Mark) -> None:
        last = self._meta("mark")
        if last is not None and mark.diff_offset < last[0]["diff_offset"]:
            message = f"{self.path}: offset {mark.diff_offset} is below the {last[0]['diff_offset']} that it holds"
            raise SnapshotError(message)
        fields = mark.model_dump(mode="json")
        self._put_meta("mark", [fields, zlib.crc32(orjson.dumps(fields))])

    def _store(self, rows: Iterable[Row]) -> None:
        """Each page of a file with pages of two times looks well; the count and sum over all rows do not."""
        db = self._writer
        count, total = self._meta("totals")
        for conversation, kind, version, body, due in rows:
            old = db.execute("SELECT checksum FROM states WHERE conversation = ?", (conversation,)).fetchone()
            # XOR takes a checksum out as it put it in, so the totals never need a scan.
            if old is not None:
                count, total = count - 1, total ^ old[0]
            if body is None:
                db.execute("DELETE FROM states WHERE conversation = ?", (conversation,))
                continue
            checksum = _checksum(conversation, kind, version, body, due)
            values = (conversation, kind, version, body, due, checksum)
            db.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)", values)
            count, total = count + 1, total ^ checksum
        self._put_meta("totals", [count, total])

    def _put_meta(self, name: str, value: object) -> None:
        self._writer.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, orjson.dumps(value)))

    def _meta(self, name: str) -> Any:
        row = self._writer.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else orjson.loads(row[0])

    def _query(self, sql: str, *values: object) -> list[Any]:
        with self._read_lock:
            if self._reader is None:
                self._reader = _connect(self.path)
            try:
                return self._reader.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise SnapshotError(_damaged(self.path, error)) from error

    def _scan(self, condition: str, *values: object) -> Iterator[Any]:
        connection = _connect(self.path)
        try:
            yield from connection.execute(f"SELECT {_COLUMNS} FROM states{condition}", values)  # noqa: S608
        finally:
            connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    # Each connection is used under its lock, by whichever thread the caller runs it in.
    return sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)


def _checksum(conversation: str, kind: str, version: int, body: bytes, due: int | None) -> int:
    return zlib.crc32(body, zlib.crc32(f"{conversation}|{kind}|{version}|{due}".encode()))


def _decode(row: Any, path: Path) -> Row:
    conversation, kind, version, body, due, checksum = row
    if (
        not isinstance(conversation, str)
        or not isinstance(body, bytes)
        or checksum != _checksum(conversation, kind, version, body, due)
    ):
        raise SnapshotError(_damaged(path, f"the row of {conversation!r}"))
    return conversation, kind, version, body, due


def _damaged(path: Path, what: object) -> str:
    return f"{path}: damaged ({what})"
