"""Free words fill a slot only when they can be its value (R-003-11); a yes is to all that will be done (R-003-26)."""

from __future__ import annotations

import time

import pytest

from agents.planning.wishes import choice_number
from tests.agents.support import Chat, message, order


@pytest.mark.parametrize("text", ["我想改到", "老地方", "你们几点下班呢", "can you do that?"])
def test_no_place_is_no_address(text: str) -> None:
    """Asked for an address, words without any sign of one are asked about again, not confirmed as one."""
    chat = Chat()
    chat.say("改1006的地址")

    assert "address.ask_address" == chat.say(text)[-1]
    assert "address" not in chat.state["planning"]["flows"][0]["slots"]


@pytest.mark.parametrize("text", ["有没有优惠？", "我要开发票", "几点下班呢", "what are your hours?"])
def test_another_topic_is_no_reason(text: str) -> None:
    """Asked for a reason, a question or a clear other topic is none: it must not stand in a refund."""
    chat = Chat()
    chat.say("我要退1001")
    chat.say(text)

    assert "reason" not in chat.state["planning"]["flows"][0]["slots"]


def test_a_phone_is_confirmed_with_its_address() -> None:
    """The customer sees the number, masked, before it is changed with the address, and also when only it is new."""
    chat = Chat()
    chat.say("1006的地址改成上海市静安区南京路1号，电话13900001111")
    chat.result(order("1006", status="paid"))
    assert "139****1111" in chat.text()

    chat.say("电话不对，是13900002222")
    assert ["address.confirm"] == chat.result(order("1006", status="paid"))
    assert "上海市静安区南京路1号, 139****2222" in chat.text()


def test_a_long_message_of_nothing_is_no_number_and_costs_little() -> None:
    """20,000 spaces before a word are looked at once (promise 10)."""
    started = time.perf_counter()
    assert choice_number(message(" " * 19_990 + "x", "out_of_scope")) is None
    assert time.perf_counter() - started < 0.5
