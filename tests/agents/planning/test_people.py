"""People: reviews of money, hand-overs, and a conversation that a person has."""

from __future__ import annotations

import pytest

from tests.agents.planning.test_refunds import ONE_LINE, at_confirm, executing, in_review
from tests.agents.support import T0, Chat, message, order, parcel, refunded


def test_a_review_is_bound_to_its_call() -> None:
    """R-003-18: the request carries tool, arguments, hash and expiry of the very call; nothing runs before."""
    chat = in_review()
    request = chat.requests()[0]

    assert ("review", "create_refund") == (request.kind, request.tool)
    assert {"order_id": "1001", "customer_id": "u-1", "amount_fen": 19900, "reason": "坏了"} == request.args
    assert request.requested_at + 600_000 == request.expires_at
    assert {} == chat.state["pending"]
    chat.decide("approve")
    assert request.call_hash == chat.pending[0].args_hash
    assert request.request_id == chat.pending[0].review_id


def test_an_approval_is_no_hand_over() -> None:
    """An approval lets the call run; the conversation stays the agent's."""
    assert "agent" == executing().state["planning"]["owner"]


def test_approved_twice_runs_once() -> None:
    """Case E17: the approval of one review delivered twice gives one call and one result."""
    chat = in_review()
    chat.decide("approve", decision_id="d-1")
    assert [] == chat.decide("approve", decision_id="d-2")
    assert 1 == len(chat.pending)
    chat.result(refunded(chat.pending[0]))
    assert [] == chat.decide("approve", decision_id="d-3")

    assert ["get_order", "create_refund"] == [call.tool for call in chat.calls()]
    assert 2 == chat.rules().count("planning.review_repeated")


def test_a_second_result_changes_nothing() -> None:
    """Case E17: another outcome for a call that has one is recorded and told to nobody."""
    chat = executing()
    call = chat.pending[0]
    chat.result(refunded(call))

    assert [] == chat.result(refunded(call), call=call, result_id="again")
    assert "planning.result_repeated" in chat.rules()


def test_an_approval_of_another_call_is_refused() -> None:
    """R-003-18: another hash is refused, said once by asking again, and a right one still counts."""
    chat = in_review()
    chat.decide("approve", call_hash="0" * 64)
    chat.decide("approve", call_hash="0" * 64)
    assert {} == chat.state["pending"]
    assert 2 == len(chat.requests())
    assert "another call's hash" in chat.requests()[1].reason
    assert chat.requests()[0].request_id == chat.requests()[1].request_id

    chat.decide("approve", call_hash=chat.requests()[0].call_hash)
    assert 1 == len(chat.pending)


def test_an_expired_review_brings_a_person() -> None:
    """The time is over: the customer is told that nothing was refunded, a person takes over, an approval is late."""
    chat = in_review()
    assert ["handover.expired"] == chat.fire("planning.review:")
    assert "planning.expired" == chat.requests()[-1].rule

    chat.decide("approve", request_id=chat.requests()[0].request_id, call_hash=chat.requests()[0].call_hash)
    assert {} == chat.state["pending"]


def test_an_approval_past_its_time_is_late() -> None:
    """Past the expiry an approval counts no more, even when it is handled before the timer."""
    chat = in_review()
    chat.now = T0 + 3_600_000

    assert ["handover.expired"] == chat.decide("approve")
    assert {} == chat.state["pending"]


def test_a_timer_of_a_closed_review_is_stale() -> None:
    """The review was decided when its timer fires after all: nothing happens."""
    chat = in_review()
    timers = dict(chat.state["timers"])
    chat.decide("approve")
    chat.state["timers"] = timers

    assert [] == chat.fire("planning.review:")
    assert "planning.timer_stale" in chat.rules()


def test_an_unknown_review_is_recorded() -> None:
    """A decision on no review changes nothing."""
    chat = in_review()

    assert [] == chat.decide("approve", request_id="review-404")
    assert {} == chat.state["pending"]


def test_new_details_close_the_review() -> None:
    """Another amount during the review: the old review is void, the new amount is checked and confirmed again."""
    chat = in_review()
    old = chat.requests()[0]
    chat.say("退50元")
    chat.decide("approve", request_id=old.request_id, call_hash=old.call_hash)
    assert ["get_order", "get_order"] == [call.tool for call in chat.calls()]

    chat.result(order())
    chat.say("确认")
    assert 5000 == chat.requests()[-1].args["amount_fen"]


def test_a_review_waits_openly() -> None:
    """Case J19: while a review is open the active flow says so, for three hours too: we owe the answer."""
    chat = in_review()
    chat.now = T0 + 10_000

    assert "review" == chat.state["planning"]["flows"][-1]["waiting_for"]


@pytest.mark.parametrize(("text", "language"), [("转人工", "zh"), ("I want to talk to a human", "en")])
def test_a_wish_for_a_person_is_granted(text: str, language: str) -> None:
    """R-003-13: one request, one message, and the agent is silent."""
    chat = Chat()

    assert ["handover.default"] == chat.say(text)
    assert (1, "handover", "planning.wish") == (len(chat.requests()), *_kind(chat))
    assert language == chat.all_said()[0].language
    assert "human" == chat.state["planning"]["owner"]


def _kind(chat: Chat) -> tuple[str, str]:
    return chat.requests()[-1].kind, chat.requests()[-1].rule


def test_a_wish_for_a_person_does_not_wait() -> None:
    """X9: a person beats everything: while a query runs, too, and the pending call is nobody's any more."""
    chat = Chat()
    chat.say(ONE_LINE["zh"])
    call = chat.pending[0]

    assert ["handover.default"] == chat.say("转人工")
    assert [] == chat.result(order(), call=call)


def test_the_person_gets_the_whole_context() -> None:
    """R-003-14: last messages, flow path, slots, calls and what waits, so that nothing is asked again."""
    chat = at_confirm()
    chat.say("转人工")
    context = chat.requests()[-1].context

    assert ONE_LINE["zh"] == context["messages"][0]["text"]
    assert ["start", "check_order", "confirm_detail", "transfer_human"] == context["flows"][0]["path"]
    assert "1001" == context["flows"][0]["slots"]["order_id"]
    assert [("get_order", "success")] == [(one["tool"], one["status"]) for one in context["calls"]]


def test_the_customer_hears_once_that_someone_comes() -> None:
    """Before a person is there, one message is acknowledged; all are kept for the person."""
    chat = Chat()
    chat.say("转人工")

    assert ["handover.waiting"] == chat.say("在吗")
    assert [] == chat.say("1001")
    assert ["在吗", "1001"] == [one["text"] for one in chat.state["planning"]["handover"]["kept"]]


def test_a_new_session_hears_it_again() -> None:
    """A person who never came or never gave it back leaves no customer without a word for ever: once a session."""
    chat = Chat()
    chat.hear(message("人工", "human"))
    chat.decide("takeover")

    assert [] == chat.hear(message("在吗", "greeting", message_id="m-2"))
    assert ["handover.waiting"] == chat.hear(message("在吗", "greeting", message_id="m-3", session_id="s-2"))
    assert [] == chat.hear(message("在吗", "greeting", message_id="m-4", session_id="s-2"))


def test_a_takeover_silences_the_agent() -> None:
    """X9: a person takes over: reviews and calls that did not run are cancelled, messages are kept, nothing is said."""
    chat = in_review()
    old = chat.requests()[0]
    assert [] == chat.decide("takeover")
    assert [] == chat.flows
    assert {} == chat.state["timers"]

    assert [] == chat.say("确认")
    assert [] == chat.decide("approve", request_id=old.request_id, call_hash=old.call_hash)
    assert {} == chat.state["pending"]
    assert "handed_over" == chat.plans()[-1].status


def test_a_refund_that_ran_under_a_takeover_is_the_persons() -> None:
    """The outcome of a call that ran is kept for the person who has the conversation, and is not told."""
    chat = executing()
    call = chat.pending[0]
    chat.decide("takeover")

    assert [] == chat.result(refunded(call), call=call)
    assert "create_refund: success" == chat.state["planning"]["handover"]["kept"][-1]["text"]


def test_a_persons_words_reach_the_customer() -> None:
    """A reply is sent as the person's, and claims nothing for the agent."""
    chat = Chat()
    chat.say("转人工")
    chat.decide("takeover")

    assert ["common.staff"] == chat.decide("reply", text="您好，我是客服 {order_id}")
    assert ("staff", "您好，我是客服 {order_id}") == (chat.all_said()[-1].kind, chat.text())


def test_a_persons_long_answer_arrives_whole() -> None:
    """What a colleague writes is not cut like a parameter, and keeps its lines; control characters go all the same."""
    chat = Chat()
    chat.say("转人工")
    answer = "第一步：" + "很" * 400 + "长\n第二步：好"
    chat.decide("reply", text=answer + "\x07\u202e")

    assert answer == chat.text()


def test_a_release_gives_it_back() -> None:
    """Given back, the agent answers again."""
    chat = Chat()
    chat.say("转人工")
    chat.decide("takeover")
    chat.decide("release")
    chat.say("查1002的物流")

    assert ["logistics.status"] == chat.result(parcel())
    assert None is chat.state["planning"]["handover"]


@pytest.mark.parametrize("feeling", ["angry", "impatient", "disappointed"])
def test_upset_twice_with_an_open_task_brings_a_person(feeling: str) -> None:
    """R-003-14: upset in two messages running while a task is open: a person; once, or pleased between: not."""
    chat = Chat()
    chat.hear(message("退1001", "refund", sentiment=feeling, message_id="m-1"))
    chat.hear(message("好的", "thanks", message_id="m-2"))
    assert [] == chat.hear(message("快点", "thanks", sentiment=feeling, message_id="m-3"))[2:]
    assert "agent" == chat.state["planning"]["owner"]

    assert ["handover.emotion"] == chat.hear(message("快点", "inform", sentiment=feeling, message_id="m-4"))


def test_an_unreadable_message_goes_to_a_person() -> None:
    """X8: what could not be read by the schema comes as a wish for a person."""
    chat = Chat()

    assert ["handover.default"] == chat.hear(message("?", "human", confidence=0.0))


def test_a_decision_has_its_reason() -> None:
    """Every decision says which rule on what evidence (R-002-48)."""
    chat = in_review()
    chat.decide("approve", decision_id="d-77")

    assert ("planning.review_approved", "by staff-7") in {(rule, text) for rule, text, _ in chat.reasons}
    assert any("d-77" in evidence for _, _, evidence in chat.reasons)
