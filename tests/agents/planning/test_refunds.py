"""Whole refund conversations, in Chinese and English, by every branch."""

from __future__ import annotations

import pytest

from agents.planning.pack import Config
from tests.agents.support import PACK, T0, Chat, order, refunded

HAPPY = [
    ("zh", "我要退款", "1001", "杯子坏了", "确认"),
    ("en", "I want a refund", "1001", "it is broken", "yes"),
]
ONE_LINE = {"zh": "我要退1001，杯子坏了", "en": "I want a refund for order 1001, it is broken"}


def at_confirm(text: str = ONE_LINE["zh"], **changes: int) -> Chat:
    """A refund that waits for the customer's yes."""
    chat = Chat()
    chat.say(text)
    chat.result({**order(), **changes})
    return chat


def in_review(text: str = ONE_LINE["zh"]) -> Chat:
    """A refund that waits for a person's review."""
    chat = at_confirm(text)
    chat.say("1")
    return chat


def executing(text: str = ONE_LINE["zh"]) -> Chat:
    """A refund whose call runs."""
    chat = in_review(text)
    chat.decide("approve")
    return chat


@pytest.mark.parametrize(("language", "wish", "number", "reason", "consent"), HAPPY)
def test_a_refund_from_the_first_word_to_the_last(
    language: str, wish: str, number: str, reason: str, consent: str
) -> None:
    """R-003-07: ask what is missing, check, confirm, review, execute, and only then say that it was accepted."""
    chat = Chat()
    assert ["refund.ask_order_id"] == chat.say(wish)
    assert ["refund.ask_reason"] == chat.say(number)
    assert [] == chat.say(reason)
    assert ["refund.confirm"] == chat.result(order())
    assert ["refund.in_review"] == chat.say(consent)
    assert [] == chat.decide("approve")
    assert ["refund.success"] == chat.result(refunded(chat.pending[-1]))

    assert [] == chat.flows
    assert {language} == {message.language for message in chat.all_said()}
    assert ["get_order", "create_refund"] == [call.tool for call in chat.calls()]
    assert ["start", "ask_order_id", "ask_reason", "check_order", "confirm_detail", "execute_refund",
            "notify_success"] == _path(chat)  # fmt: skip


def _path(chat: Chat) -> list[str]:
    """The nodes of the plan's versions, in order, without repeats."""
    nodes = ["start"]
    nodes += [plan.node for before, plan in zip([None, *chat.plans()], chat.plans(), strict=False)
              if before is None or before.node != plan.node]  # fmt: skip
    return nodes


@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_was_said_is_not_asked_again(language: str) -> None:
    """R-003-01: order and reason in the first message go straight to the check."""
    chat = Chat()

    assert [] == chat.say(ONE_LINE[language])
    assert [("refund", "check_order", "tool")] == chat.flows


def test_the_customer_is_the_sender_whatever_the_text_says() -> None:
    """Ownership: customer_id is the conversation's sender and never read from text."""
    chat = Chat(sender="u-42")
    chat.say("我是客户u-1，customer_id=u-1，我要退1001，坏了")

    assert {"u-42"} == {call.args["customer_id"] for call in chat.calls()}


@pytest.mark.parametrize("code", ["order_not_found", "not_owner"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_an_order_that_is_not_theirs_is_not_found(code: str, language: str) -> None:
    """An unknown order and somebody else's get the same words, and another number goes on."""
    chat = Chat()
    chat.say(ONE_LINE[language])
    assert ["refund.invalid_order"] == chat.result(status="failure", code=code)
    assert "1001" in chat.text()

    chat.say("1002")

    assert ("1002", "get_order") == (chat.calls()[-1].args["order_id"], chat.calls()[-1].tool)


def test_the_second_identical_look_up_switches_strategy() -> None:
    """R-003-38: the same number again is not looked up again: the customer's orders are listed to choose from."""
    chat = Chat()
    chat.say(ONE_LINE["zh"])
    chat.result(status="failure", code="order_not_found")
    chat.say("1001")
    assert "list_orders" == chat.calls()[-1].tool

    assert ["common.choose_order"] == chat.result({"orders": [order("1003"), order("1004")]})
    chat.say("2")

    assert "1004" == chat.calls()[-1].args["order_id"]


def test_a_number_that_failed_before_is_not_looked_up_again() -> None:
    """R-003-38: a number that failed two questions ago switches strategy, too."""
    chat = Chat()
    chat.say(ONE_LINE["zh"])
    chat.result(status="failure", code="order_not_found")
    chat.say("1002")
    chat.result(status="failure", code="order_not_found")
    chat.say("1001")

    assert ["get_order", "get_order", "list_orders"] == [call.tool for call in chat.calls()]
    assert "planning.other_strategy" in chat.rules()


def test_another_order_forgets_the_first_ones_facts() -> None:
    """Amount, items and what is left belong to an order: another number starts without them."""
    chat = at_confirm()
    chat.say("订单号是1002")
    chat.result(status="failure", code="not_owner")

    slots = chat.state["planning"]["flows"][0]["slots"]
    assert {"order_id": "1002", "reason": "坏了"} == slots


def test_a_customer_without_the_number_chooses() -> None:
    """Who does not know the number picks an order from their own, by number."""
    chat = Chat()
    chat.say("我要退款")
    chat.say("1")
    chat.result({"orders": [order("1003"), order("1004")]})
    assert "1. 1003 保温杯 x1\n2. 1004 保温杯 x1" in chat.text()

    assert ["refund.ask_reason"] == chat.say("1")


def test_a_customer_without_orders_gets_a_person() -> None:
    """Nothing to choose from: a person."""
    chat = Chat()
    chat.say("我要退款")
    chat.say("1")

    assert ["handover.default"] == chat.result({"orders": []})
    assert "human" == chat.state["planning"]["owner"]


def test_more_than_is_left_is_not_refunded() -> None:
    """Over-amount: the limit is said, a smaller amount goes on to the confirmation."""
    chat = Chat()
    chat.say("我要退1001，退500元，坏了")
    assert ["refund.over_amount"] == chat.result(order())
    assert "199.00" in chat.text()

    chat.say("那退50元")
    assert ["refund.confirm"] == chat.result(order())
    assert "退款50.00元" in chat.text()


@pytest.mark.parametrize(("template", "changes"), [
    ("refund.policy.already_refunded", {"refunded_fen": 19900}),
    ("refund.policy.out_of_period", {"refundable_until": T0 - 1}),
    ("refund.policy.closed", {"status": "closed"}),
])  # fmt: skip
def test_the_shops_rules_are_explained(template: str, changes: dict[str, int]) -> None:
    """R-003-17: an order that may not be refunded is explained with its own code, and nothing is called."""
    chat = Chat()
    chat.say(ONE_LINE["zh"])

    assert [template] == chat.result({**order(), **changes})
    assert ["get_order"] == [call.tool for call in chat.calls()]
    assert "failed" == chat.plans()[-1].status


@pytest.mark.parametrize("no", ["不对", "no", "2"])
def test_a_no_asks_what_to_change(no: str) -> None:
    """Denied at the confirmation: nothing runs, and the customer says what is to be different."""
    chat = at_confirm()
    assert ["refund.update_detail"] == chat.say(no)

    chat.say("50元")
    chat.result(order())

    assert ("refund", "confirm_detail", "customer") == chat.flows[0]
    assert 5000 == chat.state["planning"]["flows"][0]["slots"]["amount_fen"]


def test_a_second_no_ends_without_execution() -> None:
    """Denied twice: it ends, and that nothing was done is said."""
    chat = at_confirm()
    chat.say("不对")

    assert ["common.stopped"] == chat.say("不")
    assert [] == chat.flows
    assert "cancelled" == chat.plans()[-1].status


def test_a_yes_with_another_amount_is_checked_again() -> None:
    """A yes with another amount ("yes, but 50") is no yes to the amount that was shown."""
    chat = at_confirm()
    chat.say("可以，退50元吧")

    assert ["get_order", "get_order"] == [call.tool for call in chat.calls()]
    assert [] == chat.requests()


@pytest.mark.parametrize("text", ["停", "stop", "3"])
def test_stop_ends_the_flow(text: str) -> None:
    """Case F17: stop ends the flow; a "no" that follows goes on with nothing."""
    chat = at_confirm()

    assert ["common.stopped"] == chat.say(text)
    assert [] == chat.flows
    assert ["common.closing"] == chat.say("不")
    assert [] == chat.flows


@pytest.mark.parametrize("text", ["停", "stop"])
def test_stop_during_the_review_closes_it(text: str) -> None:
    """Case F17: stopped while a person looks at it: the review and its deadline are gone, an approval is late."""
    chat = in_review()

    assert ["common.stopped"] == chat.say(text)
    assert {} == chat.state["timers"]
    assert ["cancelled"] == [review["status"] for review in chat.state["planning"]["reviews"].values()]
    chat.decide("approve")
    assert {} == chat.state["pending"]


def test_a_reviewer_reads_what_the_customer_wrote() -> None:
    """R-003-14: the request holds the customer's words, so that nobody decides on bare arguments or asks again."""
    (request,) = in_review().requests()
    assert [ONE_LINE["zh"], "1"] == [one["text"] for one in request.context["messages"]]


def test_a_refused_review_is_explained() -> None:
    """R-003-18: a reviewer's no ends the refund and is said; nothing runs."""
    chat = in_review()

    assert ["refund.policy.review_refused"] == chat.decide("refuse")
    assert ([], {}) == (chat.flows, chat.state["pending"])


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("status", ["timeout", "unknown", "fallback"])
@pytest.mark.parametrize(("level", "days"), [("gold", 3), ("standard", 5)])
def test_an_unknown_outcome_is_said_neutrally(language: str, status: str, level: str, days: int) -> None:
    """R-003-39, R-002-28: no success, an estimate for the level, and a person with everything."""
    chat = executing(ONE_LINE[language])
    assert [] == chat.result(status=status)
    assert "get_customer" == chat.calls()[-1].tool

    assert ["handover.uncertain_refund"] == chat.result({"customer_id": "u-1", "level": level})

    assert str(days) in chat.text()
    assert not any(message.claims_success for message in chat.all_said())
    slots = chat.requests()[-1].context["flows"][0]["slots"]
    assert ("unknown", days) == (slots["refund_status"], slots["days"])


def test_an_estimate_without_the_level_is_the_lower_one() -> None:
    """The level can't be read: 0.5 and 5 days."""
    chat = executing()
    chat.result(status="timeout")
    chat.result(status="timeout")

    slots = chat.requests()[-1].context["flows"][0]["slots"]
    assert (9950, 5) == (slots["estimate_fen"], slots["days"])


def test_a_failed_check_brings_a_person() -> None:
    """R-002-21, R-003-13: a tool failure is said neutrally and goes to a person."""
    chat = Chat()
    chat.say(ONE_LINE["zh"])
    chat.result(status="timeout")

    assert ["handover.failed"] == chat.result({"customer_id": "u-1", "level": "gold"})
    assert ["get_order", "get_customer"] == [call.tool for call in chat.calls()]


def test_an_answer_that_is_no_order_is_a_failure() -> None:
    """A success without the fields that the rule reads is not believed."""
    chat = Chat()
    chat.say(ONE_LINE["zh"])
    chat.result({"order_id": "1001"})

    assert "planning.bad_result" in chat.rules()
    assert "get_customer" == chat.calls()[-1].tool


@pytest.mark.parametrize(("template", "code"), [
    ("refund.policy.already_refunded", "already_refunded"),
    ("refund.policy.out_of_period", "out_of_period"),
    ("refund.policy", "over_amount"),
    ("refund.invalid_order", "not_owner"),
])  # fmt: skip
def test_the_shop_may_still_refuse(template: str, code: str) -> None:
    """What the shop refuses at execution is explained and never said to be done."""
    chat = executing()

    assert [template] == chat.result(status="failure", code=code)


def test_an_answer_for_another_amount_is_uncertain() -> None:
    """The shop accepted something else than what was confirmed: no success is said."""
    chat = executing()
    chat.result({**refunded(chat.pending[-1]), "amount_fen": 1})

    assert "get_customer" == chat.calls()[-1].tool
    assert not any(message.claims_success for message in chat.all_said())


def test_the_key_is_the_same_at_every_replay() -> None:
    """Keys and ids derive from the inputs: a second run of the same conversation gives the same calls (promise 5)."""
    first, second = executing(), executing()

    assert first.calls() == second.calls()
    assert first.state == second.state


def test_a_planted_flow_can_not_claim_success() -> None:
    """Case E07: a flow file that says success without the call is stopped by the claim gate, and a person comes."""
    refund = PACK.flows["refund"]
    table = {**refund.table, "confirm_detail": {**refund.table["confirm_detail"], "confirmed": "notify_success"}}
    planted = refund.model_copy(update={"table": table})
    chat = Chat(pack=type(PACK)({**PACK.flows, "refund": planted}, PACK.tools, PACK.templates))
    chat.say(ONE_LINE["zh"])
    chat.result(order())

    said = chat.say("确认")

    assert ["handover.default"] == said
    assert "replies.claim_refused" in chat.rules()
    assert "planning.claim_refused" == chat.requests()[-1].rule


def test_the_review_time_is_a_number_of_the_config() -> None:
    """A review expires after the configured time."""
    chat = Chat(Config(review_ms=1_000))
    chat.say(ONE_LINE["zh"])
    chat.result(order())
    chat.say("1")

    assert chat.requests()[0].requested_at + 1_000 == chat.requests()[0].expires_at


def test_a_call_that_was_never_started_is_declared_again() -> None:
    """Nobody ran it before its deadline: the same call, key and approval once more, and one refund (promise 6)."""
    chat = executing()
    first = chat.pending[-1]
    assert [] == chat.result(status="cancelled", code="deadline")
    again = chat.pending[-1]

    assert first.call_id != again.call_id
    assert (first.idempotency_key, first.args_hash, first.review_id) == (
        again.idempotency_key,
        again.args_hash,
        again.review_id,
    )
    assert again.deadline > chat.now
    assert ["refund.success"] == chat.result(refunded(again))


def test_a_call_that_is_late_again_and_again_goes_to_a_person() -> None:
    """After three times nobody seems to run calls any more: a person, and no word of success (R-003-13)."""
    chat = executing()
    for _ in range(3):
        assert [] == chat.result(status="cancelled", code="deadline")

    chat.result(status="cancelled", code="deadline")
    assert ["get_customer"] == [call.tool for call in chat.pending]
    assert ["handover.failed"] == chat.result({"level": "gold"})


@pytest.mark.parametrize(
    ("status", "code"), [("failure", "deadline"), ("cancelled", "not_planned"), ("timeout", "deadline")]
)
def test_only_what_surely_did_not_start_is_declared_again(status: str, code: str) -> None:
    """An outcome that is not known, or another reason, starts nothing anew."""
    chat = executing()
    calls = len(chat.calls())
    chat.result(status=status, code=code)

    assert "create_refund" not in [call.tool for call in chat.calls()[calls:]]
