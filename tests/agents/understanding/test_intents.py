"""Intents, one by one, in both languages, with a confidence that says how specific the words were."""

from __future__ import annotations

import pytest

from agents.understanding.intents import CLEAR
from tests.agents.understanding.reader import intents, read

ONE_INTENT = {
    "refund": [
        "我要退款",
        "帮我退一下这个",
        "想退货",
        "能退款吗",
        "把这件退了",
        "退1001",
        "退\u200b款",
        "I want a refund",
        "please refund order OD100001",
        "can I return this dress",
        "I'd like my money back",
        "send it back",
    ],
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
        "取消订单",
        "我要开发票",
        "换货",
        "今天天气怎么样",
        "退款政策是什么",
        "cancel my order",
        "what is your refund policy",
        "reset my password",
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


def test_confidence_follows_how_specific_the_words_are() -> None:
    """Words that mean one thing are surer than usual ones, and those than hints (R-000-07, R-000-17)."""
    strong, usual, hint = (read(text).wishes[0].confidence for text in ("我要退款", "退我", "那个裙子退"))

    assert strong > usual >= CLEAR > hint > 0.5


def test_no_reading_is_certain() -> None:
    """Rules never claim to be certain: the scale ends below 1."""
    assert 0.97 >= max(read(text).wishes[0].confidence for texts in ONE_INTENT.values() for text in texts)


@pytest.mark.parametrize(
    ("text", "confidence"), [("", 0.0), ("😭", 0.0), ("\u200b\u200b", 0.0), ("   ", 0.0), ("？？", 0.0), ("嗷呜", 0.3)]
)
def test_it_abstains_where_no_word_is_known(text: str, confidence: float) -> None:
    """Nothing readable is out of scope at 0, unknown words at 0.3: planning asks, or a person helps (R-002-04)."""
    wish = read(text).wishes[0]

    assert ("out_of_scope", confidence) == (wish.intent, wish.confidence)
