"""ECom-Bench in Chinese: whether the reading of a goal names the kind of tool that the benchmark calls for it.

Tasks with an even index may be looked at while developing; the row is measured on the odd ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.understanding.port import Understanding
from bench.evals.data import NoDataError, json_of, map_of, read, reader
from bench.report import Result, missing, more_is_better

ROWS = {"intent_zh": "%", "intent_zh_all": "%", "intent_zh_dev": "%"}
_GOAL = re.compile(r"<意图[^>]*>([^<]*)")
_STAGE = re.compile(r"（(?:注意|禁止)[^（）]*）|（[^（）]*禁止[^（）]*）|\((?:注意|禁止)[^()]*\)")
_WHAT = "goals with a gold call, as a customer says them; right when the main wish is an intent of the call's kind"


class MapError(ValueError):
    """The map places a call at a goal that the task has not: the message names the task and the kind."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal of a task as a customer's message, with the kinds of tool that it needs."""

    task: int
    text: str
    kinds: tuple[str, ...]


def spoken(goal: str) -> str:
    """A goal as its customer says it: stage directions out, "you" is I, and the desk is spoken to."""
    said = _STAGE.sub("", goal).strip()
    return said.replace("客服", "您").replace("你", "我").replace("您", "你")


def texts(task: dict[str, Any]) -> list[str]:
    """All goals of a task, in order, as a customer says them."""
    return [spoken(goal) for goal in _GOAL.findall(task["instruction"]) if goal.strip()]


def goals(tasks: Sequence[dict[str, Any]], labels: dict[str, Any]) -> list[Goal]:
    """The labelled goals. Raises MapError where the labels don't fit the tasks' goals and gold calls."""
    found = []
    for task in tasks:
        said, kinds = texts(task), labels["goals"].get(task["index"])
        if kinds is None:
            continue
        called = {labels["calls"][_call(call)] for calls in _GOLD for call in task["metadata"][calls]}
        unknown = {kind for of_goal in kinds for kind in of_goal} - called
        if unknown or len(said) != len(kinds):
            what = f"{len(said)} goals, {len(kinds)} labels, no gold call for {sorted(unknown)}"
            message = f"task {task['index']}: {what}"
            raise MapError(message)
        found += [Goal(task["index"], text, tuple(of)) for text, of in zip(said, kinds, strict=True) if of]
    return found


_GOLD = ("actions", "searches")


def _call(call: dict[str, Any]) -> str:
    action = call["arguments"].get("action")
    return f"{call['name']}:{action}" if action else str(call["name"])


def right(goal: Goal, intent: str, labels: dict[str, Any]) -> bool:
    """Whether the intent does what one of the goal's calls does."""
    return any(intent in labels["intents"][kind] for kind in goal.kinds)


def _row(name: str, wanted: Sequence[Goal], understanding: Understanding, labels: dict[str, Any], note: str) -> Result:
    if not wanted:
        return missing(name, "%", "no goal of these tasks is labelled")
    hits = sum(right(goal, read(understanding, goal.text).wishes[0].intent, labels) for goal in wanted)
    one = {intent for intents in labels["intents"].values() for intent in intents}
    majority = max(sum(right(goal, intent, labels) for goal in wanted) for intent in one)
    share, base = 100 * hits / len(wanted), 100 * majority / len(wanted)
    return more_is_better(name, share, "%", base, len(wanted), f"{note}; {_WHAT}; baseline: one intent for all")


def rows() -> list[Result]:
    """The rows of ROWS; null with the reason without the data."""
    try:
        tasks = json_of("ecom-bench", "tasks.json")
    except NoDataError as error:
        return [missing(name, unit, str(error)) for name, unit in ROWS.items()]
    labels, understanding = map_of("ecom"), reader()
    labelled = goals(tasks, labels)
    odd = [goal for goal in labelled if goal.task % 2]
    even = [goal for goal in labelled if not goal.task % 2]
    return [
        _row("intent_zh", odd, understanding, labels, "odd tasks: read to place labels, not to choose an edit"),
        _row("intent_zh_all", labelled, understanding, labels, "all tasks"),
        _row("intent_zh_dev", even, understanding, labels, "even tasks, looked at while developing"),
    ]
