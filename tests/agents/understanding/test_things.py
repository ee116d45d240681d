"""A state as turns: who said what, and what each message shows."""

from __future__ import annotations

from typing import Any

from agents.understanding.references import CHOICE
from agents.understanding.things import described, known, named, turns
from memory.bus import empty


def heard(message_id: str, text: str, at: int, *, recalled: bool = False) -> dict[str, Any]:
    """A customer's message as the state keeps it."""
    return {"message_id": message_id, "text": text, "at": at, "intent": "logistics", "recalled": recalled}


def sent(
    text: str, at: int, reply_to: str | None = None, labels: tuple[str, ...] = (), **params: Any
) -> dict[str, Any]:
    """One of our messages as the state keeps it."""
    choices = [{"number": number, "label": label} for number, label in enumerate(labels, 1)]
    return {"text": text, "queued_at": at, "in_reply_to": reply_to, "params": params, "choices": choices}


def state(messages: list[dict[str, Any]], answers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A conversation with these messages."""
    found: dict[str, Any] = empty("demo/web/u1")
    found["perception"]["messages"] = {one["message_id"]: one for one in messages}
    found["actions"]["messages"] = answers
    return found


def test_an_answer_belongs_to_the_message_that_it_answers() -> None:
    """The customer's clock is behind ours: the order of talk is kept all the same (R-002-08)."""
    talk = state([heard("m2", "好的", 20), heard("m1", "查1001", 10)],
                 {"o1": sent("已签收", 900, "m1", order_id="1001"), "o2": sent("不客气", 901, "m2")})  # fmt: skip

    assert [["m1", "o1"], ["m2", "o2"]] == [[one.message_id for one in turn.said] for turn in turns(talk)]


def test_what_was_taken_back_is_not_there() -> None:
    """A recalled message is no turn, and an answer without a message is left out (case B11)."""
    talk = state([heard("m1", "查1001", 10, recalled=True)], {"o1": sent("订单1001", 11, "m1")})

    assert () == turns(talk)


def test_what_an_edit_replaces_is_no_longer_said() -> None:
    """The version before is not looked at when the new one is read (case B11)."""
    talk = state([heard("m1", "查1001", 10), heard("m2", "查1002", 20)], {})

    assert [["m1"]] == [[one.message_id for one in turn.said] for turn in turns(talk, "m2")]


def test_our_messages_show_orders_and_lists() -> None:
    """The order of a template, numbered orders with what they hold, and choices that are no orders."""
    talk = state([heard("m1", "我的订单", 1)], {
        "o1": sent("请确认", 2, "m1", ("确认退款",), order_id="OD100001", items="white cup x1"),
        "o2": sent("请选择", 3, "m1", ("1002 蓝色外套 x1", "OD100003 Lamp x2")),
    })  # fmt: skip
    things = [thing for one in turns(talk)[0].said for thing in one.things]

    assert [("order", "OD100001", None), (CHOICE, "确认退款", 1), ("order", "1002", 1), ("order", "OD100003", 2)] == [
        (thing.kind, thing.name, thing.number) for thing in things]  # fmt: skip
    values = [dict(thing.values) for thing in things]
    assert [{"category": "cup", "colour": "white"}, {}, {"category": "coat", "colour": "blue"}] == values[:3]


def test_what_customers_say_of_an_order_is_no_fact() -> None:
    """Numbers are read, phones are not, and "my blue cup" does not make order 1001 one (cases F03, F07)."""
    assert [("1001", {})] == [(one.name, dict(one.values)) for one in named("我的蓝色杯子订单1001，电话13800000001")]


def test_of_an_order_with_several_things_nothing_is_certain() -> None:
    """Cup and lamp, both blue."""
    assert {"colour": "blue"} == described("蓝色杯子 x1, 蓝色台灯 x1")


def test_flows_tell_what_the_shop_said_of_their_orders() -> None:
    """The items of the flow under way."""
    talk = state([], {})
    talk["planning"]["flows"] = [{"slots": {"order_id": "1001", "items": "跑鞋 x1"}}, {"slots": {"order_id": "1002"}}]

    assert [("1001", {"category": "shoes"})] == [(one.name, dict(one.values)) for one in known(talk)]
