"""Stopping: what is meant is stopped, what may have been done is not called undone, and what else is said counts."""

from __future__ import annotations

from typing import Any

import pytest

from streams.delivery.deadlines import MEANS
from tests.agents.planning.test_refunds import at_confirm, executing, in_review
from tests.agents.support import T0, Chat, order


def uncertain() -> Chat:
    """A refund whose answer was lost, while the estimate for the customer is looked up."""
    chat = executing()
    chat.result(status="unknown")
    assert [("refund", "handle_failure", "tool")] == chat.flows
    return chat


def test_a_stop_after_a_lost_answer_does_not_say_that_nothing_was_done() -> None:
    """R-003-39: the refund may have happened; a stop in that moment gets no "nothing was carried out"."""
    chat = uncertain()

    assert ["common.too_late"] == chat.say("停")
    assert ["handover.uncertain_refund"] == chat.result({"customer_id": "u", "level": "gold"})


def test_a_recall_after_a_lost_answer_does_not_either() -> None:
    """Case B11 with R-003-39: the message is taken back, the refund may not be."""
    chat = uncertain()

    assert ["common.too_late"] == chat.recall("m-1")


def test_a_stop_after_a_failed_check_stops() -> None:
    """Nothing was asked of the shop but a question: the flow ends and says the truth."""
    chat = Chat()
    chat.say("我要退1001，坏了")
    chat.result(status="timeout")
    assert [("refund", "handle_failure", "tool")] == chat.flows

    assert ["common.stopped"] == chat.say("停")


def test_a_stop_that_names_an_order_stops_that_one() -> None:
    """Two refunds: the one that is named ends, the other goes on, whichever asked last."""
    chat = in_review()
    chat.say("我要退1002")

    assert ["common.stopped"] == chat.say("不退1001了")
    assert [("refund", "ask_reason", "customer")] == chat.flows
    assert "1002" == chat.state["planning"]["flows"][0]["slots"]["order_id"]
    assert ["cancelled"] == [one["status"] for one in chat.state["planning"]["reviews"].values()]


def test_a_stop_of_an_order_that_is_not_open_stops_nothing() -> None:
    """Another order's refund is not dropped by it, and nobody is told that something was stopped."""
    chat = at_confirm()

    assert ["common.sorry", "refund.confirm"] == chat.say("不退1009了")
    assert [("refund", "confirm_detail", "customer")] == chat.flows


def test_a_stop_with_another_wish_is_two_wishes() -> None:
    """F01: "not this one, that one" ends the first and begins the second."""
    chat = at_confirm()

    assert ["common.stopped", "refund.ask_reason"] == chat.say("不要退1001，退1002")
    assert "1002" == chat.state["planning"]["flows"][0]["slots"]["order_id"]


@pytest.mark.parametrize("text", ["算了不退了", "那不退了", "还是不退了吧", "先不退了", "actually never mind",
                                  "等等，算了", "sorry, cancel that", "暂时不退了", "wait, stop"])  # fmt: skip
@pytest.mark.parametrize("begun", ["我要退1001", "我要退1001，坏了"])
def test_people_stop_in_many_words(begun: str, text: str) -> None:
    """F17: in any node a stop is one, with the small words that people put before it; it is never a reason."""
    chat = Chat()
    chat.say(begun)
    for _ in chat.pending:
        chat.result(order())

    assert ["common.stopped"] == chat.say(text)
    assert [] == chat.flows


@pytest.mark.parametrize("text", ["怎么不退款", "为什么不退", "不退了吗", "你们不退款吗"])
def test_a_reproach_is_no_stop(text: str) -> None:
    """Who asks why nothing is refunded does not want it stopped."""
    chat = at_confirm()
    chat.say(text)

    assert [("refund", "confirm_detail", "customer")] == chat.flows[:1]


@pytest.mark.parametrize(("number", "said"), [
    ("1", ["refund.ask_reason"]), ("2", ["handover.default"]), ("3", ["common.stopped"]),
])  # fmt: skip
def test_the_numbers_of_a_reminder_mean_what_it_says(number: str, said: list[str]) -> None:
    """R-002-32: the follow-up's own numbers (go on, a person, stop) are understood, and no re-entry is counted."""
    chat = Chat()
    chat.say("我要退1001")
    reminder: dict[str, Any] = {
        "kind": "follow_up", "queued_at": T0, "params": {"means": list(MEANS)}, "session_id": "s", "state": "sent",
        "template_id": "delivery.follow_up", "language": "zh", "text": "?", "in_reply_to": None, "choices": [],
    }  # fmt: skip
    chat.state["actions"] = {**chat.state["actions"], "messages": {"out-1": reminder}}

    assert said == chat.say(number)
    assert "planning.node_cap" not in chat.rules()
