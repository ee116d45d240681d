"""Stores of facts for the tests: the embedded one, and a collection of its own in a real Weaviate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import FactStore
from memory.facts.weaviate import WeaviateFacts
from memory.facts.weaviate_client import Connection
from streams.clock import fresh_id
from tests.memory.facts.checks import OddVectors, Shop
from tests.stores import running_weaviate


@pytest.fixture(scope="session")
def weaviate_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real Weaviate."""
    yield from running_weaviate(tmp_path_factory.mktemp("weaviate"))


@pytest.fixture(scope="session")
def collection(weaviate_server: str) -> Iterator[str]:
    """A collection of this run, removed after it."""
    name = fresh_id("Test").replace("-", "")
    yield name

    async def remove() -> None:
        connection = Connection(weaviate_server, "", name, OddVectors.name)
        await connection.remove_collection(10)
        await connection.close()

    asyncio.run(remove())


@pytest.fixture(params=["embedded", pytest.param("weaviate", marks=pytest.mark.stores)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FactStore]:
    """Each store in turn."""
    made: FactStore = EmbeddedFacts(tmp_path / "facts", OddVectors())
    if request.param == "weaviate":
        server, name = request.getfixturevalue("weaviate_server"), request.getfixturevalue("collection")
        made = WeaviateFacts(server, vectors=OddVectors(), collection=name, timeout_s=10)
    yield made
    await made.close()


@pytest.fixture
def shop(request: pytest.FixtureRequest) -> Shop:
    """A shop of this test alone."""
    return Shop(f"{request.node.originalname}-{fresh_id('shop')}"[-60:])
