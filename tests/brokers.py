"""A broker of our own for tests: skipped with the reason where it can't start, in CI a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.broker import EmbeddedKafka
from streams.java import BrokerError


def embedded(folder: Path) -> Iterator[str]:
    """The bootstrap address of a broker in the folder, for a fixture to yield from; it is stopped after that."""
    own = EmbeddedKafka(folder)
    try:
        yield own.start()
    except BrokerError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no broker: {error}")
    finally:
        own.stop()
