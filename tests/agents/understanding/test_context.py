"""What the flow asked for helps to read an answer, and never hides another wish."""

from __future__ import annotations

import pytest

from agents.understanding.port import Expects
from tests.agents.understanding.reader import filled, intents, read


@pytest.mark.parametrize(
    ("text", "expects", "intent", "slots"),
    [
        ("1001", "order_id", "inform", {"order_id": "1001"}),
        ("订单号是1001", "order_id", "inform", {"order_id": "1001"}),
        ("我要退1002", "order_id", "inform", {"order_id": "1002"}),
        ("sorry, my order is OD100005", "order_id", "inform", {"order_id": "OD100005"}),
        ("是", "confirm", "confirm", {}),
        ("确认退款", "confirm", "confirm", {}),
        ("对，退款", "confirm", "confirm", {}),
        ("不", "confirm", "deny", {}),
        ("不对，是1002", "confirm", "deny", {"order_id": "1002"}),
        ("1", "choice", "inform", {}),
        ("没有", "order_id", "deny", {}),
    ],
)
def test_an_answer_is_read_as_one(text: str, expects: Expects, intent: str, slots: dict[str, str]) -> None:
    """What the flow waits for reads a bare answer as the answer, with its slots."""
    wish = read(text, expects, "refund").wishes[0]

    assert (intent, slots) == (wish.intent, filled(wish.slots))


def test_an_awaited_answer_is_surer() -> None:
    """The same yes is surer where one was asked for."""
    assert read("是", "confirm").wishes[0].confidence > read("是").wishes[0].confidence


@pytest.mark.parametrize("text", ["是", "1001", "1", "是的，1001"])
def test_a_fast_answer_is_read_without_its_question(text: str) -> None:
    """The context may be older than the question: bare answers carry what fits their shape (case B25)."""
    wish = read(text).wishes[0]

    assert wish.intent == ("confirm" if "是" in text else "inform")
    assert ("1001" in text) == (wish.slots.order_id == "1001")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("质量有问题", "质量有问题"), ("朋友说别的店更好", "朋友说别的店更好"), ("my dog ate it", "my dog ate it")],
)
def test_asked_for_a_reason_any_words_are_one(text: str, reason: str) -> None:
    """The reason is free text where the flow asked for it (R-003-07 ask_reason)."""
    reading = read(text, "reason", "refund")

    assert ("inform", reason) == (reading.wishes[0].intent, reading.reason)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("转人工", "human"),
        ("帮我查1002的物流", "logistics"),
        ("算了", "stop"),
        ("1001", "inform"),
        ("谢谢", "thanks"),
        ("好", "confirm"),
    ],
)
def test_another_wish_is_no_reason(text: str, intent: str) -> None:
    """A clear wish, a number or a courtesy does not become the reason (case F15)."""
    reading = read(text, "reason", "refund")

    assert (intent, None) == (reading.wishes[0].intent, reading.reason)


def test_a_yes_with_another_wish_keeps_both() -> None:
    """A yes with "and also" is a yes first."""
    assert ["confirm", "logistics"] == intents("好的，再查下1002的物流", "confirm", "refund")


def test_an_order_without_a_number_is_not_taken_from_before() -> None:
    """Nothing is carried over from an earlier message (case F03)."""
    assert read("那个蓝色杯子到哪了").wishes[0].slots.order_id is None
