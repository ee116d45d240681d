"""The web channel's outbox: one row a message, stored before the send is answered, read by the event streams.

A row is sealed whole under its conversation's key: what the customer is shown is nobody else's to read.

A resend raises the attempt and moves the one row to the end, so a client sees the message again but
keeps one (A13); a repeat of an attempt that is stored changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson

from memory.sealing import KeyStore, open_seal, seal
from memory.write_ahead import write_ahead
from schemas.delivery import OutboundMessage
from schemas.events import Seal

log = logging.getLogger(__name__)

_TABLE = """
create table if not exists outbox(seq integer primary key autoincrement, message_id text not null,
    conversation text not null, attempt integer not null, at integer not null, message text not null,
    unique(conversation, message_id));
create index if not exists outbox_conversation on outbox(conversation, seq);
create index if not exists outbox_at on outbox(at);
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """A row: its place in the outbox, and the message as JSON."""

    seq: int
    message_id: str
    attempt: int
    message: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a put: whether it was new, and when the attempt was stored (UTC milliseconds)."""

    new: bool
    at: int


class Outbox:
    """A SQLite file, or memory for the in-memory pipeline. Belongs to one event loop."""

    def __init__(self, path: Path | None, now_ms: Callable[[], int], keys: KeyStore | None = None) -> None:
        """`keys` may only be missing where nothing is kept, in memory."""
        self._now = now_ms
        self._keys = keys
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=10)
        # full: a 202 makes the message `sent`, so it must survive a power cut
        write_ahead(self._db, 10)
        self._db.executescript(_TABLE)
        self._waiting: list[tuple[str, OutboundMessage, asyncio.Future[Kept]]] = []
        self._news: defaultdict[str, list[asyncio.Event]] = defaultdict(list)

    def put(self, conversation: str, message: OutboundMessage) -> asyncio.Future[Kept]:
        """Store; done once it is durable. All that wait in one turn share a disk sync."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[Kept] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._store)
        self._waiting.append((conversation, message, stored))
        return stored

    def after(self, conversation: str, seq: int, limit: int = 100) -> list[Stored]:
        """The conversation's messages after a place, in order."""
        rows = self._db.execute(
            "select seq, message_id, attempt, message from outbox where conversation = ? and seq > ? order by seq "
            "limit ?", (conversation, seq, limit))  # fmt: skip
        opened = [(row, self._opened(conversation, row[3])) for row in rows]
        return [Stored(row[0], row[1], row[2], message) for row, message in opened if message is not None]

    def forget(self, conversation: str) -> int:
        """Remove the conversation's rows, from the file's log, too; how many those were."""
        count = self._db.execute("delete from outbox where conversation = ?", (conversation,)).rowcount
        self._db.execute("pragma wal_checkpoint(truncate)")
        return count

    def newest(self) -> int:
        """The highest place that any message ever had; 0 in a new file."""
        row = self._db.execute("select seq from sqlite_sequence where name = 'outbox'").fetchone()
        return 0 if row is None else int(row[0])

    def watch(self, conversation: str) -> asyncio.Event:
        """An event that is set at each new message of the conversation; give it back with `unwatch`."""
        news = asyncio.Event()
        self._news[conversation].append(news)
        return news

    def unwatch(self, conversation: str, news: asyncio.Event) -> None:
        """Stop watching."""
        self._news[conversation].remove(news)
        if not self._news[conversation]:
            del self._news[conversation]

    def wake_all(self) -> None:
        """Set every watcher, so that open streams can end."""
        for watchers in self._news.values():
            for news in watchers:
                news.set()

    def prune(self, before_ms: int) -> int:
        """Drop what was stored before that time; how many. A disk that fails is for the next time."""
        try:
            return self._db.execute("delete from outbox where at < ?", (before_ms,)).rowcount
        except sqlite3.Error as error:  # raised, it would end the task that prunes, and the file would only grow
            log.warning("the outbox was not pruned: %s", error)
            return 0

    def __len__(self) -> int:
        return int(self._db.execute("select count(*) from outbox").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _store(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            self._db.execute("begin immediate")
            stored = [self._one(conversation, message) for conversation, message, _ in waiting]
            self._db.execute("commit")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("rollback")
            for _, _, done in waiting:
                if not done.done():
                    done.set_exception(OSError(f"the outbox can't be written: {error}"))
            return
        for (conversation, _, done), kept in zip(waiting, stored, strict=True):
            if not done.done():
                done.set_result(kept)
            # only after the commit: a stream must not show what a crash would take back
            for news in self._news.get(conversation, ()) if kept.new else ():
                news.set()

    def _one(self, conversation: str, message: OutboundMessage) -> Kept:
        row = self._db.execute("select attempt, at from outbox where conversation = ? and message_id = ?",
                               (conversation, message.message_id)).fetchone()  # fmt: skip
        # a repeat of our own sender: the answer that it missed, with the time of then
        if row is not None and row[0] >= message.attempt:
            return Kept(new=False, at=row[1])
        now = self._now()
        self._db.execute(
            "insert or replace into outbox(message_id, conversation, attempt, at, message) values (?, ?, ?, ?, ?)",
            (message.message_id, conversation, message.attempt, now, self._closed(conversation, message)),
        )  # autoincrement: a replaced row gets a place that no row ever had
        return Kept(new=True, at=now)

    def _closed(self, conversation: str, message: OutboundMessage) -> str:
        plain = message.model_dump_json()
        if self._keys is None:
            return plain
        return seal(self._keys, conversation, plain.encode()).model_dump_json()

    def _opened(self, conversation: str, stored: str) -> str | None:
        """The message as JSON; None when its key was destroyed: the customer is forgotten."""
        if self._keys is None:
            return stored
        opened = open_seal(self._keys, Seal(**orjson.loads(stored)), conversation)
        return None if opened is None else opened.decode()
