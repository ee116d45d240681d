"""The embedded store of relations: one SQLite file that keeper, workers and commands may have open at once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import orjson

from memory.facts.port import PutResult
from memory.relations import dump
from memory.relations.port import (
    EXAMPLES,
    LIMIT,
    MarkedDown,
    Node,
    Relation,
    RelationsError,
    RelationsUnavailableError,
    Step,
)  # fmt: skip
from memory.relations.schema import EdgeRow, NodeRow, rows
from memory.write_ahead import write_ahead

BUSY_SECONDS = 10.0  # another process writes for so long at most
CACHE_KIB = 32_768  # of each connection: the upper part of a million relations' indexes
FORMAT = 1  # of the file
_T = TypeVar("_T")

_TABLES = """
CREATE TABLE IF NOT EXISTS nodes (
    key TEXT PRIMARY KEY, label TEXT NOT NULL, id TEXT NOT NULL, shop TEXT NOT NULL, customer TEXT NOT NULL,
    written INTEGER NOT NULL, fields TEXT NOT NULL,
    reason TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS edges (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, "start" TEXT NOT NULL, "end" TEXT NOT NULL, start_label TEXT NOT NULL,
    end_label TEXT NOT NULL, shop TEXT NOT NULL, customer TEXT NOT NULL, at INTEGER NOT NULL, write_id TEXT NOT NULL,
    trace_id TEXT NOT NULL, active INTEGER NOT NULL, written INTEGER NOT NULL, fields TEXT NOT NULL,
    result TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS nodes_customer ON nodes (shop, customer);
CREATE INDEX IF NOT EXISTS edges_customer ON edges (shop, customer, at);
CREATE INDEX IF NOT EXISTS edges_start ON edges ("start", kind, "end");
-- these two hold all that is asked over all customers, so that no row is looked up: 10 ms instead of 100. Reason and
-- result stand beside the fields for them, because an expression or a generated column would be looked up again.
CREATE INDEX IF NOT EXISTS checks ON edges (shop, result, active, at, "end", "start", customer)
    WHERE result IS NOT NULL;
CREATE INDEX IF NOT EXISTS complaints ON nodes (key, reason, id) WHERE reason IS NOT NULL;
"""
_ALL_NODES = "SELECT key, label, id, shop, customer, written, fields FROM nodes WHERE shop = ? ORDER BY key"
_ALL_EDGES = """
SELECT key, kind, "start", "end", start_label, end_label, shop, customer, at, write_id, trace_id, active, written,
       fields FROM edges WHERE shop = ? ORDER BY key
"""
_NODE = """
INSERT INTO nodes VALUES (:key, :label, :id, :shop, :customer, :written, :fields, json_extract(:fields, '$.reason'))
ON CONFLICT (key) DO UPDATE SET written = excluded.written, fields = json_patch(fields, excluded.fields),
                                reason = coalesce(excluded.reason, reason)
"""
_EDGE = """
INSERT INTO edges VALUES (:key, :kind, :start, :end, :start_label, :end_label, :shop, :customer, :at, :write_id,
                          :trace_id, :active, :written, :fields, json_extract(:fields, '$.result'))
ON CONFLICT (key) DO UPDATE SET at = excluded.at, write_id = excluded.write_id, trace_id = excluded.trace_id,
                                active = excluded.active, written = excluded.written, fields = excluded.fields,
                                result = excluded.result
"""
# what a backup brings is true as it stands; of writes the last one wins, also when an older one comes again
_UNLESS_OLDER = " WHERE excluded.written >= written"
_PATH = """
SELECT e.kind, n.label, n.id, n.fields, e.at, e.write_id, e.fields, n.key, e."end"
FROM edges e JOIN nodes n ON n.key = iif(e.kind = 'TRIGGERED_QUALITY_CHECK', e."start", e."end")
WHERE e.shop = ?1 AND e.customer = ?2 AND e.at >= ?3 AND e.at < ?4 AND e.active
  AND e.kind IN ('MADE_ORDER', 'FILED_COMPLAINT', 'TRIGGERED_QUALITY_CHECK')
  AND (e.kind <> 'MADE_ORDER' OR NOT EXISTS (
    SELECT 1 FROM edges o WHERE o."start" = e."start" AND o.kind = 'MADE_ORDER' AND o."end" = e."end" AND o.active
      AND o.at >= ?3 AND o.at < ?4 AND (o.at > e.at OR (o.at = e.at AND o.key < e.key))))
ORDER BY e.at DESC, e.key LIMIT ?5
"""
_AROUND = """
SELECT e."start", e.kind, n.label, n.id, n.fields FROM edges e JOIN nodes n ON n.key = e."end"
WHERE e."start" IN (SELECT value FROM json_each(?)) AND e.kind IN ('HANDLED_BY', 'ABOUT') AND e.active
ORDER BY e.at, e.key
"""
_NAMED = "SELECT key, label, id, fields FROM nodes WHERE key IN (SELECT value FROM json_each(?))"
_MARKED = """
SELECT e."end", e.customer, c.id, e.at FROM edges e JOIN nodes c ON c.key = e."start"
WHERE e.shop = ? AND e.result = 'marked_down' AND e.active = 1 AND e.at >= ? AND e.at < ? AND c.reason = ?
ORDER BY e.at DESC, e.key
"""


class EmbeddedRelations:
    """The relations in one SQLite file; one connection writes, another reads, neither waits for the other."""

    def __init__(self, path: Path, *, busy_s: float = BUSY_SECONDS) -> None:
        """Open the file, or begin it. Raises RelationsError when it is no file of ours or damaged.

        Another process's write is waited for, at most `busy_s`.
        """
        self.path = path
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = _connect(path, busy_s)
        try:
            # a write that was acknowledged is on disk, and what is forgotten leaves no trace in free pages
            write_ahead(self._writer, busy_s)
            found = self._writer.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, FORMAT):
                message = f"{path}: written by another version ({found}): start it, or move the file away"
                raise RelationsError(message)
            self._writer.executescript(f"{_TABLES} PRAGMA user_version = {FORMAT};")
            self._reader = _connect(path, busy_s)
        except sqlite3.Error as error:
            self._writer.close()
            raise _said(path, error) from error

    async def merge(self, relations: Sequence[Relation]) -> PutResult:
        """See RelationStore."""
        nodes, edges, refused = rows(relations)
        if edges:
            await asyncio.to_thread(self._write, lambda db: _store(db, nodes, edges, _UNLESS_OLDER))
        bad = {one.write_id for one in refused}
        return PutResult(tuple(r.write_id for r in relations if r.write_id not in bad), tuple(refused))

    async def customer_path(
        self, shop: str, customer: str, since_ms: int, until_ms: int, limit: int = LIMIT
    ) -> list[Step]:
        """See RelationStore."""
        return await asyncio.to_thread(self._read, lambda db: _path(db, (shop, customer, since_ms, until_ms, limit)))

    async def marked_down_agents(
        self, shop: str, since_ms: int, until_ms: int, reason: str = "return"
    ) -> list[MarkedDown]:
        """See RelationStore."""
        return await asyncio.to_thread(self._read, lambda db: _marked(db, (shop, since_ms, until_ms, reason)))

    async def delete_customer(self, shop: str, customer: str) -> int:
        """See RelationStore. Nothing of it stays in the file or its write-ahead log."""

        def delete(db: sqlite3.Connection) -> int:
            count = db.execute("DELETE FROM edges WHERE shop = ? AND customer = ?", (shop, customer)).rowcount
            db.execute("DELETE FROM nodes WHERE shop = ? AND customer = ?", (shop, customer))
            return count

        return await asyncio.to_thread(lambda: self._write(delete, empty_log=True))

    async def backup(self, shop: str, file: Path) -> int:
        """See RelationStore."""

        def copy(db: sqlite3.Connection) -> int:
            nodes = db.execute(_ALL_NODES, (shop,))
            edges = db.execute(_ALL_EDGES, (shop,))
            with dump.Writer(file, shop) as out:
                for row in nodes:
                    out.node(NodeRow(*_with_fields(row)))
                for row in edges:
                    out.edge(_edge(row))
            return out.count

        return await asyncio.to_thread(self._read, copy)

    async def restore(self, shop: str, file: Path) -> int:
        """See RelationStore."""

        def load(db: sqlite3.Connection) -> int:
            source = dump.Dump(file, shop)
            db.execute("DELETE FROM edges WHERE shop = ?", (shop,))
            db.execute("DELETE FROM nodes WHERE shop = ?", (shop,))
            return _store(db, source.nodes(), source.edges())

        return await asyncio.to_thread(self._write, load)

    async def close(self) -> None:
        """See RelationStore."""
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()

    def _write(self, work: Callable[[sqlite3.Connection], _T], *, empty_log: bool = False) -> _T:
        with self._write_lock:
            try:
                with _transaction(self._writer, "BEGIN IMMEDIATE"):
                    done = work(self._writer)
                if empty_log:
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error as error:
                raise _said(self.path, error) from error
            return done

    def _read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._read_lock:
            try:
                with _transaction(self._reader, "BEGIN"):  # all its queries see one moment
                    return work(self._reader)
            except sqlite3.Error as error:
                raise _said(self.path, error) from error


def _connect(path: Path, busy_s: float) -> sqlite3.Connection:
    try:
        # each connection is used under its lock, by whichever thread the caller runs it in
        db = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except sqlite3.Error as error:
        raise _said(path, error) from error
    return db


@contextmanager
def _transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _said(path: Path, error: sqlite3.Error) -> RelationsError | RelationsUnavailableError:
    """A file that is busy, full or out of reach may work later; one that is damaged will not."""
    if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError):
        return RelationsUnavailableError(f"{path}: not just now ({error})")
    return RelationsError(f"{path}: damaged, or no file of ours ({error}): restore a backup")


def _store(db: sqlite3.Connection, nodes: Iterable[NodeRow], edges: Iterable[EdgeRow], unless: str = "") -> int:
    db.executemany(_NODE + unless, map(_parameters, nodes))
    cursor = db.executemany(_EDGE + unless, map(_parameters, edges))
    return cursor.rowcount


def _parameters(row: NodeRow | EdgeRow) -> dict[str, Any]:
    return {**asdict(row), "fields": orjson.dumps(row.fields).decode()}


def _edge(row: Sequence[Any]) -> EdgeRow:
    edge = EdgeRow(*_with_fields(row))
    return replace(edge, active=bool(edge.active))


def _with_fields(row: Sequence[Any]) -> list[Any]:
    return [*row[:-1], orjson.loads(row[-1])]


def _node(label: str, identity: str, fields: str) -> Node:
    return Node(label, identity, orjson.loads(fields))


def _path(db: sqlite3.Connection, asked: tuple[str, str, int, int, int]) -> list[Step]:
    found = db.execute(_PATH, asked).fetchall()
    agents: dict[str, list[Node]] = {}
    orders: dict[str, list[str]] = {}
    for start, kind, *node in db.execute(_AROUND, (orjson.dumps([row[7] for row in found]).decode(),)):
        if kind == "HANDLED_BY":
            agents.setdefault(start, []).append(_node(*node))
        else:
            orders.setdefault(start, []).append(node[1])
    named = _named(db, (row[8] for row in found if row[0] == "TRIGGERED_QUALITY_CHECK"))
    steps = []
    for kind, label, identity, fields, at, write_id, said, key, end in found:
        who = (named[end],) if end in named else tuple(agents.get(key, ()))
        about = tuple(orders.get(key, ()))
        steps.append(Step(kind, _node(label, identity, fields), at, write_id, orjson.loads(said), who, about))
    return steps


def _marked(db: sqlite3.Connection, asked: tuple[str, int, int, str]) -> list[MarkedDown]:
    checks: dict[str, list[tuple[str, str, int]]] = {}  # of each agent, the newest first
    for agent, *check in db.execute(_MARKED, asked):
        checks.setdefault(agent, []).append((check[0], check[1], check[2]))
    agents = _named(db, checks)
    found = [
        MarkedDown(agents[key], len(of), len({one[0] for one in of}), of[0][2],
                   tuple(dict.fromkeys(one[1] for one in of))[:EXAMPLES])
        for key, of in checks.items()
    ]  # fmt: skip
    return sorted(found, key=lambda one: (-one.times, one.agent.id))


def _named(db: sqlite3.Connection, keys: Iterable[str]) -> dict[str, Node]:
    return {key: _node(*node) for key, *node in db.execute(_NAMED, (orjson.dumps([*keys]).decode(),))}
