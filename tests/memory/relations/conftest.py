"""Stores of relations for the tests: the embedded one, and shops of their own in a real Neo4j."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memory.relations.embedded import EmbeddedRelations
from memory.relations.neo4j import Neo4jRelations
from memory.relations.port import RelationStore
from streams.clock import fresh_id
from tests.memory.relations.checks import Shop
from tests.stores import running_neo4j


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real Neo4j."""
    yield from running_neo4j(tmp_path_factory.mktemp("neo4j"))


def opened(url: str, timeout_s: float = 60) -> Neo4jRelations:
    """The store at the address, as who the settings say."""
    user, password = (os.environ.get(f"INTERLOCK_RELATIONS_{name}", "") for name in ("USER", "PASSWORD"))
    return Neo4jRelations(url, user, password, timeout_s=timeout_s)


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.stores)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RelationStore]:
    """Each store in turn."""
    made: RelationStore
    if request.param == "neo4j":
        made = opened(request.getfixturevalue("neo4j_server"))
    else:
        made = EmbeddedRelations(tmp_path / "relations.db")
    yield made
    await made.close()


@pytest.fixture
def shop(request: pytest.FixtureRequest) -> Shop:
    """A shop of this test alone."""
    return Shop(f"{request.node.originalname}-{fresh_id('shop')}"[-60:])
