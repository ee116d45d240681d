"""References: what a message points to, by what its window shows; and when it is asked instead of guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agents.understanding.embedded import embedded
from agents.understanding.port import Context, Slots
from agents.understanding.references import CHOICE, Resolved, resolve
from agents.understanding.rules import RuleUnderstanding
from memory.turns import Thing, Turn
from memory.windows import choose
from tests.agents.understanding.past import NO_THING, THINGS
from tests.memory.talk import order, turn

READER = RuleUnderstanding()
SHOES = [turn(1, "查1001", "订单1001：已签收", order("1001", category="shoes"))]
ORDERS = (order("1001", number=1, category="cup", colour="blue"),
          order("1002", number=2, category="coat", colour="red"), order("1003", number=3, category="lamp"))  # fmt: skip
LIST = [turn(1, "我的订单", "请回复序号选择：", *ORDERS)]
FIRST, SECOND = (order("OD100001", category="cup", colour="white"), order("OD100002", category="coat", colour="blue"))
TWO = [turn(1, "where is OD100001?", "It was delivered", FIRST), turn(2, "and OD100002?", "It was shipped", SECOND)]


def resolved(turns: Sequence[Turn], text: str, *extra: Thing) -> Resolved:
    """The message read and resolved after these turns."""
    reading = READER.read(text, Context())
    before = turns[-1].intent if turns else ""
    return resolve(reading, choose(turns, text, new_intent=reading.wishes[0].intent != before), extra)


def order_of(found: Resolved) -> str | None:
    """The order of the first wish."""
    return found.reading.wishes[0].slots.order_id


def test_an_order_of_another_thing_is_not_used() -> None:
    """After "查1001", which is shoes, "那个蓝色杯子到哪了" is unknown, so that it is asked for (case F03)."""
    found = resolved(SHOES, "那个蓝色杯子到哪了")

    assert ("unknown", None) == (found.status, order_of(found))
    assert "category cup, colour blue" in found.why


def test_an_order_of_which_nothing_is_known_is_not_used_for_a_thing() -> None:
    """What 1001 holds is not known here, so it may not be the cup (case F03)."""
    assert "unknown" == resolved([turn(1, "查1001", "订单1001：已签收", order("1001"))], "那个蓝色杯子到哪了").status


@pytest.mark.parametrize(
    ("turns", "text", "expected"),
    [
        (SHOES, "那双鞋到哪了", "1001"), (SHOES, "它到哪了", "1001"), (SHOES, "我要退那个", "1001"),
        (TWO, "where is it now?", "OD100002"), (TWO, "I want a refund for the white one", "OD100001"),
        (TWO, "refund that one", "OD100002"), (TWO, "refund the cup please", "OD100001"),
        (LIST, "我要退那个蓝色的", "1001"), (LIST, "第二个到哪了", "1002"), (LIST, "最后一个我要退款", "1003"),
        (LIST, "refund the first one", "1001"), (LIST, "倒数第二个到哪了", "1002"),
        (TWO, "has the former arrived?", None),
    ],
)  # fmt: skip
def test_words_that_point_are_resolved(turns: list[Turn], text: str, expected: str | None) -> None:
    """Deictic words, pronouns, descriptions and numbers of a list (R-002-08, R-002-11)."""
    assert expected == order_of(resolved(turns, text))


def test_a_resolved_reference_carries_its_evidence() -> None:
    """The words that pointed, by their span in the raw text, and the message that showed the thing (R-002-48)."""
    found = resolved(SHOES, "请问那双鞋到哪了")
    reference = found.reading.evidence[-1]

    assert ("reference", "1001 (deictic)", "那双") == (
        reference.field, reference.value, "请问那双鞋到哪了"[reference.start : reference.end])  # fmt: skip
    assert ("filled", "a1") == (found.status, found.message_id)


@pytest.mark.parametrize("text", ["那个到哪了", "我要退这个"])
def test_several_that_fit_alike_are_asked_for(text: str) -> None:
    """Three orders were just offered: none of them is guessed (R-002-08)."""
    found = resolved(LIST, text)

    assert ("ambiguous", None, {"1001", "1002", "1003"}) == (found.status, order_of(found), set(found.options))


def test_what_was_talked_of_is_one_of_the_list_that_offers_it() -> None:
    """Order 1001 was the subject, then a list shows it beside 1002: "that one" may be either (R-002-08)."""
    shown = turn(2, "我的订单", "请选择", order("1001", number=1), order("1002", number=2))

    assert "ambiguous" == resolved([*SHOES, shown], "那个到哪了").status


def test_what_the_customer_names_is_never_replaced() -> None:
    """An order number in the message stands, whatever it points to besides (case F03)."""
    found = resolved(SHOES, "那双鞋，就是1002，到哪了")

    assert ("named", "1002") == (found.status, order_of(found))


@pytest.mark.parametrize("text", ["and the other one?", "what about the other?"])
def test_ellipsis_asks_of_the_other_what_was_asked_before(text: str) -> None:
    """An "and the other?" takes over the intent, and means the one that was not spoken of last."""
    found = resolved(TWO, text)

    assert ("logistics", "OD100001") == (found.reading.wishes[0].intent, order_of(found))


def test_there_is_no_other_of_one() -> None:
    """One order in sight: "the other" is unknown."""
    assert "unknown" == resolved(SHOES, "那另一个呢").status


def test_a_bare_question_means_the_only_order_in_sight() -> None:
    """A question that changes nothing is answered for the one order that was just talked of, and of no other."""
    assert "1001" == order_of(resolved(SHOES, "到哪了？"))
    assert None is order_of(resolved(TWO, "where is my order?"))


@pytest.mark.parametrize("text", ["我要退款", "I want a refund", "那请问怎么退款", "I think that is wrong", "谢谢"])
def test_without_a_word_that_points_nothing_is_carried_over(text: str) -> None:
    """A write never takes an order that the message does not point to (case F03)."""
    found = resolved(SHOES, text)

    assert ("none", None) == (found.status, order_of(found))
    assert found.reading == READER.read(text, Context())


def test_a_number_of_the_flows_own_choices_is_no_order() -> None:
    """The list that was shown last decides what "the second" is; planning knows its choices."""
    choices = [Thing(CHOICE, "退款", {}, "offered", 1), Thing(CHOICE, "查物流", {}, "offered", 2)]
    found = resolved([*LIST, turn(2, "1", "请问要办理哪一项？", *choices)], "第二个到哪了")

    assert ("none", None) == (found.status, order_of(found))


def test_a_number_beyond_the_list_is_unknown() -> None:
    """The list has three entries."""
    assert "unknown" == resolved(LIST, "第五个到哪了").status


def test_last_time_is_not_now() -> None:
    """A "上次那个" does not mean what is talked of at the moment (R-002-10)."""
    assert "unknown" == resolved(SHOES, "上次那个到哪了").status
    assert "900" == order_of(resolved(SHOES, "上次那个到哪了", order("900")))
    assert "ambiguous" == resolved(SHOES, "上次那个到哪了", order("900"), order("901")).status


@pytest.mark.parametrize("text", THINGS)
def test_the_one_of_last_time_is_what_is_known_of_the_past(text: str) -> None:
    """Chinese and English mean the one thing that is known of the past, and ask between two (R-002-10, case F03)."""
    found = resolved([], text, order("900"))

    assert ("filled", "900", "inform") == (found.status, order_of(found), found.reading.wishes[0].intent)
    assert "ambiguous" == resolved([], text, order("900"), order("901")).status


@pytest.mark.parametrize("text", ["上次问的那个到哪了", "where is the one I asked about last time?"])
def test_where_the_one_of_last_time_is(text: str) -> None:
    """A question beside such words is the wish, and it is about that thing (R-002-10)."""
    found = resolved([], text, order("900"))

    assert ("logistics", "900") == (found.reading.wishes[0].intent, order_of(found))


@pytest.mark.parametrize("text", NO_THING)
def test_of_last_time_something_else_is_said(text: str) -> None:
    """A message that only speaks of earlier, and of no thing, fills none in and stays what it is (case F03)."""
    reading = embedded().read(text, Context())
    found = resolve(reading, choose([], text, new_intent=True), [order("900")])

    assert (None, reading.wishes[0].intent) == (order_of(found), found.reading.wishes[0].intent)


def test_a_greeting_is_not_asked_again() -> None:
    """After "hello", a question about the one of last time is no greeting; after one for a parcel it is such a one."""
    text, known = "has the one I asked about last time arrived?", order("900")
    for before, intent in (("greeting", "inform"), ("logistics", "logistics")):
        found = resolved([replace(turn(1, "hello", "hello"), intent=before)], text, known)
        assert (intent, "900") == (found.reading.wishes[0].intent, order_of(found))


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("那个蓝色的我要退款，另外红色的到哪了", ["1001", "1002"]),
        ("那个绿色的我要退款，另外红色的到哪了", [None, "1002"]),
        ("那个红色的我要退款，另外绿色的到哪了", ["1002", None]), ("最后一个我要退款，顺便查下物流", ["1003", "1003"]),
    ],
)  # fmt: skip
def test_each_wish_gets_the_thing_that_it_describes(text: str, orders: list[str | None]) -> None:
    """In "refund the blue one; where is the red one?" there are two; a wish without a description shares (case F01)."""
    assert orders == [wish.slots.order_id for wish in resolved(LIST, text).reading.wishes]


def test_two_numbers_of_a_list_are_asked_for() -> None:
    """Refunding the second and the third is not refunding the second."""
    assert ("ambiguous", None) == ((found := resolved(LIST, "第二个和第三个都退款")).status, order_of(found))


def test_what_a_flow_knows_of_an_order_tells_it_apart() -> None:
    """Values from elsewhere count for what the window shows; nothing else is added to it."""
    bare = [turn(1, "查1001", "订单1001：已签收", order("1001"))]

    assert "1001" == order_of(resolved(bare, "那个蓝色杯子到哪了", order("1001", category="cup", colour="blue")))
    assert None is order_of(resolved(bare, "那个蓝色杯子到哪了", order("900", category="cup", colour="blue")))


def test_a_filled_wish_takes_what_is_known_and_keeps_what_was_said() -> None:
    """Category and colour come with the order (R-002-03)."""
    assert (
        Slots(order_id="1002", category="coat", colour="red") == resolved(LIST, "第二个到哪了").reading.wishes[0].slots
    )
