"""The broker rig for this folder's Kafka tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.snapshots import SnapshotStore
from streams.runtime.snapshotting import LocalSnapshots
from tests.streams.runtime.kafka_rig import Rig


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """Fresh topics on the broker, and a group of this test's own."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    return rig


@pytest.fixture
def snapshots(tmp_path: Path) -> Iterator[LocalSnapshots]:
    """A folder of the test's own."""
    with SnapshotStore.claim(tmp_path, "c", "t", lambda *_, **__: None, logging.getLogger("test")) as store:
        yield LocalSnapshots(store, lambda: 1)
