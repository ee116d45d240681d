"""A store of facts that is down, slow or broken: a clear error in time, never a hang or a wrong success."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memory.facts.embedded import EmbeddedFacts
from memory.facts.opening import open_facts
from memory.facts.port import FactsError, FactStore, FactsUnavailableError
from memory.facts.vectors import ServedVectors
from memory.facts.weaviate import WeaviateFacts
from tests.memory.facts.checks import Shop

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    """An HTTP server that answers everything in the same way."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answer(writer)
        writer.close()

    listening = await asyncio.start_server(one, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


async def failing(writer: asyncio.StreamWriter) -> None:
    """503."""
    writer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


async def silent(_writer: asyncio.StreamWriter) -> None:
    """Nothing for longer than anybody waits."""
    await asyncio.sleep(5)


async def each_call_is_unavailable(store: FactStore, shop: Shop, folder: Path) -> None:
    """Every method of the port raises the one error, in time."""
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.put([shop.fact("tea", "drink")]), lambda: store.search(shop.name, "tea"),
        lambda: store.by_key(shop.name, "u", "k"), lambda: store.delete_customer(shop.name, "u"),
        lambda: store.by_session(shop.name, "s"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(FactsUnavailableError):
            await call()
    with pytest.raises(FactsUnavailableError):
        await store.backup(shop.name, folder / "never.gz")
    assert not (folder / "never.gz").exists()


@pytest.mark.parametrize("answer", [failing, None], ids=["5xx", "nothing listens"])
async def test_server_that_fails_is_unavailable(answer: Answer | None, shop: Shop, tmp_path: Path) -> None:
    """A server that is down or answers 5xx is FactsUnavailableError in every call (R-002-18)."""
    async with server(answer or failing) as url:
        pass
    if answer is None:
        await each_call_is_unavailable(WeaviateFacts(url, timeout_s=1), shop, tmp_path)
        return
    async with server(answer) as url:
        await each_call_is_unavailable(WeaviateFacts(url, timeout_s=1), shop, tmp_path)


async def test_slow_server_costs_the_timeout(shop: Shop) -> None:
    """A server that says nothing costs a search its time limit and no more."""
    async with server(silent) as url:
        store, started = WeaviateFacts(url, timeout_s=0.2), time.monotonic()

        with pytest.raises(FactsUnavailableError, match=r"within 0\.2 s"):
            await store.search(shop.name, "tea")

        assert time.monotonic() - started < 2
        await store.close()


@pytest.mark.parametrize("answer", [failing, silent], ids=["5xx", "slow"])
async def test_embedding_server_that_fails_stores_nothing(answer: Answer, shop: Shop, tmp_path: Path) -> None:
    """Without vectors a batch is not stored at all, so that it can be repeated."""
    async with server(answer) as url:
        vectors = ServedVectors(url, "model", 3, timeout_s=0.2)
        store = EmbeddedFacts(tmp_path, vectors)

        with pytest.raises(FactsUnavailableError, match="embedding server"):
            await store.put([shop.fact("tea", "drink")])

        assert [] == await store.search(shop.name, "")
        await store.close()
        await vectors.close()


async def test_embedding_server_gives_the_vectors(shop: Shop, tmp_path: Path) -> None:
    """Any embedding server with the usual answer can stand behind the port; the search is by its vectors."""

    async def one_vector(writer: asyncio.StreamWriter) -> None:
        body = b'{"data": [{"index": 0, "embedding": [0.6, 0.8, 0.0]}]}'
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

    async with server(one_vector) as url:
        vectors = ServedVectors(url, "model", 3)
        store = EmbeddedFacts(tmp_path, vectors)
        await store.put([shop.fact("tea", "drink")])

        assert [("tea", 0.6)] == [(hit.fact.summary, hit.score) for hit in await store.search(shop.name, "anything")]
        await store.close()
        await vectors.close()


async def test_file_that_another_process_holds_is_unavailable(shop: Shop, tmp_path: Path) -> None:
    """A write lock that is held too long is worth a repeat, no damage."""
    store = EmbeddedFacts(tmp_path, busy_s=0.05)
    await store.put([shop.fact("tea", "drink")])
    other = sqlite3.connect(tmp_path / f"{shop.name}.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(FactsUnavailableError, match="locked"):
        await store.put([shop.fact("milk", "drink")])

    other.close()
    assert ("w2",) == (await store.put([shop.fact("milk", "drink", write_id="w2")])).stored
    await store.close()


async def test_damaged_file_is_told(shop: Shop, tmp_path: Path) -> None:
    """A damaged file is an error that says to restore a backup, and no reason to try again."""
    (tmp_path / f"{shop.name}.sqlite").write_bytes(b"no database " * 1000)
    store = EmbeddedFacts(tmp_path)

    with pytest.raises(FactsError, match="restore a backup"):
        await store.search(shop.name, "tea")
    await store.close()


def test_store_is_chosen_by_its_address(tmp_path: Path) -> None:
    """No address is the embedded store, one is Weaviate, a bad one is refused with an example."""
    assert isinstance(open_facts("", "", tmp_path), EmbeddedFacts)
    assert isinstance(open_facts("http://127.0.0.1:8080?grpc=50051", "", tmp_path), WeaviateFacts)
    with pytest.raises(FactsError, match="grpc=50051"):
        open_facts("localhost:8080", "", tmp_path)
