"""The broker's ends for the promises that only a real broker proves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streams.runtime.kafka_rig import Rig


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """Fresh topics on the broker, and a group of this test's own."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    return rig
