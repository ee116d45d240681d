"""A person's word, which beats every rule (X9): approve or refuse one call, take over, give back, reply."""

from __future__ import annotations

from typing import Any

from agents.planning import calls, handover, messages, moves
from agents.planning.desk import Desk, FlowDict
from schemas.people import HumanDecision
from schemas.tools import ToolCall


def on_decision(desk: Desk, decision: HumanDecision) -> None:
    """Handle one decision."""
    if decision.kind in {"approve", "refuse"}:
        _review(desk, decision)
    elif decision.kind == "takeover":
        _takeover(desk, decision)
    elif decision.kind == "release":
        _release(desk, decision)
    else:
        desk.draft.reason("planning.staff_reply", f"{decision.by} answers", decision.decision_id)
        desk.say("common.staff", {"staff_text": decision.text}, kind="staff", seal=decision.seal)


def _takeover(desk: Desk, decision: HumanDecision) -> None:
    holder = (desk.handover or {}).get("taken_by")
    if desk.owner == "human" and holder not in (None, decision.by):
        # Two people who both believe to have it would both answer: the first keeps it until they give it back.
        desk.draft.reason("planning.takeover_refused", f"{holder} has it, so {decision.by} does not get it",
                          decision.decision_id)  # fmt: skip
        return
    handover.settle(desk)
    desk.owner = "human"
    known = desk.handover or {"request_id": decision.request_id, "rule": "takeover", "at": desk.draft.now, "kept": []}
    desk.handover = {**known, "taken_by": decision.by, "noticed": True}
    handover.stop_all(desk, "handed_over")
    desk.draft.reason("planning.takeover", f"{decision.by} has the conversation", decision.decision_id)


def _release(desk: Desk, decision: HumanDecision) -> None:
    handover.settle(desk)
    desk.owner, desk.handover, desk.clarified, desk.asked = "agent", None, 0, {}
    # Anger at the agent before the person came is no anger at what comes after.
    desk.last_message = None
    desk.draft.reason("planning.release", f"{decision.by} gave the conversation back", decision.decision_id)


def _review(desk: Desk, decision: HumanDecision) -> None:
    request_id = decision.request_id or ""
    review = desk.reviews.get(request_id)
    # By the flow that waits for it, not the active one: another flow may be on top during a review.
    state = next((one for one in desk.flows if one["review_id"] == request_id), None)
    if review is None or review["status"] != "open" or state is None:
        what = "no such review" if review is None else f"it is {review['status']} already"
        desk.draft.reason("planning.review_repeated", what, request_id, decision.decision_id)
        return
    desk.in_reply_to, desk.language = state["message_id"], state["language"]
    if desk.draft.now > review["expires_at"]:  # the timer may be behind; the time that was agreed counts
        expire(desk, request_id)
    elif decision.kind == "refuse":
        _close(desk, request_id, review, "refused", decision)
        moves.fire(desk, state, "review_refused", "review_refused")
    # A refusal needs no hash: it can do no harm. An approval is of one call with its arguments (R-003-18).
    elif decision.call_hash != review["call_hash"]:
        _mismatch(desk, state, request_id, review, decision)
        return
    else:
        _approve(desk, state, request_id, review, decision)
    messages.proceed(desk)


def _approve(desk: Desk, state: FlowDict, request_id: str, review: dict[str, Any], decision: HumanDecision) -> None:
    """The call may run now; whose conversation it is does not change."""
    _close(desk, request_id, review, "approved", decision)
    # The stored call, not a new one from the slots: what was approved is what runs, to the last byte.
    call = ToolCall.model_validate({**review["call"], "args_sensitive": tuple(review["call"]["args_sensitive"])})
    now = desk.draft.now  # the deadline starts with the approval, not with the wait for it
    calls.dispatch(desk, state, call.model_copy(update={
        "declared_at": now, "deadline": now + desk.config.call_deadline_ms, "review_id": request_id,
    }))  # fmt: skip


def _close(desk: Desk, request_id: str, review: dict[str, Any], status: str, decision: HumanDecision) -> None:
    desk.remember_review(request_id, calls.closed(review, status, decision.by))
    desk.draft.cancel(calls.REVIEW_TIMER + request_id)
    desk.draft.reason(f"planning.review_{status}", f"by {decision.by}", request_id, decision.decision_id)


def _mismatch(desk: Desk, state: FlowDict, request_id: str, review: dict[str, Any], decision: HumanDecision) -> None:
    """Approved was another call: refused, and said once by asking again."""
    desk.draft.reason("planning.review_mismatch", "the approval is bound to another call", request_id,
                      decision.decision_id)  # fmt: skip
    if review["mismatches"] == 0:  # once: a broken approver would be asked for ever
        again = "an approval carried another call's hash and was refused; this is the call to decide on"
        desk.publish("human.requests", calls.review_request(desk, state, request_id, review, again))
    desk.remember_review(request_id, {**review, "mismatches": review["mismatches"] + 1})


def expire(desk: Desk, request_id: str) -> None:
    """Nobody decided in time: the customer is told, and a person takes over."""
    review = desk.reviews.get(request_id)
    state = next((one for one in desk.flows if one["review_id"] == request_id), None)
    if review is None or review["status"] != "open" or state is None:
        desk.draft.reason("planning.timer_stale", "the review is closed", request_id)
        return
    desk.remember_review(request_id, calls.closed(review, "expired"))
    desk.draft.cancel(calls.REVIEW_TIMER + request_id)
    desk.draft.reason("planning.review_expired", "nobody decided in time", request_id)
    desk.in_reply_to, desk.language = state["message_id"], state["language"]
    moves.fire(desk, state, "expired", "expired")
