"""One wish typed, spoken and photographed is read alike."""

from __future__ import annotations

import pytest

from agents.understanding.fold import fold
from bench.evals.channel_agreement import WISHES, disagreements, read_as, wishes
from bench.evals.data import reader
from tests.agents.understanding.reader import intents, read, slots


def test_the_seeded_wishes_agree_over_the_channels() -> None:
    """Of 200 wishes, each typed, as transcript and as picture, at least 99 % have one reading (R-002-02)."""
    assert len(disagreements(reader(), wishes())) <= WISHES // 100


def test_a_return_is_no_question_after_it() -> None:
    """The blue dress is to go back, or its money is asked for: two wishes about one thing, in every channel."""
    wish, question = wishes()[:2]

    for text in (wish.typed, wish.spoken, wish.photographed):
        assert (["refund"], "blue", "dress") == (intents(text), slots(text)["colour"], slots(text)["category"])
    for text in (question.typed, question.spoken, question.photographed):
        assert (["refund_status"], "blue", "dress") == (intents(text), slots(text)["colour"], slots(text)["category"])


def test_two_typed_lines_stay_two_wishes() -> None:
    """A line's end is mended inside a sentence only."""
    both = read("我要退款1001\n帮我查1002的物流").wishes

    assert [("refund", "1001"), ("logistics", "1002")] == [(one.intent, one.slots.order_id) for one in both]


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("我要退那\n个蓝色 裙 子", "我要退那个蓝色裙子"),
        ("Where is my\nrefund for  order\n1001?", "Where is my refund for order 1001?"),
        ("um I want a refund", "I want a refund"),
        ("order one double zero one", "order 1001"),
        ("寄到文三路\n8 号", "寄到文三路8号"),
    ],
)
def test_a_broken_text_is_mended(broken: str, whole: str) -> None:
    """Line breaks, odd spaces, fillers and said digits fold to what was meant, and keep their raw spans (case F11)."""
    folded = fold(broken)

    assert whole == folded.text
    assert (0 if broken[0] == whole[0] else len("um "), len(broken)) == folded.raw(0, len(whole))


def test_the_forms_of_a_wish_differ() -> None:
    """The three forms are three texts, else the measurement would say nothing."""
    assert all(len({one.typed, one.spoken, one.photographed}) >= 2 for one in wishes())
    assert read_as(read("退1001")) != read_as(read("退1002"))
