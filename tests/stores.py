"""Real stores for tests: a given server, else the user's fetched one; skipped with the reason, in CI a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.stores.base import Server, Store, StoreError
from streams.stores.weaviate import STORE as WEAVIATE


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
