"""Several wishes, interruptions and messages that come at the wrong moment."""

from __future__ import annotations

import pytest

from agents.planning.pack import Config
from schemas.messages import SecondaryIntent, TargetItem
from tests.agents.planning.test_refunds import at_confirm, executing, in_review
from tests.agents.support import Chat, message, order, parcel, refunded


@pytest.mark.parametrize("text", [
    "我要退1001，再顺便查下1002的物流",
    "I want a refund for order 1001, and also track order 1002",
])  # fmt: skip
def test_two_wishes_are_two_tasks(text: str) -> None:
    """Case F01: a compound message becomes two tasks, each with its own order, and both are answered."""
    chat = Chat()
    chat.say(text)
    assert ["get_logistics"] == [call.tool for call in chat.calls()]
    assert "1002" == chat.calls()[0].args["order_id"]

    assert ["logistics.status", "refund.ask_reason"] == chat.result(parcel())
    assert "1001" in chat.text()
    assert {"refund", "logistics"} == {plan.flow for plan in chat.plans()}


def test_two_orders_are_two_refunds() -> None:
    """The same wish for another order is a task of its own, done after the first one."""
    chat = Chat()
    chat.say("我要退1001，坏了")
    chat.result(order())
    chat.say("确认")
    assert [("refund", "execute_refund", "review")] == chat.flows

    chat.say("1005也要退，尺码不合适")

    assert ["refund", "refund"] == [flow for flow, _, _ in chat.flows]
    assert "1005" == chat.calls()[-1].args["order_id"]


def test_a_query_in_the_middle_comes_back_once() -> None:
    """R-003-12: the query suspends the refund, is answered, and the refund's question comes again once."""
    chat = Chat()
    chat.say("我要退1001")
    assert [] == chat.say("我先查一下1002的物流")
    assert [("refund", "ask_reason", "customer"), ("logistics", "check_logistics", "tool")] == chat.flows
    assert "suspended" in {plan.status for plan in chat.plans() if plan.flow == "refund"}

    assert ["logistics.status", "refund.ask_reason"] == chat.result(parcel())
    assert [("refund", "ask_reason", "customer")] == chat.flows
    assert 1 == chat.state["planning"]["flows"][0]["entries"]["ask_reason"]


def test_a_switch_is_handled_at_once() -> None:
    """Case F15: while the refund waits for a reason, an address change is begun at once; the refund comes back once."""
    chat = Chat()
    chat.say("我要退1001")

    assert ["address.ask_order_id"] == chat.say("先帮我改地址")
    assert ["address.ask_address"] == chat.say("1003")
    chat.say("改成上海市静安区A路1号")
    chat.result(order("1003", status="paid"))
    chat.say("确认")

    assert ["address.success", "refund.ask_reason"] == chat.result({"order_id": "1003", "status": "changed"})


def test_stop_ends_the_switch_only() -> None:
    """Case F17: stop ends the flow under way; the one that waits below asks its question again."""
    chat = Chat()
    chat.say("我要退1001")
    chat.say("先帮我改地址")

    assert ["common.stopped", "refund.ask_reason"] == chat.say("停")


def test_a_message_while_a_tool_runs_waits_its_turn() -> None:
    """Case B23: "refund 1001" runs when "track 1002" comes; both are handled once, in order."""
    chat = Chat()
    chat.say("退1001，坏了", "m-223a")
    assert [] == chat.say("再查1002的物流", "m-223b")
    assert ["m-223b"] == [one["message_id"] for one in chat.state["planning"]["queue"]]
    assert ["get_order"] == [call.tool for call in chat.calls()]

    assert ["refund.confirm"] == chat.result(order())
    assert ["get_order", "get_logistics"] == [call.tool for call in chat.calls()]
    assert ["logistics.status", "refund.confirm"] == chat.result(parcel())
    assert [] == chat.state["planning"]["queue"]


def test_two_messages_that_wait_go_on_in_order() -> None:
    """Messages that waited are handled in the order they came."""
    chat = Chat()
    chat.say("我要退1001，坏了")
    chat.say("退50元")
    chat.say("查下1002的物流")
    chat.result(order())
    chat.result(order())

    assert ["get_order", "get_order", "get_logistics"] == [call.tool for call in chat.calls()]


def test_a_fast_second_answer_fills_the_slot() -> None:
    """Case B25: yes, then at once the number: the yes opens the refund, the number fills the order, asked once."""
    chat = Chat()
    asked = chat.hear(message("退……", "refund", confidence=0.5, message_id="m-1"))
    assert ["common.clarify_guess"] == asked

    first = chat.hear(message("是", "confirm", message_id="m-2"))
    second = chat.say("1001")

    assert ["refund.ask_order_id"] == first
    assert ["refund.ask_reason"] == second
    assert "1001" == chat.state["planning"]["flows"][0]["slots"]["order_id"]


def test_a_fast_answer_during_the_check_waits() -> None:
    """Case B25: an answer that comes while a tool runs is read against the question that comes after it."""
    chat = Chat()
    chat.say("我要退1001，坏了")
    chat.say("确认")
    chat.result(order())

    assert [("refund", "execute_refund", "review")] == chat.flows
    assert 1 == len(chat.requests())


def test_too_many_waiting_messages_bring_a_person() -> None:
    """The queue is bounded: nothing is dropped, a person gets it (promise 10)."""
    chat = Chat(Config(queue_max=2))
    chat.say("我要退1001，坏了")
    for text in ("查1002物流", "查1003物流"):
        assert [] == chat.say(text)

    assert ["handover.default"] == chat.say("查1004物流")
    kept = [one["text"] for one in chat.state["planning"]["handover"]["kept"]]
    assert ["查1002物流", "查1003物流", "查1004物流"] == kept


@pytest.mark.parametrize("text", ["停", "stop"])
def test_stop_does_not_wait_for_a_query(text: str) -> None:
    """Stop is handled while a query runs; its late answer changes nothing."""
    chat = Chat()
    chat.say("我要退1001，坏了")
    call = chat.pending[0]
    assert ["common.stopped"] == chat.say(text)

    assert [] == chat.result(order(), call=call)
    assert [] == chat.flows


def test_stop_is_too_late_for_a_refund_that_runs() -> None:
    """What is being executed can't be stopped: that is said, and the outcome follows."""
    chat = executing()

    assert ["common.too_late"] == chat.say("停")
    assert ["refund.success"] == chat.result(refunded(chat.pending[0]))


def test_twenty_yeses_are_one_refund() -> None:
    """Case J15: 20 confirms give one transition, one request and one call; 19 are told that it is being done."""
    chat = at_confirm()
    said = [chat.say("确认") for _ in range(20)]

    assert ["refund.in_review"] == said[0]
    assert [["common.in_progress"]] * 19 == said[1:]
    assert (1, 1) == (len(chat.requests()), chat.rules().count("planning.review"))
    assert 19 == chat.rules().count("planning.confirmed_before")
    chat.decide("approve")
    assert 1 == len([call for call in chat.calls() if call.tool == "create_refund"])


def test_a_yes_while_the_refund_runs_is_not_a_second_one() -> None:
    """Case J15: a confirm during and after the execution is answered, not executed, and claims no success."""
    chat = executing()
    assert ["common.in_progress"] == chat.say("确认")
    chat.result(refunded(chat.pending[0]))
    assert ["common.already_handled"] == chat.say("确认")

    assert ["get_order", "create_refund"] == [call.tool for call in chat.calls()]
    assert 1 == sum(one.claims_success for one in chat.all_said())


def test_a_query_during_the_review_is_answered() -> None:
    """The customer need not wait for the review to ask something else."""
    chat = in_review()
    chat.say("查下1002的物流")

    assert ["logistics.status"] == chat.result(parcel())
    assert [("refund", "execute_refund", "review")] == chat.flows


def test_a_second_wish_beside_a_yes_need_not_wait_for_the_review() -> None:
    """Case F01: a wish that comes with the yes is begun while the refund waits for its review."""
    chat = at_confirm()
    two = message("确认，再查下1002的物流", "confirm", secondary_intents=(
        SecondaryIntent(intent="logistics", confidence=0.9, target_item=TargetItem(order_id="1002")),
    ))  # fmt: skip

    assert ["refund.in_review"] == chat.hear(two)
    assert "get_logistics" == chat.calls()[-1].tool


def test_a_review_goes_on_below_another_flow() -> None:
    """An approval moves the flow that waits for it, also when another one is active."""
    chat = in_review()
    chat.say("我要改地址")
    chat.decide("approve")
    assert [] != chat.pending

    assert ["refund.success"] == chat.result(refunded(chat.pending[0]))
    assert [("change_address", "ask_order_id", "customer")] == chat.flows


def test_the_last_question_is_the_one_answered() -> None:
    """A flow that asks from below comes to the top, so that a yes is the answer to what was asked last."""
    chat = in_review()
    chat.say("我要改1003的地址")
    chat.decide("approve")
    chat.result(status="failure", code="not_owner", call=chat.pending[0])

    assert "refund" == chat.flows[-1][0]
    assert "planning.on_top" in chat.rules()


def test_a_courtesy_in_a_flow_asks_again() -> None:
    """Thanks or a greeting in the middle is answered, and the question comes again."""
    chat = Chat()
    chat.say("我要退1001")

    assert ["common.welcome", "refund.ask_reason"] == chat.say("谢谢")
    assert 1 == chat.state["planning"]["flows"][0]["entries"]["ask_reason"]


@pytest.mark.parametrize(("template", "text"), [
    ("common.greeting", "你好"), ("common.greeting", "hello"), ("common.welcome", "谢谢"),
    ("common.closing", "不"), ("common.nothing_to_stop", "停"), ("common.closing", "确认"),
])  # fmt: skip
def test_small_talk_without_a_flow(template: str, text: str) -> None:
    """Every message gets an answer."""
    assert [template] == Chat().say(text)


def test_a_bare_number_is_asked_about() -> None:
    """An order number alone: what about it? The numbered answer begins that flow with that order."""
    chat = Chat()
    assert ["common.what_about_order"] == chat.say("1001")

    chat.say("2")

    assert ("get_logistics", "1001") == (chat.calls()[0].tool, chat.calls()[0].args["order_id"])


def test_an_offers_number_is_not_a_flows_number() -> None:
    """What was offered last is what the number means: a 1 never confirms money by accident."""
    chat = at_confirm()
    chat.hear(message("嗯？？", "out_of_scope", confidence=0.3))
    assert "refund.confirm" == chat.all_said()[-1].template_id

    chat.say("1")

    assert [("refund", "execute_refund", "review")] == chat.flows


def test_an_offer_that_is_named_keeps_its_order() -> None:
    """After "1001" and "which of these?" the word for a choice is as good as its number (B25)."""
    chat = Chat()
    chat.say("1001")

    assert ["refund.ask_reason"] == chat.say("我要退款")
    assert "1001" == chat.state["planning"]["flows"][0]["slots"]["order_id"]


def test_another_order_beside_a_named_offer_is_the_one_meant() -> None:
    """What the customer names now counts more than what was offered (F03)."""
    chat = Chat()
    chat.say("1001")
    chat.say("我要退款1002")

    assert "1002" == chat.state["planning"]["flows"][0]["slots"]["order_id"]


def test_a_guess_said_again_is_a_yes() -> None:
    """Asked whether it is a refund, "refund" is an answer, however unsure it is read; no person is needed."""
    chat = Chat()
    chat.hear(message("退……", "refund", confidence=0.5, message_id="m-1"))

    assert ["refund.ask_order_id"] == chat.hear(message("退", "refund", confidence=0.55, message_id="m-2"))
    assert [] == chat.requests()


@pytest.mark.parametrize(
    ("text", "reason"), [("我要退款1001和1002，都坏了", "坏了"), ("我要退款1001，坏了，还要退款1002", None)]
)
def test_a_reason_behind_all_orders_is_the_reason_of_each(text: str, reason: str | None) -> None:
    """One reason said of two orders is not asked for twice; one said of the first is not the second's (F01)."""
    chat = Chat()
    chat.say(text)
    waiting = [one for one in chat.state["planning"]["queue"] if one["kind"] == "wish"]

    assert [("1002", reason)] == [(one["slots"]["order_id"], one["slots"].get("reason")) for one in waiting]
