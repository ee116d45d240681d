"""How many of the customers' messages become whole messages: the demo's own texts, and ECom-Bench's in Chinese.

A message is normalised when it fits the contract, its seven required fields filled, and names the item that its text
names. A field is missing when a return or an exchange names a number in its text and none in the message; where the
text names none, the customer is asked (R-002-03), which is its own row. The fallback is a person (R-002-05).
"""

from __future__ import annotations

import re
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
    "normalised_rate": ("normalised", "asked"), "missing_field_rate": ("missing",), "human_fallback_rate": ("person",),
    "item_asked_rate": ("asked",),
}  # fmt: skip
_NUMBER = re.compile(r"(?<![A-Za-z0-9])[0-9]{4,}(?![A-Za-z0-9元块])")  # "4800W" names no item
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
    """What became of a message, by the marks of its reading."""
    marks = message.get("marks", ())
    if "unreadable" in marks:
        return "person"
    if "missing_item" not in marks:
        return "normalised"
    return "missing" if _NUMBER.search(message["text"]) else "asked"


def outcomes(talks: Sequence[Talk]) -> Counter[str]:
    """How many messages had which outcome; one that was never read counts as with a person."""
    left = held(talks, (TOPIC,))
    found: Counter[str] = Counter()
    for talk in talks:
        read = {message["ref"]["message_id"]: message for message in of(left, TOPIC, talk)}
        found.update(outcome(message) for message in read.values())
        found["person"] += len(talk.says) - len(read)
    return found


def rows() -> list[Result]:
    """The rows of ROWS; without the data over the demo's texts alone."""
    talks = demo()
    try:
        talks, note = talks + benchmark(), "the demo's and ECom-Bench's texts, played through the whole system"
    except NoDataError as error:
        note = f"the demo's texts alone: {error}"
    found = outcomes(talks)
    total = found.total()
    return [Result(name, rounded(100 * sum(found[kind] for kind in kinds) / total), "%", n=total, note=note)
            for name, kinds in OUTCOMES.items()]  # fmt: skip
