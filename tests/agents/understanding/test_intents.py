"""Intents, one by one, in both languages, with a confidence that says how specific the words were."""

from __future__ import annotations

import pytest

from agents.understanding.intents import CLEAR
from agents.understanding.port import Context
from agents.understanding.rules import RuleUnderstanding
from tests.agents.understanding.reader import intents, read

ONE_INTENT = {
    "refund": [
        "我要退款",
        "帮我退一下这个",
        "能退款吗",
        "把这件退了",
        "退1001",
        "退\u200b款",
        "I want a refund",
        "please refund order OD100001",
        "I'd like my money back",
    ],
    "refund_amount": ["能退多少钱", "退款金额不对", "how much will be refunded", "why is my refund only 20"],
    "return": ["想退货", "我要寄回去", "can I return this dress", "send it back", "I want to return it"],
    "return_status": ["退货进度", "我退回去的鞋子你们收到了吗", "has my return arrived", "return status please"],
    "exchange": ["我要换货", "换个大一号的", "exchange it for a bigger size", "send me a replacement"],
    "cancel": ["取消订单", "帮我取消1001这个订单", "cancel my order", "cancel purchase 1001"],
    "change_order": ["改一下订单", "add an item to my order", "I want to modify my order"],
    "change_phone": ["换手机号", "收货电话写错了", "change my phone number"],
    "invoice": ["我要开发票", "I need an invoice", "send me the receipt"],
    "points": ["查积分", "how many points do I have"],
    "coupon_price": ["优惠券怎么用", "能便宜点吗", "my coupon doesn't work"],
    "payment": ["付款失败", "支付不了", "my payment failed", "which payment methods do you accept"],
    "account": ["忘记密码了", "注销账号", "reset my password", "how do I create an account"],
    "hurry_up": ["催一下发货", "快点给我发货", "please hurry up"],
    "product_question": ["这个有现货吗", "什么材质的", "is it in stock", "is the phone waterproof"],
    "refund_status": [
        "蓝裙子退了没",
        "退款到账了吗",
        "退款进度",
        "我的退款什么时候到",
        "还没收到退款",
        "怎么还没退",
        "钱退了吗",
        "多久能退",
        "has my refund arrived",
        "when will I get my refund",
        "refund status please",
        "I'm still waiting for my refund",
        "I haven't received my refund",
    ],
    "logistics": [
        "查一下物流",
        "订单1001什么时候到",
        "我的快递到哪了",
        "发货了吗",
        "包裹还没到",
        "where is my order",
        "has it shipped",
        "track my package",
        "when will my order arrive",
    ],
    "change_address": [
        "我要改地址",
        "收货地址填错了",
        "地址改成A路1号",
        "换一下收货人",
        "I need to change my address",
        "the shipping address is wrong",
        "deliver it to a different address",
    ],
    "human": [
        "转人工",
        "我要真人客服",
        "找你们经理",
        "换个客服",
        "I want to talk to a human",
        "connect me to an agent",
        "real person please",
        "speak with customer service",
    ],
    "complaint": ["我要投诉", "我要给差评", "你们是骗子", "I want to complain", "this is unacceptable"],
    "stop": [
        "算了",
        "停",
        "不要退款了",
        "不退了",
        "取消退款",
        "别退了",
        "不用了谢谢",
        "never mind",
        "don't refund",
        "I don't want a refund",
        "cancel the refund",
        "stop",
    ],
    "confirm": [
        "是",
        "是的",
        "好的",
        "对",
        "确认",
        "可以",
        "没问题",
        "确认退款",
        "yes",
        "Yes please",
        "ok",
        "go ahead",
        "👍",
    ],
    "deny": ["不", "不是", "不对", "不要", "no", "nope", "that's wrong", "No thanks"],
    "greeting": ["你好", "您好", "在吗", "hello", "Hi there", "good morning"],
    "thanks": ["谢谢", "感谢", "thanks", "thank you so much"],
    "inform": ["1001", "1", "质量有问题", "50元", "13800000000", "it is OD100001"],
    "out_of_scope": [
        "今天天气怎么样",
        "退款政策是什么",
        "what is your refund policy",
        "呃呃呃",
        "blah blah",
    ],
}


@pytest.mark.parametrize(("intent", "text"), [(intent, text) for intent, texts in ONE_INTENT.items() for text in texts])
def test_one_intent_is_read(intent: str, text: str) -> None:
    """A plain message of either language has its one intent (R-002-02, R-003-03)."""
    assert [intent] == intents(text)


@pytest.mark.parametrize(
    ("wish", "question"),
    [("退款", "退款了吗"), ("我要退裙子", "裙子退了没"), ("refund it", "is it refunded? where is my refund")],
)
def test_a_return_is_told_from_a_question_about_it(wish: str, question: str) -> None:
    """The documents' main example: a request to return, and the question how the return stands (R-002-03)."""
    assert ("refund", "refund_status") == (intents(wish)[0], intents(question)[-1])


@pytest.mark.parametrize("text", ["要不要退款", "为什么不给我退款", "能不能退", "不是要退出"])
def test_a_negation_of_something_else_does_not_stop(text: str) -> None:
    """The word 不 in a question, or about the shop, is no wish to stop."""
    assert "stop" not in intents(text)


@pytest.mark.parametrize("text", ["退出", "我退休了", "退伍军人"])
def test_other_words_with_the_same_character_are_no_refund(text: str) -> None:
    """The word 退 inside other words asks for no refund, and is no word of returning (R-000-18)."""
    assert "refund" not in intents(text)
    assert not read(text).return_words


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("我要退货", True),
        ("蓝裙子退了没", True),
        ("money back", True),
        ("I'd like to return it", True),
        ("send it back", True),
        ("查物流", False),
        ("yes", False),
    ],
)
def test_words_of_returning_are_checked(text: str, used: bool) -> None:  # noqa: FBT001 a table's column
    """Every reading says whether the customer used return words, whatever the intent (R-000-18)."""
    assert used is read(text).return_words


def by_rules(text: str) -> float:
    """The confidence that the words alone give."""
    return RuleUnderstanding().read(text, Context()).wishes[0].confidence


def test_confidence_follows_how_specific_the_words_are() -> None:
    """Words that mean one thing are surer than usual ones, and those than hints (R-000-07, R-000-17)."""
    strong, usual, hint = (by_rules(text) for text in ("我要退款", "退我", "那个裙子退"))

    assert strong > usual >= CLEAR > hint > 0.5


def test_no_reading_is_certain() -> None:
    """Neither rules nor model claim to be certain: the scale ends below 1."""
    assert 0.99 >= max(read(text).wishes[0].confidence for texts in ONE_INTENT.values() for text in texts)


@pytest.mark.parametrize(
    ("text", "confidence"), [("", 0.0), ("😭", 0.0), ("\u200b\u200b", 0.0), ("   ", 0.0), ("？？", 0.0), ("嗷呜", 0.3)]
)
def test_it_abstains_where_no_word_is_known(text: str, confidence: float) -> None:
    """Nothing readable is out of scope at 0, unknown words at 0.3: planning asks, or a person helps (R-002-04)."""
    wish = read(text).wishes[0]

    assert ("out_of_scope", confidence) == (wish.intent, wish.confidence)


@pytest.mark.parametrize("text", ["Don't ship order 1001, cancel it", "耳机别发货了，订单1001\n取消吧。"])
def test_an_order_is_cancelled_and_not_what_is_under_way(text: str) -> None:
    """A cancellation that names its order is one wish, however the sentence is broken up (R-002-02)."""
    assert ["cancel"] == [wish.intent for wish in read(text).wishes]


def test_a_cancellation_without_an_order_stops_what_is_under_way() -> None:
    """Under an open flow "cancel it" means the flow, also beside its order (F17)."""
    assert "stop" in intents("单号1001，取消吧", flow="refund")


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("收货人改成李雷", "change_address"), ("change recipient to someone else", "change_address"),
        ("I want 20 dollars back", "refund"), ("明天能到吗", "logistics"), ("where is it", "logistics"),
        ("没事了", "thanks"), ("没别的了", "thanks"), ("that's all", "thanks"), ("没问题", "confirm"),
    ],
)  # fmt: skip
def test_everyday_wordings_are_known(text: str, intent: str) -> None:
    """Short sentences that customers write every day (R-002-03)."""
    assert intent == intents(text)[0]
