"""What people say when a question stands: they correct, they forgot, they ask back; and their language stays theirs."""

from __future__ import annotations

import pytest

from agents.understanding.port import Expects
from tests.agents.understanding.reader import filled, intents, read, slots


@pytest.mark.parametrize("text", ["不知道", "忘了", "我忘了订单号", "不记得了", "不知道订单号，列出我的订单",
                                  "找不到单号", "i don't know", "I don't know the order number", "I forgot it",
                                  "no idea", "I don't know it; list my orders"])  # fmt: skip
def test_who_has_no_number_says_no(text: str) -> None:
    """Asked for an order, "I don't know" has the orders listed (R-003-38), or typed out."""
    assert ["deny"] == list(dict.fromkeys(intents(text, "order_id", "refund")))


@pytest.mark.parametrize("text", ["不知道", "忘了", "no idea"])
def test_elsewhere_it_is_no_refusal(text: str) -> None:
    """The same words refuse nothing where no order was asked for."""
    assert "deny" not in intents(text, "confirm", "refund")


@pytest.mark.parametrize("text", ["wait, where is OD100022?", "where's 1022", "有没有优惠？", "你们几点下班呢?",
                                  "can I pay by card?", "为什么要原因？"])  # fmt: skip
def test_a_question_is_no_reason(text: str) -> None:
    """Asked for a reason, who asks back has given none: it must not stand in a refund."""
    assert read(text, "reason", "refund").reason is None


@pytest.mark.parametrize("text", ["为什么是坏的？", "it's broken, ok?"])
def test_a_reason_asked_as_a_question_is_one(text: str) -> None:
    """Words that are a reason stay one, whatever sign is behind them."""
    assert read(text, "reason", "refund").reason


@pytest.mark.parametrize(("text", "fen"), [
    ("改成30", 3_000), ("改为 30.5", 3_050), ("只退30", 3_000), ("换成二十元", 2_000), ("不对，退45", 4_500),
    ("change it to 25", 2_500), ("make it 30", 3_000), ("only 40", 4_000),
])  # fmt: skip
def test_an_amount_is_corrected_at_the_confirmation(text: str, fen: int) -> None:
    """Asked to confirm a refund, "make it 30" names the amount: the old one must not be what a yes then confirms."""
    assert read(text, "confirm", "refund").wishes[0].slots.amount == fen


@pytest.mark.parametrize("text", ["改成30", "change it to 25"])
def test_elsewhere_a_bare_number_is_no_amount(text: str) -> None:
    """A size, a house number: only a refund's confirmation makes it money."""
    assert read(text, "confirm", "change_address").wishes[0].slots.amount is None
    assert read(text).wishes[0].slots.amount is None


@pytest.mark.parametrize("text", ["退30号买的杯子", "退1套杯子", "退2瓶", "退3月买的", "退15天前的", "退2盒",
                                  "退1单", "退5台"])  # fmt: skip
def test_what_is_counted_is_no_money(text: str) -> None:
    """A measure word behind a number: so many things, or a date."""
    assert slots(text).get("amount") is None


@pytest.mark.parametrize(("text", "place"), [
    ("不对，是建国路89号", "建国路89号"), ("错了，应该是建国路89号3单元", "建国路89号3单元"),
    ("no, it's 14 Baker Street, London", "14 Baker Street, London"), ("不是，建国路89号", "建国路89号"),
])  # fmt: skip
def test_an_address_is_corrected_at_the_confirmation(text: str, place: str) -> None:
    """Asked to confirm an address, the right one may follow the no."""
    assert place == read(text, "confirm", "change_address").wishes[0].slots.address


@pytest.mark.parametrize(("text", "reason"), [
    ("退1020，因为坏了，退五十块", "坏了"), ("退1020，因为尺码不对，给我退30", "尺码不对"),
    ("原因改成尺码不合适", "尺码不合适"), ('退1020，"坏了"', "坏了"), ("refund OD100017 broken 150 yuan", "broken"),
])  # fmt: skip
def test_a_reason_ends_where_the_wish_goes_on(text: str, reason: str) -> None:
    """The amount beside it is no part of why."""
    assert reason == read(text).reason


@pytest.mark.parametrize(("text", "expects"), [
    ("ok", "confirm"), ("OK", "confirm"), ("no", "confirm"), ("yes", "confirm"), ("bye", None), ("thx", None),
])  # fmt: skip
def test_a_loan_word_is_no_change_of_language(text: str, expects: Expects | None) -> None:
    """F13: a Chinese customer's "ok" is answered in Chinese, an English one's in English, a stranger's in English."""
    assert [read(text, expects, language=known).language for known in ("zh", "en", None)] == ["zh", "en", "en"]


@pytest.mark.parametrize(("text", "intent", "order"), [
    ("查1022", "logistics", "1022"), ("查一下OD100022", "logistics", "OD100022"),
    ("where is OD100022?", "logistics", "OD100022"),
    ("不退1001了", "stop", "1001"), ("别退1001", "stop", "1001"), ("OD100001不退了", "stop", "OD100001"),
    ("查1001的退款到账没", "refund_status", "1001"),
])  # fmt: skip
def test_a_number_goes_with_its_verb(text: str, intent: str, order: str) -> None:
    """A verb and a number are a whole wish."""
    wish = read(text).wishes[0]

    assert (intent, {"order_id": order}) == (wish.intent, filled(wish.slots))


@pytest.mark.parametrize(("text", "wanted"), [
    ("track OD100022 and refund OD100021", [("logistics", "OD100022"), ("refund", "OD100021")]),
    ("1022到哪了，还有1020能退吗", [("logistics", "1022"), ("refund", "1020")]),
    ("when will I get the money for OD100020?", [("refund_status", "OD100020")]),
    ("1020多少天能退款", [("refund_status", "1020")]),
])  # fmt: skip
def test_two_verbs_are_two_wishes(text: str, wanted: list[tuple[str, str]]) -> None:
    """F01: a word of the second wish does not change what the first one asks."""
    assert wanted == [(wish.intent, wish.slots.order_id) for wish in read(text).wishes]


def test_a_stop_keeps_its_order_beside_another_wish() -> None:
    """F01: in "not 1001, refund 1002" each order belongs to its own wish."""
    found = [(wish.intent, wish.slots.order_id) for wish in read("不要退1001，退1002", "confirm", "refund").wishes]

    assert [("stop", "1001"), ("refund", "1002")] == found


def test_an_email_is_no_part_of_an_address() -> None:
    """What is private is cut off with the word that names it."""
    wish = read("改成上海市浦东新区世纪大道100号，邮箱abc@example.com", "address", "change_address").wishes[0]

    assert "上海市浦东新区世纪大道100号" == wish.slots.address
