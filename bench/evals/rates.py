"""How many of the customers' messages become whole messages: the demo's own texts, and ECom-Bench's in Chinese.

Outcomes as the counter interlock_messages_normalized_total has them (R-002-05): whole; with a field missing that its
intent needs (a return or an exchange without an item, which is asked for); or not to be read, and with a person.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.evals.data import NoDataError, json_of
from bench.evals.ecom import texts
from bench.evals.talks import Talk, held, of
from bench.report import Result, rounded
from streams.demo.run import SCENARIOS
from streams.scenario.format import Say, load_folder

OUTCOMES = {
    "normalised_rate": "normalized", "missing_field_rate": "missing_field", "human_fallback_rate": "human_fallback",
}  # fmt: skip
ROWS = dict.fromkeys(OUTCOMES, "%")
TOPIC = "messages.normalized"
_SENDER = "c-zh-many"


def demo() -> list[Talk]:
    """What the customers of the demo's scenarios say, with their own orders."""
    return [
        Talk(f"demo-{scenario.name}", scenario.sender, said)
        for scenario in load_folder(SCENARIOS)
        if (said := tuple(step.text for step in scenario.steps if isinstance(step, Say)))
    ]


def benchmark() -> list[Talk]:
    """A conversation a task of ECom-Bench: its goals in order. Raises NoDataError."""
    tasks = json_of("ecom-bench", "tasks.json")
    return [Talk(f"ecom-{task['index']}", _SENDER, tuple(texts(task))) for task in tasks]


def outcome(message: Mapping[str, Any]) -> str:
    """What the counter counts a message as."""
    marks = message.get("marks", ())
    if "unreadable" in marks:
        return "human_fallback"
    return "missing_field" if "missing_item" in marks else "normalized"


def outcomes(talks: Sequence[Talk]) -> Counter[str]:
    """How many messages had which outcome; one that was never read counts as with a person."""
    left = held(talks, (TOPIC,))
    found: Counter[str] = Counter()
    for talk in talks:
        read = {message["ref"]["message_id"]: message for message in of(left, TOPIC, talk)}
        found.update(outcome(message) for message in read.values())
        found["human_fallback"] += len(talk.says) - len(read)
    return found


def rows() -> list[Result]:
    """The rows of ROWS; without the data over the demo's texts alone."""
    talks, note = demo(), "the demo's texts"
    try:
        talks, note = talks + benchmark(), "the demo's and ECom-Bench's texts, played through the whole system"
    except NoDataError as error:
        note = f"{note} alone: {error}"
    found = outcomes(talks)
    total = found.total()
    return [
        Result(name, rounded(100 * found[kind] / total), "%", n=total, note=note) for name, kind in OUTCOMES.items()
    ]
