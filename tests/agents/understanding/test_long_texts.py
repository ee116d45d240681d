"""Long and hostile texts cost time in proportion to their length: one message must not hold up a partition."""

from __future__ import annotations

import time

import pytest

from agents.understanding.normalize import masked
from agents.understanding.pointing import cues, remembered, vocabulary
from tests.agents.understanding.reader import read

CHARS = 20_000
LIMIT = 1.0  # seconds of CPU; the slowest takes 0.12, and each of these once took between 1 and 14


@pytest.mark.parametrize("unit", ["十", "退5元", "万元", "红色裙子", "SKU-A1 ", "1001 ", "13800000000 ", "改成"])
def test_twenty_thousand_characters_are_read_in_time(unit: str) -> None:
    """A text that makes a pattern try again from every place costs its length, not its square."""
    text = (unit * CHARS)[:CHARS]
    begun = time.process_time()
    read(text, "reason", "refund")
    masked(text)

    assert time.process_time() - begun < LIMIT


@pytest.mark.parametrize("unit", ["the order i asked same as the one from ", "the last the same ", "上次之前问的那个"])
def test_what_a_long_text_points_to_is_found_in_time(unit: str) -> None:
    """Thousands of kinds and of half-said pointers cost their length; each once looked at all that stood before it."""
    text = (unit * CHARS)[:CHARS]
    begun = time.process_time()
    cues(text, vocabulary())
    remembered(text, vocabulary())

    assert time.process_time() - begun < LIMIT


def test_a_long_run_of_numerals_is_no_amount() -> None:
    """What is no number is refused, also when its end would be one (case E11)."""
    assert read("十" * 50 + "元").wishes[0].slots.amount is None


def test_of_many_orders_the_first_are_read() -> None:
    """More than anybody asks for is left; what is read is read in order."""
    wishes = read("退" + "、".join(str(number) for number in range(1_000, 1_200))).wishes

    assert ["1000", "1001", "1002"] == [wish.slots.order_id for wish in wishes[:3]]
    assert 20 == len(wishes)
