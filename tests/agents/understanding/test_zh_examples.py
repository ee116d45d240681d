"""The Chinese examples that the shipped model is fitted on."""

from __future__ import annotations

from collections import Counter

from agents.understanding.model.examples import shipped_examples

LEAST = 40
INTENTS = 26


def test_every_intent_has_examples_in_chinese() -> None:
    """At least 40 sentences an intent, each once, and none under two intents (R-002-03)."""
    found = [example for example in shipped_examples() if example.language == "zh"]
    counts = Counter(example.intent for example in found)

    assert INTENTS == len(counts)
    assert min(counts.values()) >= LEAST
    assert len(found) == len({example.text for example in found})
