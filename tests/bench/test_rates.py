"""The rates of R-002-05: what a message counts as."""

from __future__ import annotations

import pytest

from bench.evals.rates import demo, outcome, outcomes


@pytest.mark.parametrize(
    ("marks", "text", "expected"),
    [
        ([], "订单1001到哪了", "normalised"),
        (["unreadable"], "?", "person"),
        (["missing_item"], "我要退货", "asked"),
        (["missing_item"], "我要退货，单号200812345", "missing"),
        (["missing_item"], "换成4800W的", "asked"),
    ],
)
def test_a_message_counts_by_what_became_of_it(marks: list[str], text: str, expected: str) -> None:
    """A field is missing where the text names an item and the message none; else one is asked (R-002-05)."""
    assert expected == outcome({"marks": marks, "text": text})


def test_the_demos_texts_are_all_read() -> None:
    """Of the demo's messages none needs a person to be read and none loses an item (R-002-05)."""
    found = outcomes(demo())

    assert 0 == found["person"] + found["missing"]
    assert found.total() > 30
