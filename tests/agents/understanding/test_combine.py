"""Rules and classifier together: exact words win where they are certain, and a disagreement costs confidence."""

from __future__ import annotations

import pytest

from agents.understanding.combine import ABSTAIN, CERTAIN, MOST
from agents.understanding.intents import CLEAR, ORDERED, QUERIES, TASKS
from agents.understanding.lexicon import lexicon
from agents.understanding.model.classify import Guess
from agents.understanding.port import Context, Expects, Wish
from agents.understanding.rules import RuleUnderstanding
from schemas.messages import INTENTS
from streams.processors.perception import classifier
from tests.agents.understanding.reader import filled, intents, read


class Says:
    """A classifier that gives one answer to whatever it is asked."""

    def __init__(self, intent: str, probability: float) -> None:
        self._guesses = [Guess(intent, probability), Guess("thanks", round(1 - probability, 4))]

    def guesses(self, text: str) -> list[Guess]:
        """The one answer."""
        return self._guesses if text else []


def heard(text: str, intent: str, probability: float, expects: Expects | None = None) -> Wish:
    """The main wish when the classifier says `intent`."""
    model = Says(intent, probability)
    return RuleUnderstanding(model=model).read(text, Context(flow="refund", expects=expects)).wishes[0]


def by_rules(text: str) -> Wish:
    """The main wish by the rules alone."""
    return RuleUnderstanding().read(text, Context()).wishes[0]


@pytest.mark.parametrize("text", ["我要退款", "I want a refund", "取消订单"])
def test_exact_words_win_and_a_disagreement_costs_confidence(text: str) -> None:
    """The lexicon's certain words are never overruled; doubted, they are less sure (R-003-06, R-000-18)."""
    alone, doubted, agreed = by_rules(text), heard(text, "points", 0.99), heard(text, by_rules(text).intent, 0.9)

    assert alone.intent == doubted.intent == agreed.intent
    assert CLEAR <= doubted.confidence < alone.confidence < agreed.confidence <= MOST
    assert alone.confidence >= CERTAIN


def test_usual_words_give_way_to_a_sure_model() -> None:
    """Words that only usually mean something are outweighed by a sure classifier, and not by an unsure one."""
    assert "cancel" == by_rules("I don't want order 1001").intent
    assert "exchange" == heard("I don't want order 1001", "exchange", 0.95).intent
    assert "cancel" == heard("I don't want order 1001", "exchange", 0.6).intent


def test_where_no_word_is_known_the_model_speaks_or_abstains() -> None:
    """A sentence that no rule knows is the classifier's, with its probability; below one half nobody's (R-002-04)."""
    assert ("points", 0.8) == (heard("嗷呜嗷呜", "points", 0.8).intent, heard("嗷呜嗷呜", "points", 0.8).confidence)
    assert "out_of_scope" == heard("嗷呜嗷呜", "points", ABSTAIN - 0.01).intent


@pytest.mark.parametrize("intent", ["confirm", "deny", "inform"])
def test_the_model_never_answers_for_the_customer(intent: str) -> None:
    """A yes or a no is its exact words: however sure the classifier is, it confirms nothing (promise 7)."""
    assert "out_of_scope" == heard("嗷呜嗷呜", intent, 1.0, "confirm").intent
    assert "refund" == heard("我要退款", intent, 1.0).intent


@pytest.mark.parametrize(
    ("text", "expects"), [("拉链这里开了个口", "reason"), ("嗷呜嗷呜", "order_id"), ("1001", "order_id")]
)
def test_what_was_asked_for_is_no_new_wish(text: str, expects: Expects) -> None:
    """While a flow waits for an answer, an unsure guess starts nothing else (case F15)."""
    assert heard(text, "complaint", 0.85, expects).intent in {"inform", "out_of_scope"}


@pytest.mark.parametrize(
    ("text", "wishes"),
    [
        ("我的order 1001 status是什么，可以refund吗", ["logistics", "refund"]),
        ("先帮我查下积分，再开张发票", ["points", "invoice"]),
        ("change my phone number and then cancel order 1001", ["change_phone", "cancel"]),
        ("退货寄回1002，顺便催一下1001的快递", ["return", "hurry_up"]),
    ],
)
def test_several_wishes_stand_in_their_order(text: str, wishes: list[str]) -> None:
    """Each clause's wish is read, in the order of the words (cases F01, F13; R-003-02)."""
    assert wishes == intents(text)


def test_a_mixed_message_is_recorded_as_mixed() -> None:
    """Chinese and English in one message: two intents, the order of both, language mixed (case F13)."""
    reading = read("我的order 1001 status是什么，可以refund吗")

    assert "mixed" == reading.language
    assert [{"order_id": "1001"}] * 2 == [filled(wish.slots) for wish in reading.wishes]


def test_a_guess_beside_a_wish_does_not_end_it() -> None:
    """A clause of unknown words next to a clear wish sends nobody to a person (X9)."""
    assert ["refund"] == intents("我是客户u-1，customer_id=u-1，我要退1001，坏了")


def test_money_and_goods_of_one_return_are_one_wish() -> None:
    """Who sends goods back wants their money, and starts no second plan by saying both (R-002-06)."""
    assert ["return"] == intents("I want to return it, and get my money back")
    assert ["refund"] == intents("我要退款，1001退货")


def test_every_intent_of_the_contract_is_read() -> None:
    """The lexicon knows every intent that flows may name, but the bare answer (R-000-18)."""
    words = lexicon()
    known = {pattern.intent for script in words.patterns for pattern, _ in script}
    known |= {pattern.intent for pattern in words.whole}

    assert set(INTENTS) - {"inform"} <= known
    assert QUERIES | ORDERED <= TASKS <= set(INTENTS)


def test_queries_are_marked_for_the_light_path() -> None:
    """A question whose answer changes nothing is a query, and nothing that writes is one (R-003-20)."""
    assert {"refund_status", "return_status", "logistics"} <= QUERIES
    assert not QUERIES & {"refund", "return", "exchange", "cancel", "change_address", "change_phone", "change_order"}


@pytest.mark.parametrize("text", ["返金してください", "환불해 주세요", "верните деньги", "أريد استرداد المال"])
def test_a_script_that_the_classifier_never_saw_is_not_guessed(text: str) -> None:
    """Han letters amid kana are no Chinese: nothing is claimed, and planning asks (R-002-04)."""
    reading = RuleUnderstanding(model=classifier()).read(text, Context())
    assert ("out_of_scope", True) == (reading.wishes[0].intent, reading.wishes[0].confidence < CLEAR)
