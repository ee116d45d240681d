"""What counts as a reference in the evaluation, on a dialogue made up here."""

from __future__ import annotations

from typing import Any

from bench.evals.crosswoz import Item, _lines, words
from bench.evals.references import play, share

FOUND = "石桥旅馆"


def goal(name: str = "", *, phone: bool = False, near: bool = False) -> list[list[Any]]:
    """The customer's annotated goal so far: a hotel, its phone, what is near it."""
    return [[1, "酒店", "名称", name, True], [1, "酒店", "电话", "", phone], [1, "酒店", "周边餐馆", [], near]]


def usr(text: str, state: list[list[Any]], *acts: list[str]) -> dict[str, Any]:
    """A customer's message with its annotation."""
    return {"role": "usr", "content": text, "dialog_act": list(acts), "user_state": state}


def told(text: str, *acts: list[str]) -> dict[str, Any]:
    """An answer with its annotation."""
    return {"role": "sys", "content": text, "dialog_act": list(acts)}


DIALOGUE = [
    usr("推荐一家酒店", goal(), ["Request", "酒店", "名称", ""]),
    told(f"{FOUND}不错", ["Inform", "酒店", "名称", FOUND]),
    usr("它周边有什么餐馆", goal(FOUND, near=True), ["Request", "酒店", "周边餐馆", ""]),
    told(
        "有南湖饭庄和北湖饭庄", ["Inform", "酒店", "周边餐馆", "南湖饭庄"], ["Inform", "酒店", "周边餐馆", "北湖饭庄"]
    ),
    usr("酒店电话多少", goal(FOUND, phone=True, near=True), ["Request", "酒店", "电话", ""]),
    told("电话是010-00000000", ["Inform", "酒店", "电话", "010-00000000"]),
    usr(f"{FOUND}还有房吗", goal(FOUND, phone=True, near=True), ["Inform", "酒店", "名称", FOUND]),
]


def test_a_message_that_names_nothing_is_an_item() -> None:
    """Gold is the name of the goal that is newly asked about; who asks for a name or gives one refers to nothing."""
    items = [line.item for line in _lines("d", DIALOGUE) if line.said.who == "customer"]

    assert [None, Item(FOUND, "酒店", 1), Item(FOUND, "酒店", 2), None] == items


def test_the_resolver_is_not_led_away_by_what_is_near() -> None:
    """The baseline takes the restaurant that was named last; we do not (R-002-11)."""
    outcomes = [one for one in play(list(_lines("d", DIALOGUE)), words()) if one.item is not None]

    assert (100.0, [True, False]) == (share(outcomes), [one.baseline for one in outcomes])
