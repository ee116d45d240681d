"""The same wish again, under a new id, while its task is open (R-002-06)."""

from __future__ import annotations

import pytest

from schemas.messages import TargetItem
from schemas.people import HumanDecision
from tests.agents.planning.test_intents import hear
from tests.agents.planning.test_refunds import in_review
from tests.agents.support import T0, Chat, message, order, parcel


def plans(chat: Chat) -> set[str]:
    """Ids of all plans so far."""
    return {plan.plan_id for plan in chat.plans()}


@pytest.mark.parametrize("order_id", ["1001", None])
def test_said_again_while_a_tool_runs_starts_no_second_plan(order_id: str | None) -> None:
    """R-002-06: the repeat waits, joins the task, and the shop is asked once."""
    chat = Chat()
    hear(chat, "refund", "1001", reason="坏了")
    hear(chat, "refund", order_id)
    chat.result(order())

    assert 1 == len(plans(chat))
    assert ["get_order"] == [call.tool for call in chat.calls()]
    assert "planning.joined" in chat.rules()


def test_said_again_under_review_is_in_progress() -> None:
    """R-002-06: no second review of the same refund."""
    chat = in_review()

    assert ["common.in_progress"] == hear(chat, "refund", "1001")
    assert 1 == len(plans(chat))
    assert 1 == len(chat.requests())


def test_said_again_over_another_task_goes_back_to_its_own() -> None:
    """R-002-06: the task lies below another one: it comes up with its question, and no third is begun."""
    chat = Chat()
    hear(chat, "refund")
    hear(chat, "change_address", "1002")
    before = plans(chat)

    assert ["refund.ask_order_id"] == hear(chat, "refund")
    assert before == plans(chat)
    assert ["change_address", "refund"] == [flow for flow, _, _ in chat.flows]


def test_said_again_with_what_was_missing_goes_on() -> None:
    """R-002-06: the repeat brings the order that the open task lacks."""
    chat = Chat()
    hear(chat, "refund")
    hear(chat, "change_address", "1002")
    hear(chat, "refund", "1001", reason="坏了")

    assert [("change_address", "ask_address", "customer"), ("refund", "check_order", "tool")] == chat.flows


def test_another_order_is_another_task() -> None:
    """Two refunds of two orders are two tasks, not one said twice."""
    chat = in_review()
    hear(chat, "refund", "1002")

    assert ["refund", "refund"] == [flow for flow, _, _ in chat.flows]
    assert "planning.joined" not in chat.rules()


def test_what_is_over_is_begun_anew() -> None:
    """Only an open task is joined."""
    chat = Chat()
    hear(chat, "logistics", "1001")
    chat.result(parcel("1001"))
    hear(chat, "logistics", "1001")

    assert 2 == len(plans(chat))


def test_the_repeat_is_marked_for_feedback() -> None:
    """The message that joined is named in the state, so that feedback counts one correction (R-002-06, R-002-36)."""
    chat = in_review()
    chat.hear(message("退1001", "refund", target_item=TargetItem(order_id="1001"), message_id="m-again"))
    last = chat.state["planning"]["last_message"]

    assert ("m-again", chat.state["planning"]["flows"][0]["plan_id"]) == (last["message_id"], last["joined"])


def test_nobody_comes_so_people_are_asked_again() -> None:
    """A hand-over that nobody takes is asked for again, the customer is told once, and it ends after three times."""
    chat = Chat()
    hear(chat, "human")

    assert ["handover.nobody_yet"] == chat.fire("planning.handover:")
    assert [] == chat.fire("planning.handover:")
    assert [] == chat.fire("planning.handover:")
    assert [1, 2, 3, 4] == [one.asked for one in chat.requests()]
    assert 1 == len({one.request_id for one in chat.requests()})
    assert {} == chat.state["timers"]


def test_who_is_taken_over_is_not_asked_for_again() -> None:
    """A person has come: the deadline is gone; one that fires all the same changes nothing."""
    chat = Chat()
    hear(chat, "human")
    timers = chat.state["timers"]
    chat.decide("takeover")
    assert {} == chat.state["timers"]
    chat.state = {**chat.state, "timers": timers}
    chat.fire("planning.handover:")

    assert 1 == len(chat.requests())
    assert "planning.timer_stale" in chat.rules()


def test_a_second_person_does_not_take_it_from_the_first() -> None:
    """Two takeovers: the first keeps the conversation, the second is recorded as refused."""
    chat = Chat()
    hear(chat, "human")
    chat.decide("takeover")
    chat.feed("human.decisions", HumanDecision(decision_id="d-2", kind="takeover", by="staff-9", decided_at=T0))

    assert "staff-7" == chat.state["planning"]["handover"]["taken_by"]
    assert "planning.takeover_refused" in chat.rules()
    chat.decide("release")
    chat.feed("human.decisions", HumanDecision(decision_id="d-3", kind="takeover", by="staff-9", decided_at=T0))
    assert "staff-9" == chat.state["planning"]["handover"]["taken_by"]


@pytest.mark.parametrize("text", ["停", "地址改成A路1号"])
def test_a_review_that_is_taken_back_is_told_to_people(text: str) -> None:
    """A cancelled review is closed on human.requests at once; one that still stands is not."""
    chat = in_review()
    chat.say(text)
    (asked, *rest) = chat.requests()

    assert [(asked.request_id, "closed")] * (text == "停") == [(one.request_id, one.status) for one in rest]
