"""The relations in Neo4j: constant Cypher with parameters, merges that are safe to repeat (I09, I11, I13)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, LiteralString, TypeVar
from urllib.parse import urlsplit

from neo4j import AsyncGraphDatabase, AsyncSession, AsyncTransaction, Query, Record
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    ConstraintError,
    DatabaseError,
    DriverError,
    Forbidden,
    Neo4jError,
)  # fmt: skip

from memory.facts.port import PutResult
from memory.relations import cypher, dump
from memory.relations.port import LIMIT, MarkedDown, Node, Relation, RelationsError, RelationsUnavailableError, Step
from memory.relations.schema import LABELS, EdgeRow, NodeRow, rows

TIMEOUT_SECONDS = 10.0  # of one call, its retry included; the first merges of a cold server took 6 s
BULK_SECONDS = 600.0  # of a whole backup, and of one batch of a restore
PREPARE_SECONDS = 60.0  # constraints and indexes, once: 6 s on an empty server and a busy machine
CONNECT_SECONDS = 2.0
LIVENESS_SECONDS = 30.0  # a connection idle for longer is asked before it is used
LIFETIME_SECONDS = 200.0  # below the 240 s after which load balancers drop a silent connection without a word (I09)
SCHEMES = frozenset({"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"})
BATCH = 1_000  # rows of one transaction of a restore
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.01, 0.2  # before what met another writer's locks is tried again
CONTENDED = frozenset({
    "Neo.TransientError.Transaction.DeadlockDetected", "Neo.TransientError.Transaction.LockClientStopped",
    "Neo.TransientError.Transaction.LockAcquisitionTimeout", "Neo.TransientError.Transaction.Outdated",
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",  # another made it between IF NOT EXISTS and CREATE
})  # fmt: skip
TIMED_OUT = "Neo.ClientError.Transaction.TransactionTimedOut"
_T = TypeVar("_T")
_Work = Callable[[AsyncSession, float], Awaitable[_T]]


class Neo4jRelations:
    """The relations in a Neo4j 5 server; bound to the event loop that first uses it."""

    def __init__(
        self,
        url: str,
        user: str = "",
        password: str = "",
        *,
        timeout_s: float = TIMEOUT_SECONDS,
        liveness_s: float = LIVENESS_SECONDS,
        lifetime_s: float = LIFETIME_SECONDS,
    ) -> None:
        """Nothing is sent yet. Raises RelationsError for an address that can't be one (`bolt://host:7687`)."""
        if urlsplit(url).scheme not in SCHEMES:  # the driver would take http, as a preview
            message = f"{url}: no address of a Neo4j server, such as bolt://localhost:7687"
            raise RelationsError(message)
        self.url = url
        self._timeout = timeout_s
        self._prepared = False
        self._preparing = asyncio.Lock()
        try:
            self._driver = AsyncGraphDatabase.driver(
                url,
                auth=(user, password) if user else None,
                connection_timeout=min(CONNECT_SECONDS, timeout_s),
                connection_acquisition_timeout=timeout_s,
                connection_write_timeout=timeout_s,
                liveness_check_timeout=liveness_s,
                max_connection_lifetime=lifetime_s,
                telemetry_disabled=True,
                notifications_min_severity="OFF",  # it would warn of every label that no write has made yet
            )
        except (ConfigurationError, ValueError) as error:
            message = f"{url}: no address of a Neo4j server, such as bolt://localhost:7687 ({error})"
            raise RelationsError(message) from error

    async def merge(self, relations: Sequence[Relation]) -> PutResult:
        """See RelationStore."""
        nodes, edges, refused = rows(relations)
        if edges:
            await self._run(_in_transaction(lambda tx: _store(tx, nodes, edges)))
        bad = {one.write_id for one in refused}
        return PutResult(tuple(r.write_id for r in relations if r.write_id not in bad), tuple(refused))

    async def customer_path(
        self, shop: str, customer: str, since_ms: int, until_ms: int, limit: int = LIMIT
    ) -> list[Step]:
        """See RelationStore."""
        asked = {"shop": shop, "customer": customer, "since": since_ms, "until": until_ms, "limit": limit}
        return [_step(record) for record in await self._ask(cypher.PATH, asked)]

    async def marked_down_agents(
        self, shop: str, since_ms: int, until_ms: int, reason: str = "return"
    ) -> list[MarkedDown]:
        """See RelationStore."""
        asked = {"shop": shop, "since": since_ms, "until": until_ms, "reason": reason}
        return [
            MarkedDown(_node("Agent", one["agent"]), one["times"], one["customers"], one["last"], tuple(one["ids"]))
            for one in await self._ask(cypher.MARKED, asked)
        ]

    async def delete_customer(self, shop: str, customer: str) -> int:
        """See RelationStore."""

        async def delete(tx: AsyncTransaction) -> int:
            count = 0
            for query in cypher.DELETE_CUSTOMER:  # in an order that counts each relation once
                count += (await _all(tx, query, {"shop": shop, "customer": customer}))[0]["count"]
            return count

        return await self._run(_in_transaction(delete))

    async def backup(self, shop: str, file: Path) -> int:
        """See RelationStore."""

        async def copy(tx: AsyncTransaction) -> int:
            with dump.Writer(file, shop) as out:
                # in this order: a relation that is written meanwhile never lacks its nodes
                async for record in await tx.run(cypher.ALL_EDGES, shop=shop):
                    out.edge(_edge_row(record))
                async for record in await tx.run(cypher.ALL_NODES, shop=shop):
                    out.node(_node_row(record["label"], record["node"]))
            return out.count

        return await self._run(_in_transaction(copy), write=False, timeout_s=BULK_SECONDS)

    async def restore(self, shop: str, file: Path) -> int:
        """See RelationStore. Nothing is missing meanwhile: what the backup lacks goes last."""
        source = await asyncio.to_thread(dump.Dump, file, shop)
        count = 0
        for nodes in _batches(source.nodes()):
            await self._in_bulk(partial(_store, nodes=nodes, edges=(), stamp=source.stamp))
        for edges in _batches(source.edges()):
            await self._in_bulk(partial(_store, nodes=(), edges=edges, stamp=source.stamp))
            count += len(edges)
        for query in cypher.DROP_OTHERS:
            drop = partial(_all, query=query, parameters={"shop": shop, "stamp": source.stamp})
            while (await self._in_bulk(drop))[0]["count"]:
                pass
        return count

    async def close(self) -> None:
        """See RelationStore."""
        await self._driver.close()

    async def _in_bulk(self, work: Callable[[AsyncTransaction], Awaitable[_T]]) -> _T:
        return await self._run(_in_transaction(work), timeout_s=BULK_SECONDS)

    async def _ask(self, query: str, parameters: dict[str, Any]) -> list[Record]:
        """One query without a transaction of its own: half the way there and back."""

        async def once(session: AsyncSession, seconds: float) -> list[Record]:
            return [record async for record in await session.run(Query(query, timeout=seconds), parameters)]

        return await self._run(once, write=False)

    async def _run(self, work: _Work[_T], *, write: bool = True, timeout_s: float | None = None) -> _T:
        """The work, and again where that may help: all that we do is safe to repeat (case I11)."""
        seconds = timeout_s or self._timeout
        try:
            if write:  # what is read before the first write is empty, and needs no index
                async with asyncio.timeout(PREPARE_SECONDS):
                    await self._prepare()
            async with asyncio.timeout(seconds):
                return await self._repeated(lambda: self._once(work, seconds, write=write))
        except TimeoutError as error:
            message = f"{self.url}: no answer within {seconds:g} s"
            raise RelationsUnavailableError(message) from error
        except (DriverError, Neo4jError, OSError) as error:
            raise self._said(error) from error

    @staticmethod
    async def _repeated(work: Callable[[], Awaitable[_T]]) -> _T:
        """Once more on another connection; after a deadlock as often as the time allows, each time after a while.

        Writers that share an agent are let through one at a time, and the server names all others its victims.
        """
        cuts, pauses = 0, _pauses()
        while True:
            try:
                return await work()
            except (DriverError, Neo4jError) as error:
                cuts += not _contended(error)
                if cuts > 1 or not _passing(error):
                    raise
            await asyncio.sleep(next(pauses))

    async def _once(self, work: _Work[_T], seconds: float, *, write: bool) -> _T:
        async with self._driver.session(default_access_mode="WRITE" if write else "READ") as session:
            return await work(session, seconds)

    async def _prepare(self) -> None:
        """Constraints and indexes, before the first use."""
        if self._prepared:
            return
        async with self._preparing:
            if not self._prepared:
                for query in cypher.SCHEMA:  # keepers that start at once are rivals here too
                    await self._repeated(partial(self._command, query))
                self._prepared = True

    async def _command(self, query: LiteralString) -> None:
        async with self._driver.session() as session:
            await (await session.run(query)).consume()

    def _said(self, error: Exception) -> RelationsError | RelationsUnavailableError:
        if isinstance(error, AuthError | Forbidden):
            return RelationsError(f"{self.url}: user or password refused: check INTERLOCK_RELATIONS_USER and _PASSWORD")
        if isinstance(error, OSError | DatabaseError | DriverError) or _passing(error):
            return RelationsUnavailableError(f"{self.url}: not just now ({type(error).__name__})")
        return RelationsError(f"{self.url}: refused ({getattr(error, 'code', '')}): is it a Neo4j 5 server?")


def _in_transaction(work: Callable[[AsyncTransaction], Awaitable[_T]]) -> _Work[_T]:
    """All queries of the work, or none."""

    async def once(session: AsyncSession, seconds: float) -> _T:
        async with await session.begin_transaction(timeout=seconds) as tx:
            done = await work(tx)
            await tx.commit()
            return done

    return once


def _pauses() -> Iterator[float]:
    """Seconds between two tries, without end: longer each time. Of rivals in a deadlock one always gets through."""
    pause_s = FIRST_PAUSE_SECONDS
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_SECONDS)


def _contended(error: Exception) -> bool:
    """Whether another writer was in the way: the same will work once that one is done."""
    return isinstance(error, Neo4jError) and error.code in CONTENDED


def _passing(error: Exception) -> bool:
    """Whether the same may work a moment later: a cut connection, a restart, a lock, a reply that was lost."""
    if isinstance(error, Neo4jError):
        # two writers made the same at once: the one that lost finds it there
        lost = isinstance(error, ConstraintError) or _contended(error)
        return lost or error.is_retryable() or error.code == TIMED_OUT
    return isinstance(error, DriverError) and not isinstance(error, ConfigurationError)


async def _store(tx: AsyncTransaction, nodes: Iterable[NodeRow], edges: Iterable[EdgeRow], stamp: str = "") -> None:
    """Merge the rows. With a stamp they are a backup's: true as they stand, also over newer ones."""
    for label, found in groupby(sorted(nodes, key=lambda row: row.label), lambda row: row.label):
        parameters = [_node_parameters(row, whole=bool(stamp)) for row in found]
        await (await tx.run(cypher.MERGE_NODES[label], rows=parameters, stamp=stamp)).consume()
    for joint, group in groupby(sorted(edges, key=_joint), _joint):
        parameters = [_edge_parameters(row) for row in group]
        await (await tx.run(cypher.MERGE_EDGES[joint], rows=parameters, stamp=stamp)).consume()


def _joint(row: EdgeRow) -> tuple[str, str, str]:
    return row.kind, row.start_label, row.end_label


def _node_parameters(row: NodeRow, *, whole: bool) -> dict[str, Any]:
    """`whole`: a field that the row lacks is removed, not left as it is."""
    return asdict(row) | {"fields": dict.fromkeys(LABELS[row.label]) | row.fields if whole else row.fields}


def _edge_parameters(row: EdgeRow) -> dict[str, Any]:
    values = asdict(row)
    said = {name: row.fields.get(name) for name in cypher.fields_of(row.kind)}  # null removes what no longer holds
    own = {name: values[name] for name in cypher.EDGE_VALUES}
    return {"key": row.key, "start": row.start, "end": row.end, "written": row.written, "values": own | said}


async def _all(tx: AsyncTransaction, query: str, parameters: dict[str, Any]) -> list[Record]:
    return [record async for record in await tx.run(query, parameters)]


def _batches(found: Iterator[_T]) -> Iterator[list[_T]]:
    while batch := [*islice(found, BATCH)]:
        yield batch


def _node(label: str, values: Any) -> Node:
    return Node(label, values["id"], {name: values[name] for name in LABELS[label] if values.get(name) is not None})


def _fields(kind: str, values: Any) -> dict[str, str]:
    return {name: values[name] for name in cypher.fields_of(kind) if values.get(name) is not None}


def _step(record: Record) -> Step:
    relation, kind = record["relation"], record["kind"]
    agents = tuple(_node("Agent", agent) for agent in record["agents"])
    node = _node(record["label"], record["node"])
    said = _fields(kind, relation)
    return Step(kind, node, relation["at"], relation["write_id"], said, agents, tuple(record["orders"]))


def _node_row(label: str, values: Any) -> NodeRow:
    fields = dict(_node(label, values).fields)
    return NodeRow(values["key"], label, values["id"], values["shop"], values["customer"], values["written"], fields)


def _edge_row(record: Record) -> EdgeRow:
    said, kind = record["relation"], record["kind"]
    own = {name: said[name] for name in ("key", *cypher.EDGE_VALUES)}
    ends = {name: record[name] for name in ("start", "end", "start_label", "end_label")}
    return EdgeRow(kind=kind, fields=_fields(kind, said), **own, **ends)
