"""SQLite files that several processes open at once: a durable write-ahead log, and nothing left in free pages."""

from __future__ import annotations

import sqlite3
import time

_AGAIN_S = 0.02
_HELD = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


def write_ahead(db: sqlite3.Connection, busy_s: float) -> None:
    """Make the log of a file durable and its deletions thorough (promise 9, R-004-19).

    SQLite's own time limit does not hold for the switch to a write-ahead log: of processes that begin together all but
    one would fail. Raises sqlite3.OperationalError when the file is held for longer than `busy_s` seconds.
    """
    until = time.monotonic() + busy_s
    while True:
        try:
            db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _HELD or time.monotonic() > until:
                raise
        else:
            return
        time.sleep(_AGAIN_S)
