"""What only a real Weaviate can show: its traps, its failures, its end in the middle of writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from weaviate.classes.query import MetadataQuery

from memory.facts.port import Fact, FactsError, FactsUnavailableError
from memory.facts.vectors import HashedVectors
from memory.facts.weaviate import WeaviateFacts, _where
from memory.facts.weaviate_client import Connection
from streams.clock import fresh_id
from streams.stores.weaviate import WeaviateServer
from tests.memory.facts.checks import BAD, OddVectors, Shop
from tests.stores import own_weaviate

pytestmark = pytest.mark.stores
WRITES, KILLS, BATCH = 1_000, 1, 10


@pytest.fixture
async def facts(weaviate_server: str, collection: str) -> AsyncIterator[WeaviateFacts]:
    """The store."""
    made = WeaviateFacts(weaviate_server, vectors=OddVectors(), collection=collection, timeout_s=10)
    yield made
    await made.close()


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """A server to ill-treat."""
    made = own_weaviate(tmp_path_factory.mktemp("own"))
    yield made
    made.freeze(False)
    made.stop()


async def test_keyword_search_finds_what_is_not_flushed(facts: WeaviateFacts, shop: Shop) -> None:
    """All of 215 facts are found by keyword at once; BlockMax WAND, which can lose such, is off (case I07)."""
    await facts.put([shop.fact(f"包裹 {number} 在路上", f"k{number}") for number in range(215)])

    async with facts._connection.tenant(shop.name, 10) as tenant:
        found = await tenant.query.bm25("包裹", query_properties=["words"], limit=500)

    assert 215 == len(found.objects)


def test_server_is_started_without_blockmax_wand(tmp_path: Path) -> None:
    """The setting that keeps keyword search whole, and the ones that keep the server on loopback."""
    environment = WeaviateServer(tmp_path).environment()

    assert "false" == environment["USE_BLOCKMAX_WAND"]
    assert {"127.0.0.1"} == {environment["CLUSTER_BIND_ADDR"], environment["CLUSTER_ADVERTISE_ADDR"]}


async def test_servers_own_refusals_are_told(facts: WeaviateFacts, shop: Shop) -> None:
    """An object of a batch that the server itself refuses fails alone, and is reported (case I03)."""
    result = await facts.put([shop.fact(f"fine {number}", f"k{number}", at="noon" if number == 4 else number)
                              for number in range(10)])  # fmt: skip

    assert (9, ["w5"]) == (len(result.stored), [one.write_id for one in result.failed])
    assert "integer" in result.failed[0].reason
    assert 9 == len(await facts.search(shop.name, "fine", top=50))


async def test_wrong_vector_is_refused_before_it_is_sent(facts: WeaviateFacts, shop: Shop) -> None:
    """Weaviate takes a vector of another size without a word and drops it: we must not send one (case I03)."""
    good, bad = shop.fact("fine", "good"), shop.fact(BAD, "bad")
    vectors = await OddVectors().embed([good.summary, bad.summary])
    rows = {fact.id: (fact, vector) for fact, vector in zip((good, bad), vectors, strict=True)}

    assert {} == await facts._insert(shop.name, rows)
    kept = await facts._by_ids(shop.name, [good.id, bad.id])

    assert [True, False] == [bool(kept[fact.id][1].any()) for fact in (good, bad)]
    assert [bad.write_id] == [one.write_id for one in (await facts.put([bad, good])).failed]


async def test_collection_of_other_vectors_is_refused(
    weaviate_server: str, collection: str, facts: WeaviateFacts, shop: Shop
) -> None:
    """Vectors of two models are never mixed in one collection."""

    class Others(HashedVectors):
        name = "another model"

    await facts.put([shop.fact("tea", "drink")])
    store = WeaviateFacts(weaviate_server, vectors=Others(), collection=collection, timeout_s=10)

    with pytest.raises(FactsError, match="another model"):
        await store.search(shop.name, "tea")
    await store.close()


async def test_keepers_that_start_at_once_share_an_empty_server(weaviate_server: str, shop: Shop) -> None:
    """Each sees no collection and no tenant, and makes them: one is first, and none is refused."""
    name = fresh_id("Test").replace("-", "")
    keepers = [
        WeaviateFacts(weaviate_server, vectors=OddVectors(), collection=name, timeout_s=30) for _number in range(4)
    ]
    try:
        results = await asyncio.gather(*(
            keeper.put([shop.fact("tea", f"k{number}")]) for number, keeper in enumerate(keepers)
        ))  # fmt: skip

        assert [1] * len(keepers) == [len(result.stored) for result in results]
    finally:
        connection = Connection(weaviate_server, "", name, OddVectors.name)
        await connection.remove_collection(30)
        await connection.close()
        for keeper in keepers:
            await keeper.close()


async def test_crash_between_trail_and_current_repairs_itself(facts: WeaviateFacts, shop: Shop) -> None:
    """The write that was cut in the middle is repeated: one active fact, each write once in the trail (case I01)."""
    first, second = shop.fact("red", "colour"), shop.fact("blue", "colour")
    await facts.put([first])
    known = await facts._by_ids(shop.name, [first.id])
    await facts._insert(shop.name, {first.trail_id: known[first.id]})

    assert ["w1"] == [fact.write_id for fact in await facts.by_key(shop.name, first.customer, "colour")]
    await facts.put([first, second])

    assert [("w2", True), ("w1", False)] == [
        (fact.write_id, fact.active) for fact in await facts.by_key(shop.name, first.customer, "colour")
    ]


async def test_repeat_writes_the_object_again(facts: WeaviateFacts, shop: Shop) -> None:
    """Weaviate skips what looks the same, also where a crash left it half indexed: a repeat looks different."""
    fact = shop.fact("tea", "drink")

    async def written_at() -> object:
        await facts.put([fact])
        async with facts._connection.tenant(shop.name, 10) as tenant:
            asked = MetadataQuery(last_update_time=True)
            found = await tenant.query.fetch_objects_by_ids([fact.id], return_metadata=asked)
        return found.objects[0].metadata.last_update_time

    assert await written_at() != await written_at()


async def test_frozen_server_costs_the_timeout_only(own_server: WeaviateServer, shop: Shop) -> None:
    """A server that stops answering is a clear error within the time limit, and is used again afterwards."""
    store = WeaviateFacts(own_server.start(), timeout_s=5)
    await store.put([shop.fact("tea", "drink")])
    impatient = WeaviateFacts(own_server.url, timeout_s=0.5)
    own_server.freeze(True)

    started = asyncio.get_running_loop().time()
    with pytest.raises(FactsUnavailableError, match=r"within 0\.5 s"):
        await impatient.search(shop.name, "tea")
    took = asyncio.get_running_loop().time() - started
    own_server.freeze(False)

    assert took < 2
    assert ["tea"] == [hit.fact.summary for hit in await store.search(shop.name, "tea")]
    await store.close()
    await impatient.close()


async def test_kill_during_writes_loses_and_doubles_nothing(own_server: WeaviateServer, shop: Shop) -> None:
    """1,000 writes over a kill -9 of the server, repeated until acknowledged: each is there exactly once."""
    store = WeaviateFacts(own_server.start(), timeout_s=2)
    facts = [
        shop.fact(f"fact {number}", f"k{number % 900}", customer=f"s/web/u{number % 7}") for number in range(WRITES)
    ]
    killer = asyncio.create_task(_kill(own_server))

    customers = [facts[number::7] for number in range(7)]  # each has one writer
    repeats = sum(await asyncio.gather(*(_write_all(store, one) for one in customers)))
    await killer

    session = await store.by_session(shop.name, "sess_1")
    assert sorted(fact.write_id for fact in facts) == sorted(fact.write_id for fact in session)
    assert len(await _objects(store, shop)) == WRITES
    assert WRITES == await _searchable(store, shop)
    assert repeats >= 1
    await store.close()


async def _kill(server: WeaviateServer) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)


async def _write_all(store: WeaviateFacts, facts: Sequence[Fact]) -> int:
    return sum([await _write(store, facts[at : at + BATCH]) for at in range(0, len(facts), BATCH)])


async def _write(store: WeaviateFacts, batch: Sequence[Fact]) -> int:
    """Repeat until it is acknowledged; how often it had to be repeated."""
    for repeats in range(200):
        try:
            result = await store.put(batch)
        except FactsUnavailableError:
            await asyncio.sleep(0.2)
            continue
        assert not result.failed
        return repeats
    pytest.fail("the server did not come back")


async def _searchable(store: WeaviateFacts, shop: Shop) -> int:
    """How many are found by customer, kind and word, each in an index of its own."""
    async with store._connection.tenant(shop.name, None) as tenant:
        found = [await tenant.query.bm25("fact", query_properties=["words"], limit=WRITES,
                                         filters=_where(f"s/web/u{number}", ("preference",), 1, active_only=True))
                 for number in range(7)]  # fmt: skip
    return sum(len(one.objects) for one in found)


async def _objects(store: WeaviateFacts, shop: Shop) -> list[object]:
    async with store._connection.tenant(shop.name, None) as tenant:
        return [one async for one in tenant.iterator()]
