"""Real stores for tests: a given server, else the user's fetched one; skipped with the reason, in CI a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.stores.base import Server, Store, StoreError
from streams.stores.neo4j import STORE as NEO4J
from streams.stores.neo4j import Neo4jServer
from streams.stores.weaviate import STORE as WEAVIATE
from streams.stores.weaviate import WeaviateServer


def missing(reason: str) -> None:
    """Skip, or fail where everything must run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def running(store: Store, folder: Path) -> Iterator[str]:
    """The address of the store that the setting names, else of one of our own for this run."""
    given = os.environ.get(store.setting)
    if given:
        yield given
        return
    if store.found() is None:
        missing(f"no {store.name}: run `make stores`, or set {store.setting}")
    server: Server = store.server(folder)
    try:
        yield server.start()
    except StoreError as error:
        missing(str(error))
    finally:
        server.stop()


def running_weaviate(folder: Path) -> Iterator[str]:
    """Address of a real Weaviate, for a fixture to yield from."""
    yield from running(WEAVIATE, folder)


def own_weaviate(folder: Path) -> WeaviateServer:
    """A server for a test that starts, freezes and kills it."""
    if WEAVIATE.found() is None:
        missing("no weaviate: run `make stores`")
    return WeaviateServer(folder)


def running_neo4j(folder: Path) -> Iterator[str]:
    """Address of a real Neo4j, for a fixture to yield from."""
    yield from running(NEO4J, folder)


def own_neo4j(folder: Path, password: str = "") -> Neo4jServer:
    """A server for a test that starts, freezes and kills it."""
    if NEO4J.found() is None:
        missing("no neo4j: run `make stores`")
    return Neo4jServer(folder, password=password)
