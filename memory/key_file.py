"""The key store of one installation: a SQLite file that gateway, workers and commands share.

A process caches keys, and asks for the file's generation at each use (a read of one row, a few microseconds): when
it moved, the cache is thrown away, so a destroyed key is never used again by anyone.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.master_keys import MasterKeys, SealError, Wrapper, master_keys
from memory.sealing import HeldError, Hold, new_key
from memory.write_ahead import write_ahead

_CACHED = 10_000  # keys held in memory a process: 100 bytes each
_BATCH = 500  # keys wrapped anew in one transaction, so that others get their turn
_EMPTY_S = 10.0  # a reader that holds the file's log longer is said

_TABLES = """
CREATE TABLE IF NOT EXISTS keys (owner TEXT PRIMARY KEY, key_id TEXT NOT NULL UNIQUE, wrapped BLOB NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epoch (id INTEGER PRIMARY KEY CHECK (id = 1), destroyed INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS holds (owner TEXT PRIMARY KEY, reason TEXT NOT NULL, held_by TEXT NOT NULL,
    at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS forgotten (owner TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO epoch VALUES (1, 0);
"""

BUSY_SECONDS = 10.0  # another process makes a key for so long at most


class FileKeyStore:
    """See KeyStore; safe to use from several threads and processes. `wrapper` may be the bytes of one master key."""

    def __init__(self, path: Path, wrapper: Wrapper | bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.close(descriptor)
        self._path = path
        self._wrapper = MasterKeys(lambda: (wrapper,)) if isinstance(wrapper, bytes) else wrapper
        self._lock = threading.RLock()
        self._cache: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._ids: dict[str, str] = {}
        self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        # FULL: a key is durable before anything is sealed under it; a lost key is a lost message.
        write_ahead(self._db, BUSY_SECONDS)
        self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        self._epoch = self._generation()

    def key_for(self, owner: str) -> tuple[str, bytes]:
        """See KeyStore. Two processes that ask for a new owner at the same moment get the same key."""
        with self._lock:
            self._refresh()
            cached = self._cache.get(owner)
            if cached is not None:
                self._cache.move_to_end(owner)
                return cached
            row = self._row("owner", owner) or self._made(owner)
            return self._keep(*row)

    def find(self, key_id: str) -> bytes | None:
        """See KeyStore."""
        with self._lock:
            self._refresh()
            owner = self._ids.get(key_id)
            if owner is not None:
                return self._cache[owner][1]
            row = self._row("key_id", key_id)
            return None if row is None else self._keep(*row)[1]

    def owner_of(self, key_id: str) -> str | None:
        """See KeyStore."""
        with self._lock:
            row = self._row("key_id", key_id)
            return None if row is None else row[0]

    def destroy(self, owner: str) -> bool:
        """See KeyStore. The page is overwritten and the write-ahead log emptied, so the bytes are gone from disk."""
        return self._destroyed(owner, None)

    def _destroyed(self, owner: str, at: int | None) -> bool:
        """With `at` it is remembered in the same transaction: whatever stops us, a key that is gone is known to be."""
        with self._lock:
            with self._changing() as db:
                hold = self.held(owner)
                if hold is not None:
                    raise HeldError(owner, hold)
                gone = db.execute("DELETE FROM keys WHERE owner = ?", (owner,)).rowcount > 0
                db.execute("UPDATE epoch SET destroyed = destroyed + 1")
                if at is not None:
                    db.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", (owner, at))
            self._empty_log()
            self._refresh()
            return gone

    def hold(self, owner: str, hold: Hold | None) -> None:
        """See KeyStore."""
        with self._lock, self._changing() as db:
            if hold is None:
                db.execute("DELETE FROM holds WHERE owner = ?", (owner,))
            else:
                db.execute("INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?)", (owner, hold.reason, hold.by, hold.at))

    def held(self, owner: str) -> Hold | None:
        """See KeyStore."""
        with self._lock:
            row = self._db.execute("SELECT reason, held_by, at FROM holds WHERE owner = ?", (owner,)).fetchone()
            return None if row is None else Hold(*row)

    def forget(self, owner: str, at: int) -> bool:
        """See KeyStore."""
        return self._destroyed(owner, at)

    def forgotten(self, owner: str) -> int | None:
        """See KeyStore."""
        with self._lock:
            row = self._db.execute("SELECT at FROM forgotten WHERE owner = ?", (owner,)).fetchone()
            return None if row is None else int(row[0])

    def wrap_anew(self) -> int:
        """Wrap every key by the newest master key; how many were not yet. Interrupted, it is simply run again."""
        with self._lock:
            with self._changing() as db:  # from here on every process looks for the newest master key before it wraps
                db.execute("UPDATE epoch SET destroyed = destroyed + 1")
            self._refresh()
            count = sum(self._wrap_some(rows) for rows in self._batches())
            self._empty_log()
            return count

    def old(self) -> int:
        """How many keys are not wrapped by the newest master key."""
        with self._lock:
            self._refresh()
            return sum(not self._wrapper.is_current(key_id, wrapped)
                       for rows in self._batches() for _, key_id, wrapped in rows)  # fmt: skip

    def count(self) -> int:
        """See KeyStore."""
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM keys").fetchone()[0])

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _made(self, owner: str) -> tuple[str, str, bytes]:
        with self._changing() as db:
            self._refresh()  # inside the transaction: a rotation can't come between the look and the insert
            key_id, key = new_key()
            values = (owner, key_id, self._wrapper.wrap(key_id, key))
            db.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", values)
            return self._row("owner", owner) or values

    def _batches(self) -> Iterator[list[tuple[str, str, bytes]]]:
        last = ""
        sql = "SELECT owner, key_id, wrapped FROM keys WHERE owner > ? ORDER BY owner LIMIT ?"
        while rows := self._db.execute(sql, (last, _BATCH)).fetchall():
            last = rows[-1][0]
            yield rows

    def _wrap_some(self, rows: list[tuple[str, str, bytes]]) -> int:
        old = [(key_id, self._wrapper.unwrap(key_id, wrapped)) for _, key_id, wrapped in rows
               if not self._wrapper.is_current(key_id, wrapped)]  # fmt: skip
        with self._changing() as db:
            # by id, and only rows that are still there: one destroyed meanwhile stays destroyed
            db.executemany("UPDATE keys SET wrapped = ? WHERE key_id = ?",
                           [(self._wrapper.wrap(key_id, key), key_id) for key_id, key in old])  # fmt: skip
        return len(old)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _empty_log(self) -> None:
        until = time.monotonic() + _EMPTY_S
        while self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > until:
                message = f"{self._path}: its log can't be emptied, another process reads it; run the command again"
                raise SealError(message)
            time.sleep(0.05)

    def _generation(self) -> int:
        return int(self._db.execute("SELECT destroyed FROM epoch").fetchone()[0])

    def _refresh(self) -> None:
        # One small read per use, so that a key that another process destroyed is gone here, too.
        epoch = self._generation()
        if epoch != self._epoch:
            self._cache.clear()
            self._ids.clear()
            self._wrapper.reload()
            self._epoch = epoch

    def _row(self, column: str, value: str) -> tuple[str, str, bytes] | None:
        sql = f"SELECT owner, key_id, wrapped FROM keys WHERE {column} = ?"  # noqa: S608 (one of our two column names)
        row: tuple[str, str, bytes] | None = self._db.execute(sql, (value,)).fetchone()
        return row

    def _keep(self, owner: str, key_id: str, wrapped: bytes) -> tuple[str, bytes]:
        self._cache[owner] = (key_id, self._unwrap(key_id, wrapped))
        self._ids[key_id] = owner
        while len(self._cache) > _CACHED:
            _, (old, _key) = self._cache.popitem(last=False)
            del self._ids[old]
        return self._cache[owner]

    def _unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        try:
            return self._wrapper.unwrap(key_id, wrapped)
        except SealError as error:
            message = f"{self._path}: {error}"
            raise SealError(message) from error


def open_key_store(data_dir: Path, master_key_file: Path | None = None) -> FileKeyStore:
    """The key store that every process of one installation shares: `keys.sqlite` under data_dir."""
    return FileKeyStore(data_dir / "keys.sqlite", master_keys(master_key_file or data_dir / "master.key"))
