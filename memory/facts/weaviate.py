"""Facts in Weaviate: one tenant a shop, vectors of our own, keywords in a field of our own tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from weaviate.classes.query import Filter, Sort

from memory.facts import backup, superseding
from memory.facts.backup import decode, encode
from memory.facts.port import Fact, FactsError, FactsUnavailableError, Hit, PutResult, Refused
from memory.facts.ranking import fact_text, newest, ranked
from memory.facts.vectors import HashedVectors, Vector, Vectors, tokens
from memory.facts.weaviate_client import QUERY_SECONDS, VECTOR, Connection, Row, for_good

WRITE_SECONDS = 10.0  # one batch
BATCH = 200  # objects in one request: some 300 KB
PAGE = 1_000
MOST = 10_000  # of one filter; Weaviate pages no further
CANDIDATES = 50  # compared in full, as the embedded store does

Stored = Mapping[UUID, tuple[Fact, Vector]]


class WeaviateFacts:
    """Facts in a server at a URL such as `http://127.0.0.1:8080?grpc=50051`."""

    def __init__(
        self, url: str, *, api_key: str = "", vectors: Vectors | None = None, collection: str = "InterlockFacts",
        timeout_s: float = QUERY_SECONDS,
    ) -> None:  # fmt: skip
        """Connects at the first use. `timeout_s` bounds a search, writes get more."""
        self._vectors = vectors or HashedVectors()
        self._connection = Connection(url, api_key, collection, self._vectors.name)
        self._query_s, self._write_s = timeout_s, max(timeout_s, WRITE_SECONDS)

    async def put(self, facts: Sequence[Fact]) -> PutResult:
        """See FactStore."""
        vectors = await self._vectors.embed([fact_text(fact) for fact in facts])
        refused: dict[str, str] = {}
        shops: dict[str, list[tuple[Fact, Vector]]] = {}
        for fact, vector in zip(facts, vectors, strict=True):
            reason = superseding.refusal(fact, vector, self._vectors)
            if reason:
                refused[fact.write_id] = reason
            else:
                shops.setdefault(fact.shop, []).append((fact, vector))
        for shop, batch in shops.items():
            for start in range(0, len(batch), BATCH):
                refused |= await self._put(shop, batch[start : start + BATCH])
        failed = tuple(Refused(write, reason) for write, reason in refused.items())
        return PutResult(tuple(fact.write_id for fact in facts if fact.write_id not in refused), failed)

    async def search(
        self, shop: str, text: str, *, customer: str | None = None, top: int = 5, kinds: Iterable[str] = (),
        since_ms: int = 0, active_only: bool = True,
    ) -> list[Hit]:  # fmt: skip
        """See FactStore."""
        where = _where(customer, tuple(kinds), since_ms, active_only=active_only)
        if not text.strip():
            return newest(await self._newest(shop, where, top), top)
        vector = (await self._vectors.embed([text]))[0]
        words = " ".join(tokens(text))
        asked: dict[str, Any] = {"filters": where, "limit": max(CANDIDATES, 4 * top), "include_vector": True,
                                 "return_properties": ["body"]}  # fmt: skip
        async with self._connection.tenant(shop, self._query_s) as facts:
            if facts is None or not (words or vector.any()):
                return []
            if not words:
                found = await facts.query.near_vector(vector.tolist(), **asked)
            elif vector.any():
                found = await facts.query.hybrid(
                    words, vector=vector.tolist(), alpha=0.5, query_properties=["words"], **asked
                )
            else:
                found = await facts.query.bm25(words, query_properties=["words"], **asked)
        return ranked(text, vector, (self._read(one) for one in found.objects), top)

    async def by_key(self, shop: str, customer: str, key: str) -> list[Fact]:
        """See FactStore."""
        where = Filter.by_property("customer").equal(customer) & Filter.by_property("key").equal(key)
        return superseding.newest_first(await self._all(shop, where))

    async def by_session(self, shop: str, session_id: str) -> list[Fact]:
        """See FactStore."""
        found = await self._all(shop, Filter.by_property("session").equal(session_id))
        return sorted(superseding.once(found), key=lambda fact: (fact.at, fact.write_id))

    async def delete_session(self, shop: str, session_id: str) -> int:
        """See FactStore."""
        return await self._delete(shop, Filter.by_property("session").equal(session_id))

    async def delete_customer(self, shop: str, customer: str) -> int:
        """See FactStore."""
        return await self._delete(shop, Filter.by_property("customer").equal(customer))

    async def backup(self, shop: str, file: Path) -> int:
        """See FactStore."""
        found: list[Fact] = []
        async with self._connection.tenant(shop, None) as facts:
            if facts is not None:
                pages = facts.iterator(return_properties=["body"], cache_size=PAGE)
                found = [decode(one.properties["body"]) async for one in pages]
        # written by one loop that nothing else waits for: a rollback begins with it
        return await asyncio.to_thread(backup.write, file, shop, superseding.once(found))

    async def restore(self, shop: str, file: Path) -> int:
        """See FactStore. Cut short, it leaves a part: repeat it."""
        facts = await asyncio.to_thread(backup.read, file, shop)
        vectors = await self._vectors.embed([fact_text(fact) for fact in facts])
        known = {fact.write_id: vector for fact, vector in zip(facts, vectors, strict=True)}
        await self._connection.remove_tenant(shop, self._write_s)
        plan = superseding.restored(facts)
        failed: dict[str, str] = {}
        objects = [*plan.trail.items(), *plan.current.items()]
        for start in range(0, len(objects), BATCH):
            part = dict(objects[start : start + BATCH])
            failed |= await self._insert(shop, {one: (fact, known[fact.write_id]) for one, fact in part.items()})
        if failed:
            message = f"{len(failed)} of {len(facts)} facts were not restored: {next(iter(failed.values()))}"
            raise FactsError(message)
        return len(facts)

    async def close(self) -> None:
        """See FactStore."""
        await self._connection.close()

    async def _put(self, shop: str, batch: Sequence[tuple[Fact, Vector]]) -> dict[str, str]:
        """What was refused, with the reason, by write id."""
        known = await self._by_ids(shop, [one for fact, _ in batch for one in (fact.id, fact.trail_id)])
        plan = superseding.plan([fact for fact, _ in batch], {one: fact for one, (fact, _) in known.items()})
        vectors = {fact.write_id: vector for fact, vector in (*known.values(), *batch)}
        trail = {one: (fact, vectors[fact.write_id]) for one, fact in (*plan.trail.items(), *plan.again.items())}
        refused = await self._insert(shop, trail)
        ours = {fact.write_id for fact, _ in batch}
        lost = refused.keys() - ours
        if lost:  # what is known now must not be overwritten before it stands in the trail
            message = f"the trail of {shop!r} took {len(lost)} facts less: {refused[min(lost)]}"
            raise FactsUnavailableError(message)
        return refused | await self._insert(
            shop, {one: (fact, vectors[fact.write_id]) for one, fact in plan.current.items()}
        )

    async def _insert(self, shop: str, objects: Stored) -> dict[str, str]:
        """Write objects; what was refused for good, by write id. Raises FactsUnavailableError for any other failure."""
        if not objects:
            return {}
        rows = [_row(one, fact, vector) for one, (fact, vector) in objects.items()]
        failed = await self._connection.insert(shop, rows, self._write_s)
        facts_in_order = [fact for fact, _ in objects.values()]
        refused = {facts_in_order[place].write_id: reason for place, reason in failed.items()}
        for write, reason in refused.items():
            if not for_good(reason):
                message = f"Weaviate stored {len(rows) - len(refused)} of {len(rows)} facts; {write}: {reason}"
                raise FactsUnavailableError(message)
        return refused

    async def _by_ids(self, shop: str, ids: Sequence[UUID]) -> Stored:
        async with self._connection.tenant(shop, self._write_s) as facts:
            if facts is None:
                return {}
            found = await facts.query.fetch_objects_by_ids(
                ids, limit=len(ids), include_vector=True, return_properties=["body"]
            )
        return {UUID(str(one.uuid)): self._read(one) for one in found.objects}

    async def _newest(self, shop: str, where: Any, top: int) -> list[Fact]:
        async with self._connection.tenant(shop, self._query_s) as facts:
            if facts is None:
                return []
            found = await facts.query.fetch_objects(
                filters=where, limit=top, return_properties=["body"], sort=Sort.by_property("at", ascending=False)
            )
        return [decode(one.properties["body"]) for one in found.objects]

    async def _all(self, shop: str, where: Any) -> list[Fact]:
        found: list[Fact] = []
        async with self._connection.tenant(shop, self._write_s) as facts:
            while facts is not None:
                page = await facts.query.fetch_objects(
                    filters=where, limit=PAGE, offset=len(found), return_properties=["body"]
                )
                found += [decode(one.properties["body"]) for one in page.objects]
                if len(page.objects) < PAGE:
                    break
                if len(found) >= MOST:
                    message = f"more than {MOST} facts of one session or key in {shop!r}: too many to page through"
                    raise FactsError(message)
        return found

    async def _delete(self, shop: str, where: Any) -> int:
        gone = 0
        while True:  # one call deletes 10,000 at most
            async with self._connection.tenant(shop, self._write_s) as facts:
                if facts is None:
                    return gone
                done = await facts.data.delete_many(where)
            if done.failed:
                message = f"Weaviate deleted {done.successful} of {done.matches} facts: repeat it"
                raise FactsUnavailableError(message)
            gone += int(done.successful)
            if not done.matches:
                return gone

    def _read(self, one: Any) -> tuple[Fact, Vector]:
        vector = one.vector.get(VECTOR)
        numbers = np.zeros(self._vectors.size, np.float32) if vector is None else np.asarray(vector, np.float32)
        return decode(one.properties["body"]), numbers


def _row(object_id: UUID, fact: Fact, vector: Vector) -> Row:
    properties = {
        "customer": fact.customer, "key": fact.key, "kind": fact.kind, "session": fact.session_id, "at": fact.at,
        "active": fact.active, "words": " ".join(tokens(fact_text(fact))), "body": encode(fact).decode(),
    }  # fmt: skip
    if not vector.any():
        return Row(object_id, properties, None)  # zeros have no direction, and an index by angle takes none
    # Weaviate skips an object that looks the same, also where a crash left it out of half of the indexes; a vector's
    # length says nothing here, so each attempt has another one, and all indexes are written again
    length = 0.5 + time.monotonic_ns() % 999_983 / 2_000_000
    return Row(object_id, properties, (vector * np.float32(length)).tolist())


def _where(customer: str | None, kinds: Sequence[str], since_ms: int, *, active_only: bool) -> Any:
    parts = []
    if customer is not None:
        parts.append(Filter.by_property("customer").equal(customer))
    if active_only:
        parts.append(Filter.by_property("active").equal(True))
    if kinds:
        parts.append(Filter.by_property("kind").contains_any(list(kinds)))
    if since_ms:
        parts.append(Filter.by_property("at").greater_or_equal(since_ms))
    return Filter.all_of(parts) if parts else None
