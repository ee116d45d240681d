"""Wishes that are denied, taken back or under a condition, and orders that are left out: none of them is acted on."""

from __future__ import annotations

import pytest

from agents.understanding.port import Context
from agents.understanding.rules import RuleUnderstanding
from streams.processors.perception import classifier
from tests.agents.understanding.reader import read

Told = list[tuple[str, str | None]]
ALL = RuleUnderstanding(model=classifier())


def told(text: str, flow: str | None = None) -> Told:
    """Intents and orders, by the rules alone."""
    return [(wish.intent, wish.slots.order_id) for wish in read(text, flow=flow).wishes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我不是要退款，我要换货，订单1001", [("exchange", "1001")]),
        ("不是退货是换货，订单1001", [("exchange", "1001")]),
        ("要换货不要退货", [("exchange", None)]),
        ("不要换货，我要退货", [("return", None)]),
        ("不换了，给我退钱", [("refund", None)]),
        ("不用查物流了，直接退1001", [("refund", "1001")]),
        ("地址不用改，手机号改成13800000000", [("change_phone", None)]),
        ("换成36码，地址不变", [("exchange", None)]),
        ("我不是来退货的，是来问积分的", [("points", None)]),
        ("I don't want a refund, I want an exchange for order 1001", [("exchange", "1001")]),
        ("not a refund, just exchange it. order 1001", [("exchange", "1001")]),
        ("I never asked for a refund, where is my order 1001", [("logistics", "1001")]),
        ("Don't cancel order 1001, just change the address", [("change_address", "1001")]),
        ("I do not want to cancel, I want to return it", [("return", None)]),
        ("I'm not here about a refund, I need an invoice for 1001", [("invoice", "1001")]),
        ("谁说我要退1001了？我是要开发票", [("invoice", "1001")]),
        ("与其换货不如直接退款，订单1001", [("refund", "1001")]),
        ("宁可退款也不换货，1001", [("refund", "1001")]),
        ("地址没写错，不用改，我就问1001到哪了", [("logistics", "1001")]),
        ("别让我退货，直接退款1001", [("refund", "1001")]),
        ("No need for an exchange, a refund for 1001 is fine", [("refund", "1001")]),
        ("Forget about the exchange, just refund 1001", [("refund", "1001")]),
        ("Don't send me an invoice, send me my money back for 1001", [("refund", "1001")]),
        ("I'd rather have my money back than a replacement for order 1001", [("refund", "1001")]),
    ],
)
def test_a_denied_wish_beside_another_is_none(text: str, expected: Told) -> None:
    """Who says what they do not want, and then what they want, wants the second alone (promise 7, F01)."""
    assert expected == told(text)


@pytest.mark.parametrize(
    "text",
    [
        "我没说要取消订单", "我没让你们取消订单啊", "没有要退的", "我不打算退货", "I'm not going to return it",
        "I don't want to cancel", "I did not ask for a refund", "please don't cancel my order",
        "我什么时候说过要取消1001？", "我哪里说要退款了？", "我再想想，1001先不取消了", "只要今天发货我就不取消1001",
        "取消换货1001", "不想退了，能撤销1001的退款申请吗", "1001的退款我不要了", "我要退1001，现在不退了",
        "我要退1001，算了", "本来想退1001，现在不退了", "卖家让我申请退款1001，我不同意",
        "Nobody asked you to cancel 1001", "I have no intention of returning 1001", "I decided against returning 1001",
        "I won't be returning 1001 after all", "Please undo the cancellation of 1001", "cancel the exchange for 1001",
        "Please ignore my return request for 1001", "I was going to cancel 1001 but changed my mind",
        "I was going to return 1001 but I'll keep it", "There's no need to refund 1001",
        "cancel my refund request for 1001", "取消1001，等等，先别取消", "cancel 1001... wait, no, don't",
    ],
)  # fmt: skip
def test_a_denied_wish_alone_is_a_stop(text: str) -> None:
    """Nothing is begun; what is under way for it ends."""
    assert ["stop"] == [intent for intent, _ in told(text)]


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("why don't you refund me", "refund"),
        ("why won't you refund order 1001", "refund"),
        ("you did not refund me yet", "refund_status"),
        ("I did not get my refund", "refund_status"),
        ("我没有收到退款", "refund_status"),
        ("可以不退货只退款吗", "return"),
        ("不能退吗？", "refund"),
        ("是不是可以退？", "refund"),
        ("我不想要了，退掉吧", "refund"),
        ("特别想退款", "refund"),
        ("没用过，想退款", "refund"),
        ("it does not work, I want to return it", "return"),
        ("this isn't what I ordered, please exchange it", "exchange"),
        ("I can't wait any longer, cancel my order", "cancel"),
        ("不等了，取消订单", "cancel"),
        ("别退到银行卡，退到微信吧", "refund"),
        ("the seller refused to refund 1001", "refund"),
        ("you won't refund 1001", "refund"),
        ("don't forget my refund for 1001", "refund"),
        ("refund 1001. no need for a return label", "refund"),
        ("我要退款1001，不要退货", "refund"),
        ("我要退1001，你们就是不退", "refund"),
        ("退1001的裤子，别退衣服", "refund"),
        ("客服只退一半，我要退款1001，我不同意", "refund"),
    ],
)
def test_a_no_about_something_else_denies_nothing(text: str, intent: str) -> None:
    """A question, a complaint or another verb before a wish leaves it a wish."""
    assert intent in [found for found, _ in told(text)]


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("Return 1001 but not 1002", ["1001"]),
        ("return 1001 instead of 1002", ["1001"]),
        ("refund 1001 and 1002 but not 1003", ["1001", "1002"]),
        ("refund everything except 1001", [None]),
        ("除了1001，其他都退款", [None]),
        ("1001除外，其他都退款", [None]),
        ("除了1001还有1002也要退款", ["1001", "1002"]),
        ("退款1001而不是1002", ["1001"]),
        ("1001和1002退，1003不退", ["1001", "1002"]),
        ("1001退款，1002别退", ["1001"]),
        ("只退1001，1002不要动", ["1001"]),
        ("别取消1001，取消1002", ["1002"]),
        ("取消1001，别取消1002", ["1001"]),
        ("Cancel 1001, don't cancel 1002", ["1001"]),
        ("Cancel 1001, keep 1002", ["1001"]),
        ("cancel 1001 and 1002, leave 1003 alone", ["1001", "1002"]),
        ("return 1002. Don't touch 1001.", ["1002"]),
        ("Refund 1002; 1001 I'd like to keep", ["1002"]),
        ("1001 is fine, 1002 is broken, refund it", ["1002"]),
        ("1001我留着，1002退款", ["1002"]),
        ("1001不用管了，1002麻烦退一下", ["1002"]),
        ("1001没问题，1002有问题要退款", ["1002"]),
        ("1001已经退过了，这次退款1002", ["1002"]),
        ("退款1001和1002，1002不退了", ["1001"]),
        ("三个订单除了1003都退款，1001 1002 1003", ["1001", "1002"]),
        ("keep order 1001 but change the address", ["1001"]),
    ],
)
def test_an_order_that_is_left_out_is_not_acted_on(text: str, orders: list[str | None]) -> None:
    """Only the orders that the customer means are in a wish (F01, F03)."""
    found = told(text)
    assert 1 == len({intent for intent, _ in found})
    assert orders == [order for _, order in found]


@pytest.mark.parametrize(
    "text", ["退款1001，不对1002", "退款1001，说错了，是1002", "refund 1001 sorry 1002", "refund 1001, I mean 1002"]
)
def test_a_number_that_is_put_right_replaces_the_one_before(text: str) -> None:
    """Of a number and its correction the customer means the second (B19)."""
    assert [("refund", "1002")] == told(text)


@pytest.mark.parametrize("text", ["不是1001，是1002", "no not 1001, 1002", "I meant 1002 not 1001"])
def test_a_corrected_number_is_the_right_one(text: str) -> None:
    """The number that is said not to be meant fills nothing (B19)."""
    assert [("inform", "1002")] == told(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("refund 1001, no wait, exchange it", [("exchange", "1001")]),
        ("退款1001，哦不，换货", [("exchange", "1001")]),
        ("退1001，算了还是换吧", [("exchange", "1001")]),
        ("cancel 1001, actually no, change its address", [("change_address", "1001")]),
        ("帮我取消1001，啊不，是退货", [("return", "1001")]),
        ("取消1001，打错了，查1001物流", [("logistics", "1001")]),
        ("客服说可以退款，我没同意，我要换货1001", [("exchange", "1001")]),
        ("本来打算换货，现在改主意了直接退款1001", [("refund", "1001")]),
        ("I originally wanted a refund for 1001, but now I'd like an exchange", [("exchange", "1001")]),
        ("I wanted to return 1001 and also change the address", [("return", "1001"), ("change_address", "1001")]),
        ("退款1001，还要换货", [("refund", "1001"), ("exchange", "1001")]),
        ("我要退款，还是换货好？", [("refund", None), ("exchange", None)]),
    ],
)
def test_a_wish_that_is_taken_back_is_none(text: str, expected: Told) -> None:
    """Said later and instead, a wish counts alone; said beside or asked, both do."""
    assert expected == told(text)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("I want a refund if it can't be exchanged", "refund"),
        ("如果不能换货就退款1001", "refund"),
        ("我要退款如果不能换货的话", "refund"),
        ("tell me if my refund arrived", "refund_status"),
    ],
)
def test_a_condition_is_no_wish(text: str, intent: str) -> None:
    """What stands behind "if" is wished for only where nothing else is."""
    assert [intent] == [found for found, _ in told(text)]


@pytest.mark.parametrize(
    "text",
    [
        "为什么取消了我的订单",
        "谁让你们取消我订单的",
        "why was my order 1001 cancelled",
        "我的订单被自动取消了",
        "你们擅自给我退款了1001",
        "没经过我同意就取消了1001",
        "谁让你们改我地址的",
        "你们为什么把1001给我退了？",
        "1001怎么显示已取消，我没取消啊",
        "You cancelled my order 1001 without asking me",
        "Who told you to change my address on order 1001?",
        "Why did you refund 1001?",
        "It wasn't me who cancelled 1001",
    ],
)
def test_what_the_shop_did_by_itself_is_a_complaint(text: str) -> None:
    """Asking why something was done asks nobody to do it (R-003-14: a person looks at it)."""
    assert ["complaint"] == [intent for intent, _ in told(text)]


@pytest.mark.parametrize("text", ["怎么取消订单", "为什么取消不了订单1001", "why can't I cancel my order"])
def test_asking_how_to_cancel_is_a_wish(text: str) -> None:
    """Who can't cancel wants to."""
    assert ["cancel"] == [intent for intent, _ in told(text)]


def test_a_denial_does_not_stop_what_else_is_under_way() -> None:
    """In an address change "I did not ask for a refund" ends nothing; "don't change it" ends that."""
    assert "stop" not in [intent for intent, _ in told("我没说要退款", flow="change_address")]
    assert [("stop", None)] == told("我没说要改地址", flow="change_address")
    assert [("stop", None)] == told("我没说要退款", flow="refund")


@pytest.mark.parametrize(
    "text", ["我不是要退款，我要换货", "I do not want to cancel, I want to return it", "我没说要取消订单"]
)
def test_the_classifier_brings_no_denied_wish_back(text: str) -> None:
    """A sentence that looks like a wish to the model is still none where its words deny it (promise 7)."""
    found = {wish.intent for wish in ALL.read(text, Context()).wishes}
    assert not found & {"refund", "cancel"}
