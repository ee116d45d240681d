"""Fixtures that several packages' tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from streams.broker import EmbeddedKafka
from streams.java import BrokerError


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap address of a real Kafka: the given cluster, else one of our own for this run.

    Where it can't start, tests are skipped with the reason; in CI that is a failure.
    """
    given = os.environ.get("INTERLOCK_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    own = EmbeddedKafka(tmp_path_factory.mktemp("broker"))
    try:
        yield own.start()
    except BrokerError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no broker: {error}")
    finally:
        own.stop()
