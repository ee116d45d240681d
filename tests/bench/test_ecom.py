"""The evaluation on ECom-Bench: its labels, and how a goal becomes what a customer says."""

from __future__ import annotations

from typing import Any

import pytest

from bench.evals.data import map_of
from bench.evals.ecom import Goal, MapError, goals, right, spoken

LABELS: dict[str, Any] = map_of("ecom")


def _task(index: int, *goal_texts: str, call: str = "manage_urgent") -> dict[str, Any]:
    said = "".join(f"<意图{number}>\n{text}\n<\\意图{number}>" for number, text in enumerate(goal_texts))
    return {"index": index, "instruction": said,
            "metadata": {"actions": [{"name": call, "arguments": {}}], "searches": []}}  # fmt: skip


def test_a_goal_is_said_in_the_first_person_without_its_stage_directions() -> None:
    """What the benchmark tells its actor is no word of the customer's."""
    assert "我希望你催一下" == spoken("你希望客服催一下（注意，禁止向客服透露订单号）")


def test_every_kind_of_call_has_intents_and_every_label_a_kind() -> None:
    """The map is whole: no call without a kind, no kind without an intent."""
    kinds = {kind for of_task in LABELS["goals"].values() for of_goal in of_task for kind in of_goal}

    assert set(LABELS["calls"].values()) == set(LABELS["intents"])
    assert kinds <= set(LABELS["intents"])
    assert list(range(53)) == sorted(LABELS["goals"])


def test_labels_name_only_calls_that_the_task_has() -> None:
    """A label can place a gold call at a goal, and invent none."""
    labels = {**LABELS, "goals": {1: [["urgent"]], 2: [["invoice"]]}}

    assert [Goal(1, "催一下", ("urgent",))] == goals([_task(1, "催一下")], labels)
    with pytest.raises(MapError, match="task 2"):
        goals([_task(2, "开发票")], labels)
    with pytest.raises(MapError, match="2 goals, 1 labels"):
        goals([_task(1, "催一下", "谢谢")], labels)


def test_a_reading_is_right_when_it_does_what_a_call_does() -> None:
    """Any of a goal's calls may be the main wish; another intent is wrong."""
    goal = Goal(1, "", ("logistics", "urgent"))

    assert right(goal, "hurry_up", LABELS)
    assert right(goal, "logistics", LABELS)
    assert not right(goal, "refund", LABELS)
