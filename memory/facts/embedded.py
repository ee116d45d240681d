"""The embedded store: one SQLite file a shop, keywords in FTS5, vectors beside them (docs/decisions/0009)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from memory.facts import backup, superseding
from memory.facts.port import Fact, FactsError, FactsUnavailableError, Hit, PutResult, Refused
from memory.facts.ranking import fact_text, newest, ranked
from memory.facts.shop_file import ShopFile, Where
from memory.facts.vectors import HashedVectors, Vector, Vectors

BUSY_SECONDS = 5.0  # a batch takes well under one
_T = TypeVar("_T")


class EmbeddedFacts:
    """Facts under one folder. Several processes may read; one writes for a customer."""

    def __init__(self, folder: Path | None, vectors: Vectors | None = None, *, busy_s: float = BUSY_SECONDS) -> None:
        """The folder is made when first used; another process's write is waited for, at most `busy_s`.

        Without a folder all is in memory, and on the caller's thread: nothing may wait for one on a virtual clock.
        """
        self._folder, self._busy_s = folder, busy_s
        self._vectors = vectors or HashedVectors()
        self._shops: dict[str, ShopFile] = {}
        self._lock = threading.Lock()

    async def put(self, facts: Sequence[Fact]) -> PutResult:
        """See FactStore."""
        vectors = await self._vectors.embed([fact_text(fact) for fact in facts])
        failed: list[Refused] = []
        good: dict[str, list[tuple[Fact, Vector]]] = {}
        for fact, vector in zip(facts, vectors, strict=True):
            reason = superseding.refusal(fact, vector, self._vectors)
            if reason:
                failed.append(Refused(fact.write_id, reason))
            else:
                good.setdefault(fact.shop, []).append((fact, vector))
        for shop, batch in good.items():
            await self._run(shop, partial(ShopFile.put, batch=batch))
        refused = {one.write_id for one in failed}
        return PutResult(tuple(fact.write_id for fact in facts if fact.write_id not in refused), tuple(failed))

    async def search(
        self, shop: str, text: str, *, customer: str | None = None, top: int = 5, kinds: Iterable[str] = (),
        since_ms: int = 0, active_only: bool = True,
    ) -> list[Hit]:  # fmt: skip
        """See FactStore."""
        where = Where(customer, tuple(kinds), since_ms, active_only)
        if not text.strip():
            return newest(await self._run(shop, lambda db: db.latest(where, top)), top)
        vector = (await self._vectors.embed([text]))[0]
        return await self._run(shop, lambda db: ranked(text, vector, db.candidates(text, vector, where, top), top))

    async def by_key(self, shop: str, customer: str, key: str) -> list[Fact]:
        """See FactStore."""
        found = await self._run(shop, lambda db: db.facts("customer = ? AND key = ?", customer, key))
        return superseding.newest_first(found)

    async def by_session(self, shop: str, session_id: str) -> list[Fact]:
        """See FactStore."""
        return await self._run(shop, lambda db: db.facts("session = ?", session_id))

    async def delete_session(self, shop: str, session_id: str) -> int:
        """See FactStore."""
        return await self._run(shop, lambda db: db.remove("session = ?", session_id))

    async def delete_customer(self, shop: str, customer: str) -> int:
        """See FactStore."""
        return await self._run(shop, lambda db: db.remove("customer = ?", customer))

    async def backup(self, shop: str, file: Path) -> int:
        """See FactStore."""
        return await self._run(shop, lambda db: backup.write(file, shop, db.facts("TRUE")))

    async def restore(self, shop: str, file: Path) -> int:
        """See FactStore."""
        facts = backup.read(file, shop)
        vectors = await self._vectors.embed([fact_text(fact) for fact in facts])
        return await self._run(shop, lambda db: db.replace_all(list(zip(facts, vectors, strict=True))))

    async def close(self) -> None:
        """See FactStore."""
        with self._lock:
            for shop in self._shops.values():
                shop.close()
            self._shops.clear()

    async def _run(self, shop: str, work: Callable[[ShopFile], _T]) -> _T:
        def locked() -> _T:
            with self._lock:
                return work(self._open(shop))

        try:
            return await asyncio.to_thread(locked) if self._folder else locked()
        except sqlite3.OperationalError as error:
            message = f"{self._folder}: the facts of {shop!r} can't be used now ({error})"
            raise FactsUnavailableError(message) from error
        except sqlite3.DatabaseError as error:
            message = f"{self._folder}: the facts of {shop!r} are damaged ({error}): restore a backup"
            raise FactsError(message) from error

    def _open(self, shop: str) -> ShopFile:
        if shop not in self._shops:
            path = Path(":memory:")
            if self._folder:
                self._folder.mkdir(parents=True, exist_ok=True)
                path = self._folder / f"{quote(shop, safe='')}.sqlite"
            self._shops[shop] = ShopFile(path, self._vectors.name, self._busy_s)
        return self._shops[shop]
