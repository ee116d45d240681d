"""Where a push waits while the broker does not answer: masked and sealed records in a SQLite file, in their order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from memory.write_ahead import write_ahead
from schemas import codec
from streams.runtime.ports import Fact

T = TypeVar("T")
_Row = tuple[str, str, str, bytes, str]

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
    """A SQLite file, or memory. Belongs to one event loop; holds only what intake has masked and sealed.

    Its disk is waited for on a thread of its own, and all that comes meanwhile shares the next sync.
    """

    def __init__(self, path: Path | None = None, most: int = MAX_ROWS) -> None:
        self._most = most
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1, check_same_thread=False)
        # full: what the channel was told is safe must survive a power cut. Deleted rows are overwritten
        write_ahead(self._db, 1)
        self._db.executescript(_TABLE)
        self._thread = ThreadPoolExecutor(1, "spool")
        self._rows = int(self._db.execute("select count(*) from spool").fetchone()[0])
        self._coming = 0
        self._waiting: list[tuple[list[_Row], asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        if self._rows:
            self.news.set()

    def __len__(self) -> int:
        """What is stored or is being stored."""
        return self._rows + self._coming

    def put(self, facts: Iterable[tuple[Fact, str]]) -> asyncio.Future[None]:
        """Store facts with their traces, in call order; done once they are durable. A repeat stays where it is.

        The future, or the call when the spool is full, raises SpoolError, and then none of them is stored.
        """
        rows = [(fact.topic, fact.conversation, fact.id, codec.encode(fact.value), trace) for fact, trace in facts]
        if len(self) + len(rows) > self._most:
            message = f"{len(self)} records wait for the broker already"
            raise SpoolError(message)
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        self._waiting.append((rows, stored))
        self._coming += len(rows)
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write())
        return stored

    async def first(self, limit: int = 200) -> list[Waiting]:
        """What waits longest, at most one record of each conversation: a second goes only after the first is there."""
        sql = "select seq, topic, conversation, id, value, trace from spool order by seq limit ?"
        rows = await self._on_thread(lambda: self._db.execute(sql, (limit * 5,)).fetchall())
        firsts = {row[2]: row for row in reversed(rows)}
        return [
            Waiting(seq, Fact(topic, conversation, fact_id, codec.decode(topic, value)), trace)
            for seq, topic, conversation, fact_id, value, trace in sorted(firsts.values())[:limit]
        ]

    async def drop(self, seqs: Iterable[int]) -> None:
        """The broker has these. Raises SpoolError; then they stay, and are sent once more under the same ids."""
        gone = [(seq,) for seq in seqs]
        self._rows -= await self._on_thread(lambda: self._changed("delete from spool where seq = ?", gone))
        if not len(self):
            self.news.clear()
            # nothing of it stays in the log file either
            await self._on_thread(lambda: self._db.execute("pragma wal_checkpoint(truncate)").fetchall())

    def close(self) -> None:
        """Close the file."""
        self._thread.shutdown()
        self._db.close()

    async def _write(self) -> None:
        sql = "insert or ignore into spool(topic, conversation, id, value, trace) values (?, ?, ?, ?, ?)"
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            rows = [row for some, _ in waiting for row in some]
            error: SpoolError | None = None
            try:
                self._rows += await self._on_thread(partial(self._changed, sql, rows))
                self.news.set()
            except SpoolError as failed:
                error = failed
            self._coming -= len(rows)
            for _, stored in waiting:
                if not stored.done():  # else its client has left
                    stored.set_result(None) if error is None else stored.set_exception(error)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            message = f"the spool can't be used: {error}"
            raise SpoolError(message) from error

    def _changed(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> int:
        """One transaction; how many rows it changed."""
        try:
            self._db.execute("begin immediate")
            count = self._db.executemany(sql, rows).rowcount
            self._db.execute("commit")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("rollback")
            raise
        return count
