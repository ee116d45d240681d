"""One shop's facts in a SQLite file, for one thread at a time: rows, words, vectors."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from memory.facts import superseding
from memory.facts.backup import decode, encode
from memory.facts.nearest import Index
from memory.facts.port import Fact, FactsError
from memory.facts.ranking import fact_text
from memory.facts.vectors import Vector, tokens
from memory.write_ahead import write_ahead

CUSTOMER_MAX = 2_000  # facts of one customer that are all compared, the newest
CANDIDATES = 200  # facts of a whole shop whose whole vectors are compared
COMPARED = 30  # of these, so many by words too, and as many that have a rare word
RARE, COMMON = 4, 2_000  # of the asked words, the rarest so many are looked up, none that more facts hold
_IN_ONE = 500  # values in one statement, below every SQLite's limit
_T = TypeVar("_T")

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (
  row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, customer TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL,
  session TEXT NOT NULL, at INTEGER NOT NULL, active INTEGER NOT NULL, body BLOB NOT NULL, vector BLOB NOT NULL,
  change INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS facts_customer ON facts (customer, active, at);
CREATE INDEX IF NOT EXISTS facts_key ON facts (customer, key);
CREATE INDEX IF NOT EXISTS facts_session ON facts (session);
CREATE INDEX IF NOT EXISTS facts_at ON facts (at);
CREATE INDEX IF NOT EXISTS facts_change ON facts (change);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, detail=none, tokenize="unicode61 tokenchars '=_'");
CREATE VIRTUAL TABLE IF NOT EXISTS counts USING fts5vocab (words, row);
INSERT OR IGNORE INTO meta VALUES ('change', 0), ('removed', 0);
"""


@dataclass(frozen=True, slots=True)
class Where:
    """The filters of a search."""

    customer: str | None
    kinds: tuple[str, ...]
    since_ms: int
    active_only: bool

    def sql(self) -> tuple[str, list[object]]:
        """The condition and its values."""
        parts = ["at >= ?"]
        values: list[object] = [self.since_ms]
        if self.customer is not None:
            parts.append("customer = ?")
            values.append(self.customer)
        if self.active_only:
            parts.append("active = 1")
        if self.kinds:
            parts.append(f"kind IN ({_marks(self.kinds)})")
            values += self.kinds
        return " AND ".join(parts), values


class ShopFile:
    """Each method is one transaction. Raises sqlite3's errors."""

    def __init__(self, path: Path, vectors: str, busy_s: float) -> None:
        """Open or begin the file. Raises FactsError when it was made with other vectors than `vectors`."""
        # used by one thread at a time, whichever that is
        self._db = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
        try:
            write_ahead(self._db, busy_s)
            self._db.executescript(_TABLES)
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('vectors', ?)", (vectors,))
            found = self._meta("vectors")
        except BaseException:
            self._db.close()
            raise
        if found != vectors:
            self._db.close()
            message = (
                f"{path}: made with the vectors {found!r}, not {vectors!r}: back up with the old ones, then restore"
            )
            raise FactsError(message)
        self._index, self._seen, self._removed = Index(), 0, 0

    def put(self, batch: Sequence[tuple[Fact, Vector]]) -> None:
        """Store what is new of the batch."""
        facts = [fact for fact, _ in batch]
        vectors = {fact.write_id: vector.tobytes() for fact, vector in batch}
        self._write(lambda: self._apply(self._plan(facts), vectors))

    def latest(self, where: Where, most: int) -> list[Fact]:
        """The newest that pass."""
        condition, values = where.sql()
        sql = f"SELECT body FROM facts WHERE {condition} ORDER BY at DESC LIMIT ?"  # noqa: S608
        return [decode(body) for (body,) in self._db.execute(sql, (*values, most))]

    def candidates(self, text: str, vector: Vector, where: Where, top: int) -> list[tuple[Fact, Vector]]:
        """What may be among the best: all of a customer, else what is near by folded vector or has a rare word."""
        condition, values = where.sql()
        if where.customer is not None:
            sql = f"SELECT body, vector FROM facts WHERE {condition} ORDER BY at DESC LIMIT ?"  # noqa: S608
            return _with_vectors(self._db.execute(sql, (*values, CUSTOMER_MAX)))
        self._refresh()
        near = self._index.nearest(vector, CANDIDATES, where.kinds, where.since_ms, where.active_only)
        most = max(COMPARED, 4 * top)
        rows = {*self._nearest(vector, near, most), *self._with_words(text, where, most)}
        sql = "SELECT body, vector FROM facts WHERE row IN ({})"
        return [one for part in _parts(list(rows)) for one in _with_vectors(
            self._db.execute(sql.format(_marks(part)), part))]  # fmt: skip

    def _nearest(self, vector: Vector, rows: Sequence[int], most: int) -> list[int]:
        """Of those that are near by the folded vectors, the nearest by the whole ones."""
        sql = "SELECT row, vector FROM facts WHERE row IN ({})"
        found = [one for part in _parts(rows) for one in self._db.execute(sql.format(_marks(part)), part)]
        if not found:
            return []
        scores = np.frombuffer(b"".join(one[1] for one in found), dtype=np.float32).reshape(len(found), -1) @ vector
        return [found[place][0] for place in np.argsort(-scores)[:most]]

    def facts(self, condition: str, *values: object) -> list[Fact]:
        """All that fulfil a condition of ours, the oldest first."""
        sql = f"SELECT body FROM facts WHERE {condition} ORDER BY at, row"  # noqa: S608
        return [decode(body) for (body,) in self._db.execute(sql, values)]

    def remove(self, condition: str, *values: object) -> int:
        """Delete them, their words too, from the file's bytes as well; how many."""
        gone = self._write(lambda: self._remove(condition, values))
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log still holds the pages of before
        return gone

    def replace_all(self, batch: Sequence[tuple[Fact, Vector]]) -> int:
        """Make these the shop's facts, as they are; how many."""
        vectors = {fact.write_id: vector.tobytes() for fact, vector in batch}

        def work() -> int:
            self._remove("TRUE", ())
            self._apply(superseding.restored([fact for fact, _ in batch]), vectors)
            return len(batch)

        return self._write(work)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _write(self, work: Callable[[], _T]) -> _T:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            done = work()
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return done

    def _plan(self, facts: Sequence[Fact]) -> superseding.Plan:
        wanted = [str(one) for fact in facts for one in (fact.id, fact.trail_id)]
        found = {UUID(name): decode(body) for part in _parts(wanted) for name, body in self._db.execute(
            f"SELECT id, body FROM facts WHERE id IN ({_marks(part)})", part)}  # noqa: S608  # fmt: skip
        return superseding.plan(facts, found)

    def _apply(self, plan: superseding.Plan, vectors: Mapping[str, bytes]) -> None:
        change = self._meta("change")
        for object_id, fact in (*plan.trail.items(), *plan.current.items()):
            change += 1
            vector = vectors.get(fact.write_id) or self._vector(fact.id)
            values = (str(object_id), fact.customer, fact.key, fact.kind, fact.session_id, fact.at, fact.active,
                      encode(fact), vector, change)  # fmt: skip
            row = self._db.execute(_PUT, values).fetchone()[0]
            self._db.execute("DELETE FROM words WHERE rowid = ?", (row,))
            self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, " ".join(tokens(fact_text(fact)))))
        self._put_meta("change", change)

    def _vector(self, object_id: UUID) -> bytes:
        found: tuple[bytes] = self._db.execute("SELECT vector FROM facts WHERE id = ?", (str(object_id),)).fetchone()
        return found[0]

    def _remove(self, condition: str, values: Sequence[object]) -> int:
        sql = f"SELECT row FROM facts WHERE {condition}"  # noqa: S608
        rows = [row for (row,) in self._db.execute(sql, values)]
        for part in _parts(rows):
            self._db.execute(f"DELETE FROM words WHERE rowid IN ({_marks(part)})", part)  # noqa: S608
            self._db.execute(f"DELETE FROM facts WHERE row IN ({_marks(part)})", part)  # noqa: S608
        if rows:
            # a deleted row's words stay in older segments of the index until these are merged
            self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
            self._put_meta("removed", self._meta("removed") + 1)
        return len(rows)

    def _refresh(self) -> None:
        """Take what changed since the last search, by whichever process; after a deletion begin anew."""
        removed = self._meta("removed")
        if removed != self._removed:
            self._index, self._seen, self._removed = Index(), 0, removed
        sql = "SELECT row, at, active, kind, vector, change FROM facts WHERE change > ? ORDER BY change"
        rows = self._db.execute(sql, (self._seen,))
        while found := rows.fetchmany(5_000):
            self._index.add([entry[:5] for entry in found])
            self._seen = found[-1][5]

    def _with_words(self, text: str, where: Where, most: int) -> set[int]:
        asked = sorted(set(tokens(text)))[:_IN_ONE]
        sql = f"SELECT term FROM counts WHERE term IN ({_marks(asked)}) AND doc <= ? ORDER BY doc LIMIT ?"  # noqa: S608
        rare = [term for (term,) in self._db.execute(sql, (*asked, COMMON, RARE))]
        if not rare:
            return set()
        condition, values = where.sql()
        sql = (f"SELECT row FROM words JOIN facts ON row = words.rowid WHERE words MATCH ? AND {condition}"  # noqa: S608
               " ORDER BY rank LIMIT ?")  # fmt: skip
        matching = " OR ".join(f'"{term}"' for term in rare)
        return {row for (row,) in self._db.execute(sql, (matching, *values, most))}

    def _meta(self, name: str) -> Any:
        return self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0]

    def _put_meta(self, name: str, value: object) -> None:
        self._db.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


_PUT = """
INSERT INTO facts (id, customer, key, kind, session, at, active, body, vector, change)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, session = excluded.session, at = excluded.at,
  active = excluded.active, body = excluded.body, vector = excluded.vector, change = excluded.change
RETURNING row
"""


def _with_vectors(rows: Iterable[tuple[bytes, bytes]]) -> list[tuple[Fact, Vector]]:
    return [(decode(body), np.frombuffer(vector, dtype=np.float32)) for body, vector in rows]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _parts(values: Sequence[_T]) -> list[Sequence[_T]]:
    return [values[start : start + _IN_ONE] for start in range(0, len(values), _IN_ONE)]
