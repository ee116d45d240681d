"""Messages with several wishes: none is lost, each keeps its own slots, their order stands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.understanding.reader import filled, intents, read


def _wishes(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(wish.intent, filled(wish.slots)) for wish in read(text).wishes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我要退1001，再顺便查下1002的物流", [("refund", "1001"), ("logistics", "1002")]),
        ("查下1002的物流，另外我要退1001", [("logistics", "1002"), ("refund", "1001")]),
        ("refund order 1001 and track order 1002", [("refund", "1001"), ("logistics", "1002")]),
        ("Where is order OD100002? Also, please refund OD100001.", [("logistics", "OD100002"), ("refund", "OD100001")]),
        ("订单1001，我要退款", [("refund", "1001")]),
        ("我要退1001和1003", [("refund", "1001"), ("refund", "1003")]),
        ("退1001，顺便查下物流", [("refund", "1001"), ("logistics", "1001")]),
        ("我的order 1001 status是什么，可以refund吗", [("logistics", "1001"), ("refund", "1001")]),
    ],
)
def test_each_wish_has_its_own_order(text: str, expected: list[tuple[str, str]]) -> None:
    """Two requests in one sentence are two wishes with their own orders, in order (cases F01, F13; R-003-02)."""
    assert expected == [(intent, slots.get("order_id")) for intent, slots in _wishes(text)]


def test_three_intents_in_one_message() -> None:
    """A compound message with three intents keeps all three (R-003-02)."""
    text = "我要退1001，查下1002的物流，再把1003的地址改成A路1号"

    assert [
        ("refund", {"order_id": "1001"}),
        ("logistics", {"order_id": "1002"}),
        ("change_address", {"order_id": "1003", "address": "A路1号"}),
    ] == _wishes(text)


def test_a_correction_replaces_what_it_corrects() -> None:
    """In "1001, no, 1002" the later number counts."""
    assert ("refund", {"order_id": "1002"}) == _wishes("我要退1001，不对，是1002")[0]


def test_a_negated_wish_leaves_the_other() -> None:
    """Stopping what is under way and asking for another thing are both read; where nothing is, there is no stop."""
    text = "不要退款了，帮我查物流"
    assert ["stop", "logistics"] == [wish.intent for wish in read(text, flow="refund").wishes]
    assert ["logistics"] == intents(text)


def test_a_wish_for_a_person_comes_first() -> None:
    """A person beats everything (X9), wherever it stands in the message."""
    assert ["human", "refund"] == intents("我要退款，转人工")


@pytest.mark.parametrize("text", ["你好，我要退款", "我要退款，谢谢", "Hi, I want a refund, thanks"])
def test_courtesies_beside_a_wish_are_left_out(text: str) -> None:
    """A greeting or thanks beside a wish is no second wish."""
    assert ["refund"] == intents(text)


def test_a_hint_beside_a_clear_wish_is_no_wish() -> None:
    """A swear word in a clear request does not open a complaint."""
    assert ["refund"] == intents("太差了，我要退款")
