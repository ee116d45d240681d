"""Files that several processes open at the same moment."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from memory.write_ahead import write_ahead


def opened(path: Path) -> sqlite3.Connection:
    """A connection for any thread."""
    return sqlite3.connect(path, timeout=0.1, isolation_level=None, check_same_thread=False)


def test_who_comes_second_waits_for_the_first(tmp_path: Path) -> None:
    """SQLite does not wait when it switches the journal of a held file: we do, and both use the log (promise 9)."""
    first, second = opened(tmp_path / "x.db"), opened(tmp_path / "x.db")
    first.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.3, first.execute, ("COMMIT",))
    release.start()

    write_ahead(second, 30)

    release.join()
    assert ("wal", 2, 1) == tuple(
        second.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "secure_delete")
    )


def test_a_file_that_stays_held_is_an_error_in_time(tmp_path: Path) -> None:
    """Nobody waits for ever for another process."""
    first, second = opened(tmp_path / "x.db"), opened(tmp_path / "x.db")
    first.execute("BEGIN EXCLUSIVE")

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write_ahead(second, 0.05)


def test_a_file_that_is_none_is_told_at_once(tmp_path: Path) -> None:
    """What is damaged is not tried again."""
    (tmp_path / "x.db").write_bytes(b"no database " * 1_000)

    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        write_ahead(opened(tmp_path / "x.db"), 30)
