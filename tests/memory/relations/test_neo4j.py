"""What only a real Neo4j can show: idle connections, lost replies, restarts, its end in the middle of writes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import pytest
from neo4j import AsyncGraphDatabase

from memory.relations import cypher
from memory.relations.neo4j import LIFETIME_SECONDS, LIVENESS_SECONDS, Neo4jRelations
from memory.relations.port import Relation, RelationsError, RelationsUnavailableError
from streams.stores.neo4j import Neo4jServer
from tests.memory.relations.checks import CUSTOMER, END, LISA, START, Shop, path
from tests.memory.relations.conftest import opened
from tests.memory.relations.proxy import Proxy
from tests.stores import own_neo4j

pytestmark = pytest.mark.stores
WRITES, BATCH, KILLS = 1_000, 20, 1
PASSWORD = "correct-horse"
STARTS_S = 600  # two starts of a server, each 8 s on an idle machine, 70 s on a busy one
IDLE_S = 1.0  # for the 240 s of case I09, all its times 240 times shorter


def port(url: str) -> int:
    """The port of an address."""
    return urlsplit(url).port or 0


def given_login() -> tuple[str, str] | None:
    """User and password of the server that the settings name."""
    user, password = (os.environ.get(f"INTERLOCK_RELATIONS_{name}", "") for name in ("USER", "PASSWORD"))
    return (user, password) if user else None


async def asked(
    url: str, query: str, login: tuple[str, str] | None = None, **values: object
) -> list[dict[str, object]]:
    """The rows of a query, past the store."""
    async with AsyncGraphDatabase.driver(url, auth=login or given_login()) as driver, driver.session() as session:
        return [dict(record) async for record in await session.run(query, **values)]  # type: ignore[arg-type]


@pytest.mark.parametrize("silent", [False, True], ids=["closed", "without a word"])
async def test_idle_connection_that_was_cut_costs_no_write(neo4j_server: str, shop: Shop, *, silent: bool) -> None:
    """After 300 s behind a proxy that drops at 240 s the write is stored, with one retry at most (case I09)."""
    async with Proxy(port(neo4j_server), idle_s=IDLE_S, silent=silent) as proxy:
        liveness_s, lifetime_s = IDLE_S * LIVENESS_SECONDS / 240, IDLE_S * LIFETIME_SECONDS / 240
        store = Neo4jRelations(
            proxy.url, *(given_login() or ()), timeout_s=30, liveness_s=liveness_s, lifetime_s=lifetime_s
        )
        await store.merge([shop.order("OD1")])
        before = proxy.connections
        await asyncio.sleep(IDLE_S * 300 / 240)

        async with asyncio.timeout(10):
            await store.merge([shop.order("OD2")])
            assert 2 == len(await path(store, shop))

        assert proxy.dropped >= 1
        assert proxy.connections - before <= 2
        await store.close()


async def test_lost_reply_of_a_commit_is_one_node(neo4j_server: str, shop: Shop) -> None:
    """Evidence ev-911 is created, the commit's reply is lost, the store retries by itself: one node (case I11)."""
    async with Proxy(port(neo4j_server)) as proxy:
        store = Neo4jRelations(proxy.url, *(given_login() or ()), timeout_s=30)
        await store.merge([shop.order("OD1")])
        before, proxy.lose_after = proxy.connections, b"\x00\x02\xb0\x12\x00\x00"  # Bolt's COMMIT

        result = await store.merge([shop.complaint("ev-911")])

        assert (1, 1) == (proxy.lost, proxy.connections - before)
        assert 1 == len(result.stored)
        counted = "MATCH (n:Complaint {shop: $shop, id: 'ev-911'})<-[r]-() RETURN count(n) AS nodes, count(r) AS r"
        assert [{"nodes": 1, "r": 1}] == await asked(neo4j_server, counted, shop=shop.name)
        await store.close()


async def test_rivals_in_a_deadlock_all_get_through(neo4j_server: str, shop: Shop) -> None:
    """Three keepers write customers of one agent at once: the server kills some as victims, and none is refused."""
    keepers = [opened(neo4j_server, timeout_s=30) for _ in range(3)]
    customers = [f"s/web/u{number}" for number in range(40)]

    results = await asyncio.gather(*(
        keepers[number % len(keepers)].merge(
            [shop.complaint(f"k-{name}", customer=name), shop.check(LISA, f"k-{name}", customer=name)]
        )
        for number, name in enumerate(customers)
    ))  # fmt: skip

    assert [2] * len(customers) == [len(result.stored) for result in results]
    (marked,) = await keepers[0].marked_down_agents(shop.name, START, END)
    assert (len(customers), len(customers)) == (marked.times, marked.customers)
    for keeper in keepers:
        await keeper.close()


async def test_hostile_batch_leaves_the_count_of_nodes(neo4j_server: str, shop: Shop) -> None:
    """A relation's kind with a backtick and a delete clause is refused, and no node is gone (case I13)."""
    store, count = opened(neo4j_server), "MATCH (n) RETURN count(n) AS nodes"
    story = shop.story()
    await store.merge(story)
    before = await asked(neo4j_server, count)

    bad = shop.relation("ABOUT`]->() WITH 1 AS x MATCH (n) DETACH DELETE n //", story[0].start, story[0].end)
    result = await store.merge([bad])

    assert [bad.write_id] == [one.write_id for one in result.failed]
    assert before == await asked(neo4j_server, count)
    await store.close()


async def test_constraints_hold_the_keys(neo4j_server: str, shop: Shop) -> None:
    """Every label and kind has a uniqueness constraint on its key (R-002-19)."""
    store = opened(neo4j_server)
    await store.merge([shop.order()])

    found = await asked(neo4j_server, "SHOW CONSTRAINTS YIELD labelsOrTypes, properties, type WHERE type CONTAINS "
                                      "'UNIQUENESS' RETURN labelsOrTypes[0] AS name, properties")  # fmt: skip

    names = {str(one["name"]) for one in found if one["properties"] == ["key"]}
    assert {"User", "Order", "Agent", "Complaint", "MADE_ORDER", "FILED_COMPLAINT", "TRIGGERED_QUALITY_CHECK"} <= names
    await store.close()


async def test_queries_use_their_indexes(neo4j_server: str, shop: Shop) -> None:
    """Neither question reads all of the graph: both start at an index."""
    store = opened(neo4j_server)
    await store.merge(shop.story())
    values = {"shop": shop.name, "customer": CUSTOMER, "since": START, "until": END, "limit": 9, "reason": "return"}
    for query in (cypher.PATH, cypher.MARKED, *cypher.DELETE_CUSTOMER):
        operators = await plan(neo4j_server, query, values)
        assert [name for name in operators if "IndexSeek" in name], query
        assert [] == [name for name in operators if "Scan" in name], query
    await store.close()


async def plan(url: str, query: str, values: dict[str, object]) -> list[str]:
    """The names of the operators that the server would run."""
    async with AsyncGraphDatabase.driver(url, auth=given_login()) as driver, driver.session() as session:
        summary = await (await session.run(f"EXPLAIN {query}", values)).consume()
    found, todo = [], [summary.plan or {}]
    while todo:
        one = todo.pop()
        found.append(str(one.get("operatorType", "")))
        todo += one.get("children", [])
    return found


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """A server to ill-treat, which asks for a password."""
    server = own_neo4j(tmp_path_factory.mktemp("own"), PASSWORD)
    server.start()
    yield server
    server.freeze(False)
    server.stop()


@pytest.mark.timeout(STARTS_S)
async def test_log_in_and_freeze(own_server: Neo4jServer, shop: Shop) -> None:
    """A refused log-in names the settings; a frozen server is unavailable within the limit, and then goes on."""
    wrong = Neo4jRelations(own_server.url, "neo4j", "wrong-horse", timeout_s=30)
    right = Neo4jRelations(own_server.url, "neo4j", PASSWORD, timeout_s=30)
    try:
        with pytest.raises(RelationsError, match="INTERLOCK_RELATIONS_USER"):
            await path(wrong, shop)
        await right.merge([shop.order()])
        own_server.freeze(True)
        right._timeout = 0.5
        with pytest.raises(RelationsUnavailableError, match="within"):
            await path(right, shop)
        own_server.freeze(False)
        right._timeout = 30
        assert 1 == len(await path(right, shop))
    finally:
        own_server.freeze(False)
        await wrong.close()
        await right.close()


@pytest.mark.timeout(STARTS_S)
async def test_kill_during_writes_loses_and_doubles_nothing(own_server: Neo4jServer, shop: Shop) -> None:
    """Kill -9 of the server while 1,000 relations are written with retries: none lost, none twice (case I11)."""
    store = Neo4jRelations(own_server.url, "neo4j", PASSWORD, timeout_s=30)
    writes = [shop.order(f"OD{number}", at=START) for number in range(WRITES)]
    batches = [writes[first : first + BATCH] for first in range(0, WRITES, BATCH)]
    kill_at = {len(batches) * (number + 1) // (KILLS + 1) for number in range(KILLS)}
    try:
        unsure = 0
        for number, batch in enumerate(batches):
            if number in kill_at:
                asyncio.get_running_loop().call_later(0.002, own_server.kill)
                asyncio.get_running_loop().call_later(0.01, asyncio.create_task, asyncio.to_thread(own_server.start))
            unsure += await until_stored(store, batch)

        found = await asked(own_server.url, "MATCH (:User {shop: $shop})-[r:MADE_ORDER]->(o) RETURN count(r) AS r, "
                                        "count(DISTINCT o.id) AS orders, count(DISTINCT r.write_id) AS writes",
                            ("neo4j", PASSWORD), shop=shop.name)  # fmt: skip
        assert [{"r": WRITES, "orders": WRITES, "writes": WRITES}] == found
        assert unsure >= KILLS
    finally:
        await store.close()


async def until_stored(store: Neo4jRelations, batch: Sequence[Relation]) -> int:
    """Merge as the keeper does; how often the store was not there."""
    for tried in range(1_000):
        try:
            await store.merge(batch)
        except RelationsUnavailableError:
            await asyncio.sleep(0.2)
        else:
            return tried
    pytest.fail("the server did not come back")
