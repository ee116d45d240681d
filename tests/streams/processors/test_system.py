"""The words of operators: each is in the register, and none of them stops a partition, whatever it brings."""

from __future__ import annotations

from typing import Any

import pytest

from memory.bus import empty
from schemas.step import Draft, Input
from schemas.system import SystemEvent
from streams.processors.system import step

NOW = 1_767_578_400_000


def reasons(kind: Any, data: dict[str, Any]) -> dict[str, str]:
    """Rules and their words, of one event."""
    event = SystemEvent(event_id="sys-1", kind=kind, subject="demo", by="li", at=NOW, data=data)
    draft = Draft(empty("~0"), Input("system.events", 0, 1, NOW, "~0", event.event_id, "system.events", event))
    step(draft, draft.cause)
    return {rule: text for rule, text, _ids in draft.finish().reasons}


@pytest.mark.parametrize(
    "data", [{}, {"files": None}, {"files": "x"}, {"files": [1, None, {}]}, {"files": {"file": "x"}}, {"files": [[]]}]
)
def test_a_restore_without_its_files_is_recorded_all_the_same(data: dict[str, Any]) -> None:
    """What is missing in the event is missing in the words, and the step goes on (promise 10)."""
    assert "demo from" in reasons("memory_restored", data)["runtime.memory_restored"]


def test_a_restore_names_its_files() -> None:
    """Which backups the stores of a shop came from stands in the register (R-004-11)."""
    told = reasons("memory_restored", {"files": [{"file": "a.jsonl.gz"}, {"file": "b.jsonl.gz"}], "backup_before": "c"})

    assert "demo from a.jsonl.gz, b.jsonl.gz, by li; before: c" == told["runtime.memory_restored"]


@pytest.mark.parametrize("kind", ["pack_loaded", "model_loaded", "rules_loaded"])
def test_what_was_loaded_stands_with_its_version(kind: str) -> None:
    """Another version is an event in the register, also one that has none (R-000-27)."""
    assert "demo 3, by li" == reasons(kind, {"version": "3"})[f"runtime.{kind}"]
    assert "demo without a version, by li" == reasons(kind, {})[f"runtime.{kind}"]
