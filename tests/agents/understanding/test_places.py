"""Addresses and phones."""

from __future__ import annotations

import pytest

from agents.understanding.port import Expects
from tests.agents.understanding.reader import filled, read, slots


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("地址改成A路1号", "A路1号"),
        ("地址改成B路2号", "B路2号"),
        ("订单1006帮我改一下地址，改成上海市浦东新区世纪大道100号", "上海市浦东新区世纪大道100号"),
        ("帮我改地址，新地址是浙江省杭州市西湖区文三路1号5栋，电话13800000000", "浙江省杭州市西湖区文三路1号5栋"),
        ("改寄到北京市朝阳区建国路88号吧，谢谢", "北京市朝阳区建国路88号"),
        ("我住广东省深圳市南山区科技园路5号3单元", "广东省深圳市南山区科技园路5号3单元"),
        ("Change my address to 12 Oak Street, Springfield please", "12 Oak Street, Springfield"),
        ("please ship it to 5 Queen Road, Flat 3, and track order OD100002", "5 Queen Road, Flat 3"),
        ("I moved, my new address is 77 Hill Lane, Block 2.", "77 Hill Lane, Block 2"),
    ],
)
def test_an_address_is_read_up_to_its_end(text: str, address: str) -> None:
    """An address ends before the next wish, courtesy or phone, and keeps its commas (R-002-03)."""
    assert address == slots(text)["address"]


@pytest.mark.parametrize("text", ["我要改地址", "帮我改成1001", "change my address", "地址是不是改了", "ship it to me"])
def test_a_wish_without_an_address_has_none(text: str) -> None:
    """Words around an address are not one, nor is an order number."""
    assert "address" not in slots(text)


@pytest.mark.parametrize("text", ["北京市朝阳区建国路88号", "88 Queen Road, Flat 3", "中心村3号"])
def test_asked_for_an_address_the_whole_answer_is_one(text: str) -> None:
    """Where the flow asked for an address, the bare text answers it."""
    wish = read(text, "address", "change_address").wishes[0]

    assert ("inform", text) == (wish.intent, wish.slots.address)


def test_address_and_phone_belong_to_the_change_of_address() -> None:
    """In a compound message address and phone go to the wish that needs them (R-003-02)."""
    first, second = read("我要退1001，手机号13800000000，地址改成A路1号").wishes

    assert {"order_id": "1001"} == filled(first.slots)
    assert {"order_id": "1001", "phone": "13800000000", "address": "A路1号"} == filled(second.slots)


@pytest.mark.parametrize(("text", "phone"), [("我的手机是幺三八零零零零零零零零对吗", "13800000000"),
                                             ("手机号13800000000打不通", "13800000000"),
                                             ("电话138****0000", "138****0000")])  # fmt: skip
def test_a_phone_is_read_spoken_touching_words_or_masked(text: str, phone: str) -> None:
    """A phone may be spoken, touch Chinese words, or be masked because its key is gone (cases F09, F11)."""
    assert phone == slots(text)["phone"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("地址改成A路", "A路"),
        ("我住在朝阳区", "朝阳区"),
        ("地址改成3栋502", "3栋502"),
        ("送到公司前台", "公司前台"),
        ("改到学校门口吧", "学校门口"),
        ("我在北京市海淀区", "北京市海淀区"),
        ("change the address to Queen Road", "Queen Road"),
        ("地址改成北京市朝阳区建国路88号那个电话13800000000", "北京市朝阳区建国路88号"),
    ],
)
def test_a_partial_address_is_kept(text: str, address: str) -> None:
    """A part of an address is read as far as it goes, so that the rest can be asked for (R-002-03)."""
    assert address == slots(text)["address"]


@pytest.mark.parametrize(
    "text", ["换成大号", "改成蓝色", "退到哪里", "change the address to the same as in order #1001"]
)
def test_no_part_of_a_place_is_no_address(text: str) -> None:
    """A size, a colour, a question and another order are no place."""
    assert "address" not in slots(text)


@pytest.mark.parametrize(
    ("text", "address", "order"),
    [
        ("地址改成西湖区文三路100号，订单1001", "西湖区文三路100号", "1001"),
        ("寄到公司，订单1001", "公司", "1001"),
        ("寄到A座1203，订单号1001", "A座1203", "1001"),
        ("ship to 12 Main St, order 1001", "12 Main St", "1001"),
        ("换成42码的 1001", None, "1001"),
        ("换成42码 订单1001", None, "1001"),
        ("能送到吗，订单1001", None, "1001"),
    ],
)
def test_an_order_beside_an_address_is_no_part_of_it(text: str, address: str | None, order: str) -> None:
    """What is sent goes to the place alone, and the order that stands behind it is still the order (F07)."""
    slots = read(text).wishes[0].slots
    assert (address, order) == (slots.address, slots.order_id)


@pytest.mark.parametrize("text", ["不对，是200号", "应该是5楼502室", "改成200号", "200号"])
@pytest.mark.parametrize("expects", ["address", "confirm"])
def test_a_part_of_an_address_is_none(text: str, expects: Expects) -> None:
    """Nothing can be sent to "200号": the whole address is asked for."""
    assert all(wish.slots.address is None for wish in read(text, expects, "change_address").wishes)
