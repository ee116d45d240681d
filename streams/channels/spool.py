"""Where a push waits while the broker does not answer: masked and sealed records in a SQLite file, in their order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schemas import codec
from streams.runtime.ports import Fact

MAX_ROWS = 200_000  # about an hour of fifty pushes a second; above, the channel is told to come again

_TABLE = """
create table if not exists spool(seq integer primary key autoincrement, topic text not null, conversation text not null,
    id text not null, value blob not null, trace text not null, unique(topic, conversation, id));
"""


class SpoolError(Exception):
    """The spool is full, or its disk fails."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row of the spool: its place, the fact, and its trace."""

    seq: int
    fact: Fact
    trace: str


class Spool:
    """A SQLite file, or memory. Belongs to one event loop; holds only what intake has masked and sealed."""

    def __init__(self, path: Path | None = None, most: int = MAX_ROWS) -> None:
        self._most = most
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1)
        # full: what the channel was told is safe must survive a power cut. Deleted rows are overwritten
        self._db.executescript("pragma journal_mode=wal; pragma synchronous=full; pragma secure_delete=on;" + _TABLE)
        self._rows = int(self._db.execute("select count(*) from spool").fetchone()[0])
        self.news = asyncio.Event()
        if self._rows:
            self.news.set()

    def __len__(self) -> int:
        return self._rows

    def put(self, facts: Iterable[tuple[Fact, str]]) -> None:
        """Store facts with their traces, durable when it returns; one that is there already stays where it is.

        Raises SpoolError, and then has stored none of them.
        """
        rows = [(fact.topic, fact.conversation, fact.id, codec.encode(fact.value), trace) for fact, trace in facts]
        if self._rows + len(rows) > self._most:
            message = f"{self._rows} records wait for the broker already"
            raise SpoolError(message)
        sql = "insert or ignore into spool(topic, conversation, id, value, trace) values (?, ?, ?, ?, ?)"
        try:
            self._db.execute("begin immediate")
            self._rows += self._db.executemany(sql, rows).rowcount
            self._db.execute("commit")
        except sqlite3.Error as error:
            self._roll_back()
            message = f"the spool can't be written: {error}"
            raise SpoolError(message) from error
        self.news.set()

    def first(self, limit: int = 200) -> list[Waiting]:
        """What waits longest, at most one record of each conversation: a second goes only after the first is there."""
        rows = self._db.execute("select seq, topic, conversation, id, value, trace from spool order by seq limit ?",
                                (limit * 5,)).fetchall()  # fmt: skip
        firsts = {row[2]: row for row in reversed(rows)}
        return [
            Waiting(seq, Fact(topic, conversation, fact_id, codec.decode(topic, value)), trace)
            for seq, topic, conversation, fact_id, value, trace in sorted(firsts.values())[:limit]
        ]

    def drop(self, seqs: Iterable[int]) -> None:
        """The broker has these. Raises SpoolError; then they stay, and are sent once more under the same ids."""
        try:
            self._db.execute("begin immediate")
            self._rows -= self._db.executemany("delete from spool where seq = ?", [(seq,) for seq in seqs]).rowcount
            self._db.execute("commit")
            if not self._rows:
                self.news.clear()
                self._db.execute("pragma wal_checkpoint(truncate)")  # nothing of it stays in the log file either
        except sqlite3.Error as error:
            self._roll_back()
            message = f"the spool can't be written: {error}"
            raise SpoolError(message) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("rollback")
        self._rows = int(self._db.execute("select count(*) from spool").fetchone()[0])
