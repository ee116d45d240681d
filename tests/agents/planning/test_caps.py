"""The caps: turns, nodes, questions, confidence; and which comes first (X9)."""

from __future__ import annotations

from typing import Any

import pytest

from agents.planning.pack import Config
from tests.agents.planning.test_refunds import ONE_LINE, at_confirm, in_review
from tests.agents.support import Chat, message, order, refunded


def unclear(chat: Chat, number: int) -> list[str]:
    """A yes where no yes is asked for: the same question again."""
    return chat.hear(message("是", "confirm", message_id=f"m-unclear-{number}"))


def test_a_node_may_be_re_entered_three_times() -> None:
    """R-003-10, R-003-38: the fourth re-entry of a node goes to a person."""
    chat = Chat(Config(turns_conclude=99))
    chat.say("我要退1001")

    said = [unclear(chat, number) for number in range(4)]

    assert [["refund.ask_reason"]] * 3 + [["handover.default"]] == said
    assert "planning.node_cap" == chat.requests()[0].rule
    assert "planning.node_cap" in chat.rules()


def test_the_third_same_question_goes_to_a_person() -> None:
    """R-003-13: the customer asks the same for the third time."""
    chat = Chat()
    for _ in range(2):
        chat.say("查1002的物流")
        chat.result(status="timeout")

    assert ["handover.default"] == chat.say("查1002的物流")
    assert "planning.same_question" == chat.requests()[0].rule


def test_other_questions_are_not_the_same_one() -> None:
    """Three parcels are three questions."""
    chat = Chat()
    for number in ("1002", "1003", "1004"):
        chat.say(f"查{number}的物流")
        chat.result(status="timeout")

    assert [] == chat.requests()


def test_a_new_session_counts_anew() -> None:
    """What was asked is counted in one session."""
    chat = Chat()
    for number in range(4):
        chat.hear(message("查物流", "logistics", session_id=f"s-{number // 2}", message_id=f"m-{number}"))

    assert "agent" == chat.state["planning"]["owner"]
    assert [2] == list(chat.state["planning"]["asked"].values())


def test_low_confidence_is_red_and_asked_once() -> None:
    """Below 0.6 the step is red and one clarifying question is asked; still below: a person."""
    chat = Chat()
    assert ["common.clarify"] == chat.hear(message("嗯", "out_of_scope", confidence=0.59))
    assert "planning.red_step" in chat.rules()

    assert ["handover.low_confidence"] == chat.hear(message("啊", "out_of_scope", confidence=0.59))
    assert "planning.low_confidence" == chat.requests()[0].rule


def test_a_clear_message_between_forgives() -> None:
    """A message that is understood starts the count again."""
    chat = Chat()
    chat.hear(message("嗯", "out_of_scope", confidence=0.3))
    chat.hear(message("退款", "refund", confidence=0.6))

    assert 0 == chat.state["planning"]["clarified"]


@pytest.mark.parametrize(("answer", "flow"), [("1", "refund"), ("2", "logistics"), ("3", "change_address")])
def test_a_clarifying_choice_begins_its_flow(answer: str, flow: str) -> None:
    """The numbers of the clarifying question are intents."""
    chat = Chat()
    chat.hear(message("嗯", "out_of_scope", confidence=0.3))
    chat.say(answer)

    assert flow == chat.flows[0][0]


def test_a_guess_that_is_denied_is_asked_openly() -> None:
    """No to the guess: the choices are shown."""
    chat = Chat()
    chat.hear(message("退……", "refund", confidence=0.4))

    assert ["common.clarify"] == chat.hear(message("不是", "deny"))


def test_a_red_message_in_a_flow_repeats_its_question() -> None:
    """In a flow, the clarifying question is the flow's own; the second red message goes to a person."""
    chat = Chat()
    chat.say("我要退款")
    assert ["common.sorry", "refund.ask_order_id"] == chat.hear(message("##", "out_of_scope", confidence=0.2))

    assert ["handover.low_confidence"] == chat.hear(message("##", "out_of_scope", confidence=0.2))


def test_any_words_are_a_reason() -> None:
    """R-003-11: asked for a reason, free words are one, whatever the confidence."""
    chat = Chat()
    chat.say("我要退1001")
    chat.hear(message("颜值不够", "out_of_scope", confidence=0.3))

    assert "颜值不够" == chat.state["planning"]["flows"][0]["slots"]["reason"]
    assert [("refund", "check_order", "tool")] == chat.flows


def concluding(config: Config | None = None) -> Chat:
    """A refund at its eighth turn."""
    chat = Chat(config)
    chat.say(ONE_LINE["zh"])
    chat.result(order())
    for amount in (60, 50, 40):
        chat.say(f"退{amount}元")
        chat.result(order())
    return chat


def test_at_the_eighth_turn_it_concludes_and_asks() -> None:
    """R-000-21: at turn 8 it says where things stand and asks whether to go on; a yes there confirms no money."""
    chat = concluding()
    assert "common.conclude" == chat.all_said()[-1].template_id
    assert 8 == chat.state["planning"]["turns"]

    assert ["refund.confirm"] == chat.say("1")
    assert [] == chat.requests()
    assert ["refund.in_review"] == chat.say("1")


@pytest.mark.parametrize(("said", "answer"), [
    ("common.stopped", "2"), ("handover.default", "3"), ("common.stopped", "不"), ("refund.confirm", "确认"),
])  # fmt: skip
def test_the_conclusion_has_three_ways_on(said: str, answer: str) -> None:
    """Go on, stop, or a person."""
    assert said == concluding().say(answer)[0]


def test_after_twelve_turns_a_person() -> None:
    """R-000-21: the thirteenth decide-act step of a task goes to a person."""
    chat = concluding(Config(reentries_max=99))
    chat.say("1")
    for amount in (30, 20):
        chat.say(f"退{amount}元")
        chat.result(order())
    assert "agent" == chat.state["planning"]["owner"]

    assert ["handover.default"] == chat.say("退10元")
    assert "planning.turn_cap" == chat.requests()[-1].rule


def test_an_outcome_is_told_past_the_turn_cap() -> None:
    """The caps stop going on, not telling the truth: an executed refund is said at any turn."""
    chat = in_review()
    flow: dict[str, Any] = chat.state["planning"]["flows"][0]
    chat.state["planning"] = {**chat.state["planning"], "flows": [{**flow, "turns": 12}]}
    chat.decide("approve")

    assert ["refund.success"] == chat.result(refunded(chat.pending[0]))


def test_a_person_beats_the_turn_cap_and_that_the_node_cap() -> None:
    """X9: the order is a person, the turn caps, the node caps."""
    for rule, text in (("planning.wish", "转人工"), ("planning.turn_cap", "退50元")):
        chat = at_confirm()
        flow = chat.state["planning"]["flows"][0]
        capped = {**flow, "turns": 12, "concluded": "done", "entries": {**flow["entries"], "check_order": 4}}
        chat.state["planning"] = {**chat.state["planning"], "flows": [capped]}
        chat.say(text)

        assert rule == chat.requests()[-1].rule


def test_the_numbers_are_the_configs() -> None:
    """Every cap is a number of the config."""
    chat = Chat(Config(reentries_max=0, turns_conclude=99))
    chat.say("我要退1001")
    unclear(chat, 1)

    assert "planning.node_cap" == chat.requests()[0].rule
