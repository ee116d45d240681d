"""Progressive summaries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.summaries import summarise
from memory.turns import Thing
from tests.memory.talk import order, turn


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=80))
def test_a_turn_is_summarised_in_fifty_characters(asked: str, told: str, name: str) -> None:
    """At most 50 characters, whatever was said (R-000-25)."""
    assert 50 >= len(summarise(turn(1, asked, told, order(name))))


def test_a_summary_says_intent_thing_and_outcome() -> None:
    """What was wanted, of what, and the first clause of the answer; what was only offered is left out (R-000-25)."""
    said = turn(
        1,
        "我要退款",
        "退款已受理：订单1001，金额50元。",
        order("1001"),
        Thing("order", "1002", {}, "offered", 1),
        intent="refund",
    )

    assert "refund 1001 | 退款已受理" == summarise(said)


def test_a_turn_without_intent_is_summarised_by_its_words() -> None:
    """Nothing known of it: the customer's first clause (R-000-25)."""
    assert "你好 | 您好" == summarise(turn(1, "你好，在吗？", "您好！", intent=""))
