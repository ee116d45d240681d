"""Messages that the customer took back or changed."""

from __future__ import annotations

from tests.agents.planning.test_refunds import ONE_LINE
from tests.agents.support import Chat, opened, order, refunded

CHANGE = "1003的地址改成上海市静安区A路1号"


def changing() -> Chat:
    """An address change that waits for the customer's yes, begun by m-211."""
    chat = Chat()
    chat.say(CHANGE, "m-211")
    chat.result(order("1003", status="paid"))
    return chat


def test_a_recalled_change_is_cancelled_and_the_next_one_counts() -> None:
    """Case B11: address A, recalled, then address B: A's change is cancelled, the final address is B."""
    chat = changing()
    assert ["common.recalled"] == chat.recall("m-211")
    assert [] == chat.flows

    chat.say("1003的地址改成上海市静安区B路2号", "m-212")
    chat.result(order("1003", status="paid"))
    chat.say("确认")

    changes = [call for call in chat.calls() if call.tool == "change_address"]
    assert ["上海市静安区****"] == [call.args["address"] for call in changes]
    assert ["上海市静安区B路2号"] == [opened(call.seal)["address"] for call in changes if call.seal]


def test_a_recall_is_no_turn() -> None:
    """Case B11: the notice is no customer message: it counts nowhere and is not read."""
    chat = changing()
    before = chat.state["planning"]["asked"]
    chat.recall("m-211")

    assert before == chat.state["planning"]["asked"]
    assert "m-211" == chat.state["planning"]["last_message"]["message_id"]


def test_a_recall_does_not_wait_for_a_call() -> None:
    """A running query delays no recall, and its late answer changes nothing (B11)."""
    chat = Chat()
    chat.say(CHANGE, "m-211")
    call = chat.pending[0]
    assert ["common.recalled"] == chat.recall("m-211")

    assert [] == chat.result(order("1003", status="paid"), call=call)
    assert "planning.late_result" in chat.rules()
    assert "agent" == chat.state["planning"]["owner"]


def test_a_call_that_was_not_begun_is_refused() -> None:
    """A recall between declaration and start: the tools step refuses the call as not planned any more (B11)."""
    chat = Chat()
    chat.say(CHANGE, "m-211")
    call = chat.calls()[0]
    chat.recall("m-211")
    chat.state["tools"], chat.state["pending"] = {"calls": {}}, {}

    chat.feed("tools.calls", call)

    assert "tools.not_planned" in chat.rules()
    assert {} == chat.state["pending"]


def test_an_executed_change_can_not_be_recalled() -> None:
    """While the change runs, the recall is answered truthfully and the outcome still told (B11)."""
    chat = changing()
    chat.say("确认")
    assert ["common.too_late"] == chat.recall("m-211")

    assert ["address.success"] == chat.result({"order_id": "1003", "status": "changed"})


def test_a_recall_after_the_end_is_recorded() -> None:
    """What is over stays as it is, and the register says so."""
    chat = changing()
    chat.say("确认")
    chat.result({"order_id": "1003", "status": "changed"})

    assert [] == chat.recall("m-211")
    assert any("change_address is over: done" in text for _, text, _ in chat.reasons)


def test_a_recalled_slot_is_asked_again() -> None:
    """A recalled reason is forgotten; the flow goes back to asking for it."""
    chat = Chat()
    chat.say("我要退1001", "m-1")
    chat.say("坏了", "m-2")
    chat.result(order())

    assert ["refund.ask_reason"] == chat.recall("m-2")
    assert "reason" not in chat.state["planning"]["flows"][0]["slots"]


def test_a_recalled_slot_drops_the_check_that_runs() -> None:
    """The order is taken back while it is looked up: the flow asks for another one."""
    chat = Chat()
    chat.say("我要退款，坏了", "m-1")
    chat.say("1001", "m-2")
    call = chat.pending[0]

    assert ["refund.ask_order_id"] == chat.recall("m-2")
    assert [] == chat.result(order(), call=call)
    assert [("refund", "ask_order_id", "customer")] == chat.flows


def test_a_recalled_yes_closes_the_review() -> None:
    """The yes is taken back during the review: the review is closed, the confirmation asked again (B11)."""
    chat = Chat()
    chat.say(ONE_LINE["zh"], "m-1")
    chat.result(order())
    chat.say("确认", "m-2")

    assert ["refund.confirm"] == chat.recall("m-2")
    assert [] == chat.decide("approve")
    assert {} == chat.state["pending"]
    assert not any(name.startswith("planning.review:") for name in chat.state["timers"])


def test_a_recalled_wish_closes_its_review() -> None:
    """The message that began the refund is taken back during the review: nothing runs any more (B11)."""
    chat = Chat()
    chat.say(ONE_LINE["zh"], "m-1")
    chat.result(order())
    chat.say("确认", "m-2")

    assert ["common.recalled"] == chat.recall("m-1")
    chat.decide("approve")
    assert ["get_order"] == [call.tool for call in chat.calls()]


def test_a_waiting_message_can_be_recalled() -> None:
    """A message that waits its turn never gets it."""
    chat = Chat()
    chat.say(ONE_LINE["zh"], "m-1")
    chat.say("查1002的物流", "m-2")
    chat.recall("m-2")
    chat.result(order())

    assert ["get_order"] == [call.tool for call in chat.calls()]


def test_an_unknown_recall_changes_nothing_in_the_plan() -> None:
    """A recall of a message that began nothing is only marked by perception."""
    chat = changing()
    before = chat.state["planning"]

    assert [] == chat.recall("m-999")
    assert before == chat.state["planning"]


def test_an_edit_replaces_what_the_message_began() -> None:
    """An edited message: its first words are undone silently, its new ones are handled."""
    chat = changing()
    assert [] == chat.say("1003的地址改成上海市静安区B路2号", "m-211", edit=True)

    chat.result(order("1003", status="paid"))
    assert "B路2号" in chat.text()
    assert [("change_address", "confirm_detail", "customer")] == chat.flows


def test_an_edit_to_another_wish_ends_the_first() -> None:
    """A refund that was edited into a query is no refund any more."""
    chat = Chat()
    chat.say("我要退1001", "m-1")
    chat.say("查1001的物流", "m-1", edit=True)

    assert [("logistics", "check_logistics", "tool")] == chat.flows
    assert "cancelled" == [plan for plan in chat.plans() if plan.flow == "refund"][-1].status
    assert "common.recalled" not in [one.template_id for one in chat.all_said()]


def test_a_refund_that_ran_is_told_after_a_recall() -> None:
    """The truth is told whatever the customer took back (R-003-39)."""
    chat = Chat()
    chat.say(ONE_LINE["zh"], "m-1")
    chat.result(order())
    chat.say("确认")
    chat.decide("approve")
    assert ["common.too_late"] == chat.recall("m-1")

    assert ["refund.success"] == chat.result(refunded(chat.pending[0]))
