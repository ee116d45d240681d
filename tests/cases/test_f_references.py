"""Cases F, references: from a customer's words through the whole table to the answer."""

from __future__ import annotations

import pytest

from tests.promises.stand import Stand, whole


@pytest.mark.parametrize(
    ("sender", "first", "then", "heard", "orders"),
    [
        ("c-zh-many", "查1020的物流", "那个蓝色杯子到哪了", "logistics.ask_order_id", ["1020"]),
        ("c-zh-many", "查1020的物流", "它现在到哪了", "logistics.status", ["1020", "1020"]),
        ("c-en-many", "where is order OD100020?", "where is it now?", "logistics.status", ["OD100020", "OD100020"]),
        (
            "c-en-many",
            "where is order OD100020?",
            "has that blue kettle shipped?",
            "logistics.ask_order_id",
            ["OD100020"],
        ),
    ],
)
def test_f03_an_order_is_used_again_only_for_itself(
    sender: str, first: str, then: str, heard: str, orders: list[str]
) -> None:
    """What points to the order gets it; another thing is asked for, and no call is made for it (case F03)."""

    async def body(stand: Stand) -> None:
        person = await stand.person(sender)
        for text in (first, then):
            await person.say(text)

        assert ["logistics.status", heard] == person.heard
        assert orders == [call["args"]["order_id"] for call in person.values("tools.calls")]

    whole(body)


def test_the_second_of_a_list_is_the_second_order() -> None:
    """Numbers in words mean the list that was shown last (R-002-08)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-many")
        for text in ("查物流", "1", "第二个"):
            await person.say(text)

        assert ["logistics.ask_order_id", "common.choose_order", "logistics.status"] == person.heard
        assert "1021" == person.values("tools.calls")[-1]["args"]["order_id"]

    whole(body)
