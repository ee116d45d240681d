"""Fixtures that several packages' tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import embedded

# Folders and modules whose tests play whole conversations, try thousands of inputs or wait in real time: they run in
# `make test`, and `make test-fast` leaves them out so that it stays below ten seconds.
THOROUGH = (
    "tests/cases/", "tests/promises/", "tests/failure/", "tests/fuzz/", "tests/chaos/", "tests/quality/",
    "tests/bench/", "tests/e2e/", "tests/examples/",
    "tests/agents/understanding/", "tests/agents/planning/test_anything.py", "tests/agents/planning/test_bounds.py",
    "tests/agents/planning/test_packs.py", "tests/agents/flows/test_flow_files.py",
    "tests/agents/tools/test_tool_files.py", "tests/feedback/test_oracle.py", "tests/memory/test_bus.py",
    "tests/memory/test_copies.py", "tests/memory/test_masking.py", "tests/memory/test_snapshots.py", "tests/models/",
    "tests/memory/test_personal.py", "tests/streams/privacy/",
    "tests/memory/test_windows.py", "tests/memory/facts/", "tests/memory/relations/",
    "tests/memory/test_register_rollbacks.py", "tests/agents/remembering/", "tests/memory/test_embedding.py",
    "tests/memory/test_tokens.py", "tests/schemas/test_cloudevents.py", "tests/schemas/test_codec.py",
    "tests/schemas/test_export.py", "tests/schemas/test_published.py", "tests/schemas/test_topics.py",
    "tests/streams/channels/", "tests/streams/commands/", "tests/streams/delivery/test_properties.py",
    "tests/streams/gateway/", "tests/streams/replay/", "tests/streams/runtime/test_offsets.py",
    "tests/streams/runtime/test_partition_races.py", "tests/streams/stores/",
    "tests/streams/scenario/", "tests/streams/test_",
)  # fmt: skip


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read the thorough tests where they are left out: half of the fast run would be their imports."""
    place = collection_path.relative_to(config.rootpath).as_posix() + "/" * collection_path.is_dir()
    return True if "not slow" in config.option.markexpr and place.startswith(THOROUGH) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the thorough tests as slow."""
    for item in items:
        if item.path.relative_to(config.rootpath).as_posix().startswith(THOROUGH):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap address of a real Kafka: the given cluster, else one of our own for this run.

    Where it can't start, tests are skipped with the reason; in CI that is a failure.
    """
    given = os.environ.get("INTERLOCK_BOOTSTRAP_SERVERS")
    if given:
        yield given
    else:
        yield from embedded(tmp_path_factory.mktemp("broker"))
