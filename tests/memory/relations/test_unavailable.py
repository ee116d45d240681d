"""A store of relations that is down, slow or damaged: a clear error in time, never a hang or a wrong success."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memory.relations.embedded import EmbeddedRelations
from memory.relations.neo4j import Neo4jRelations
from memory.relations.port import RelationsError, RelationStore, RelationsUnavailableError
from tests.memory.relations.checks import CUSTOMER, END, START, Shop, path


async def each_call_is_unavailable(store: RelationStore, shop: Shop, folder: Path) -> None:
    """Every method of the port raises the one error."""
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.merge([shop.order()]), lambda: store.customer_path(shop.name, CUSTOMER, START, END),
        lambda: store.marked_down_agents(shop.name, START, END), lambda: store.delete_customer(shop.name, CUSTOMER),
        lambda: store.backup(shop.name, folder / "never"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RelationsUnavailableError):
            await call()
    assert [] == holding(folder, b"interlock-relations")


async def test_server_that_is_down_is_unavailable(shop: Shop, tmp_path: Path) -> None:
    """Where nothing listens, every call says so at once and names the address."""
    listening = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    store = Neo4jRelations(f"bolt://127.0.0.1:{port}", timeout_s=2)

    await each_call_is_unavailable(store, shop, tmp_path)

    with pytest.raises(RelationsUnavailableError, match=f"127.0.0.1:{port}"):
        await path(store, shop)
    await store.close()


async def test_slow_server_costs_the_timeout(shop: Shop) -> None:
    """A server that takes the connection and says nothing costs a query its time limit and no more."""
    async with await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        store, started = Neo4jRelations(f"bolt://127.0.0.1:{port}", timeout_s=0.3), time.monotonic()

        with pytest.raises(RelationsUnavailableError):
            await path(store, shop)

        assert time.monotonic() - started < 2
        await store.close()


async def test_address_that_is_none_is_told() -> None:
    """A mistyped address is refused before anything is sent, with an example of a good one."""
    with pytest.raises(RelationsError, match="bolt://localhost:7687"):
        Neo4jRelations("http://localhost:7687")


async def test_file_that_another_process_holds_is_unavailable(shop: Shop, tmp_path: Path) -> None:
    """A write lock that is held too long is worth a repeat; readers do not wait for it."""
    file = tmp_path / "relations.db"
    store = EmbeddedRelations(file, busy_s=0.05)
    await store.merge([shop.order("OD1")])
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(RelationsUnavailableError, match="locked"):
        await store.merge([shop.order("OD2")])

    assert 1 == len(await path(store, shop))
    other.close()
    await store.merge([shop.order("OD2")])
    assert 2 == len(await path(store, shop))
    await store.close()


@pytest.mark.parametrize("content", [b"no database " * 1000, b"SQLite format 3\0" + b"\0" * 5000])
def test_damaged_file_is_told(content: bytes, tmp_path: Path) -> None:
    """A file that is damaged or something else is an error that says what to do, and no reason to try again."""
    file = tmp_path / "relations.db"
    file.write_bytes(content)

    with pytest.raises(RelationsError, match="restore a backup"):
        EmbeddedRelations(file)


def test_file_of_another_version_is_left_alone(tmp_path: Path) -> None:
    """A file that a later version wrote is not touched."""
    file = tmp_path / "relations.db"
    other = sqlite3.connect(file)
    other.execute("PRAGMA user_version = 9")
    other.close()

    with pytest.raises(RelationsError, match="another version"):
        EmbeddedRelations(file)


async def test_two_processes_share_the_file(shop: Shop, tmp_path: Path) -> None:
    """A command reads what the keeper wrote while both have the file open."""
    file = tmp_path / "relations.db"
    store = EmbeddedRelations(file)
    await store.merge(shop.story())
    code = (
        "import asyncio, sys; from pathlib import Path; from memory.relations.embedded import EmbeddedRelations;"
        f"store = EmbeddedRelations(Path({str(file)!r}));"
        f"print(len(asyncio.run(store.customer_path({shop.name!r}, {CUSTOMER!r}, {START}, {END}))));"
        f"print(asyncio.run(store.delete_customer({shop.name!r}, {CUSTOMER!r})))"
    )

    other = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    told, _nothing = await other.communicate()

    assert [b"3", b"6"] == told.split()
    assert [] == await path(store, shop)
    await store.close()


async def test_nothing_of_a_forgotten_customer_stays_in_the_file(shop: Shop, tmp_path: Path) -> None:
    """After a deletion no page, free or in the log, holds the customer's words (R-004-19)."""
    store = EmbeddedRelations(tmp_path / "relations.db")
    await store.merge([shop.complaint(note=f"canary-{number}") for number in range(50)])
    await store.merge([shop.order("OD5", customer="s/web/other")])
    assert holding(tmp_path, b"canary")

    await store.delete_customer(shop.name, CUSTOMER)

    assert not holding(tmp_path, b"canary")
    await store.close()


def holding(folder: Path, text: bytes) -> list[str]:
    """The files of the folder with the text in them."""
    return [file.name for file in folder.iterdir() if text in file.read_bytes()]
