"""What the customer talks of: kind of thing, colour, size, item number, invoice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.understanding.reader import read, slots, values


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("那双藏青色的跑鞋", {"category": "shoes", "colour": "blue"}),
        ("玫瑰金的手表", {"category": "watch", "colour": "gold"}),
        ("the navy blue running shoes, size 10", {"category": "shoes", "colour": "blue", "size": "10"}),
        ("the large one, the black jacket", {"category": "coat", "colour": "black", "size": "L"}),
        ("空气炸锅坏了", {"category": "rice_cooker"}),
        ("两台 robot vacuums", {"category": "vacuum"}),
        ("外套换大号", {"category": "coat", "size": "L"}),
        ("175/92A的衬衫", {"category": "shirt", "size": "175/92A"}),
        ("item number 9844888101", {"sku_id": "9844888101"}),
        ("the item with ID 1656367028", {"sku_id": "1656367028"}),
        ("货号是AB-120", {"sku_id": "AB-120"}),
    ],
)
def test_the_item_is_read(text: str, item: dict[str, Any]) -> None:
    """Category, colour, size and item number of a general shop's goods, in both languages (R-002-03)."""
    assert item == slots(text)


def test_a_phone_number_is_no_phone() -> None:
    """手机 before a number says how to reach the customer; a broken one is a thing."""
    assert "category" not in slots("我的手机是幺三八零零零零零零零零对吗")
    assert "phone" == slots("黑色手机坏了")["category"]


@pytest.mark.parametrize(("text", "number"), [("invoice #00108", "00108"), ("invocie #00108", "00108"),
                                              ("发票号12345678", "12345678")])  # fmt: skip
def test_an_invoice_is_no_order(text: str, number: str) -> None:
    """The number of an invoice, also of a misspelled one, is not an order's (case F07)."""
    assert [number] == values(text, "invoice_id")
    assert read(text).wishes[0].slots.order_id is None
