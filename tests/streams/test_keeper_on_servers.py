"""The keeper over a real Weaviate and a real Neo4j that are killed while it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.facts.weaviate import WeaviateFacts
from memory.relations.neo4j import Neo4jRelations
from streams.memory_stores import MemoryStores
from streams.stores.neo4j import Neo4jServer
from streams.stores.weaviate import WeaviateServer
from tests.stores import own_neo4j, own_weaviate
from tests.streams.keeping import T0, Bench, records, trail, wanted, writes

pytestmark = [pytest.mark.stores, pytest.mark.timeout(600)]
WRITES = 1_000


@pytest.fixture
def facts_server(tmp_path: Path) -> Iterator[WeaviateServer]:
    """A Weaviate of this test's own."""
    server = own_weaviate(tmp_path / "weaviate")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def relations_server(tmp_path: Path) -> Iterator[Neo4jServer]:
    """A Neo4j of this test's own."""
    server = own_neo4j(tmp_path / "neo4j")
    server.start()
    yield server
    server.stop()


async def _kill(bench: Bench, server: WeaviateServer | Neo4jServer, after: int) -> None:
    """Kill the server once so many writes are applied, and start it again."""
    while bench.outcome("applied") < after:  # noqa: ASYNC110 (a metric tells nobody)
        await asyncio.sleep(0.01)
    assert bench.outcome("applied") < WRITES
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(0.5)
    await asyncio.to_thread(server.start)


async def test_servers_killed_during_writes_lose_nothing_and_double_nothing(
    facts_server: WeaviateServer, relations_server: Neo4jServer, tmp_path: Path
) -> None:
    """Each server killed once during 1,000 writes and started again: none lost, none twice (cases I01, I11, I09)."""
    stores = MemoryStores(WeaviateFacts(facts_server.url), Neo4jRelations(relations_server.url))
    bench, made = Bench(tmp_path, stores=stores), list(writes(WRITES))
    bench.publish(records(made))
    keeping = asyncio.create_task(bench.keep())
    await _kill(bench, facts_server, after=200)
    await _kill(bench, relations_server, after=400)
    await keeping
    assert wanted(made) == await trail(stores.facts, made)
    path = await stores.relations.customer_path("demo", "demo/web/u-0", T0, T0 + WRITES)
    assert ["FILED_COMPLAINT"] == [step.kind for step in path]
    assert WRITES == sum(bench.offsets.values())
    await stores.close()
