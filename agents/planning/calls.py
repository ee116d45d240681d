"""Declaring tool calls: arguments from the slots, a stable key, and for money a person's review first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from agents.flows.model import Node
from agents.planning import plans
from agents.planning.desk import Desk, FlowDict
from agents.tools.arguments import args_hash
from agents.tools.spec import ToolSpec
from schemas.delivery import EvidenceRef
from schemas.events import Seal
from schemas.people import HumanRequest
from schemas.tools import ToolCall

REVIEW_TIMER = "planning.review:"
LATE_MAX = 3  # then nobody seems to run calls any more, and a person is asked


def arguments(spec: ToolSpec, node: Node, slots: Mapping[str, Any], sender: str) -> dict[str, Any]:
    """The arguments; the customer is always the conversation's sender, never what a text says."""
    args: dict[str, Any] = {}
    for name, argument in spec.input_schema.items():
        value = sender if argument.source == "sender" else slots.get(node.args.get(name, ""))
        if value is not None:
            args[name] = value
    return args


def idempotency_key(plan_id: str, node: str, hashed: str) -> str:
    """The same for the same task and arguments, whatever the attempt, the worker or the day."""
    return hashlib.sha256(f"{plan_id}|{node}|{hashed}".encode()).hexdigest()[:40]


def begin(desk: Desk, state: FlowDict, node: Node) -> bool:
    """Declare the node's call, or ask for its review; False for a call that failed before with the same arguments."""
    call = _made(desk, state, node)
    # Asking the same again gives the same answer; where the table knows another way, that is taken (R-003-38).
    if call.args_hash in state["tried"] and desk.flow_of(state).target(state["node"], "repeated"):
        desk.draft.reason("planning.other_strategy", f"{call.tool} failed with the same arguments", state["plan_id"])
        return False
    if call.risk == "money":  # the file decides what is money, never the flow
        ask_review(desk, state, node, call)
    else:
        dispatch(desk, state, call)
    return True


def again(desk: Desk, state: FlowDict, node: Node) -> bool:
    """Declare the node's call once more, under the same key and approval; False when it was late too often.

    For a call that surely never started because its deadline had passed: nobody was there to run it in time.
    """
    late = f"late:{state['node']}"
    count = state["tried"].get(late, 0)
    if count >= LATE_MAX:
        return False
    state["tried"] = {**state["tried"], late: count + 1}
    call = _made(desk, state, node)
    approved = state["review_id"] if call.risk == "money" else None  # the gate checks it against this call's hash
    dispatch(desk, state, call.model_copy(update={"review_id": approved}))
    desk.draft.reason("planning.call_again", f"{call.tool} was not started in time", call.call_id)
    return True


def _made(desk: Desk, state: FlowDict, node: Node) -> ToolCall:
    spec = desk.pack.tools[node.tool or ""]
    args = arguments(spec, node, state["slots"], desk.sender)
    sensitive = tuple(name for name in spec.sensitive_fields if name in args)
    # The clear values are not known here: they travel sealed, and only the runner of the call opens them.
    seal = state["seal"] if sensitive else None
    kept = state.get("seals", {})
    seals = {name: kept[name] for name in sensitive if name in kept and kept[name] != seal}
    # Over the masked arguments: the hash stands in the clear register, where clear values must not be guessable.
    hashed = args_hash(spec.name, args, seal, seals)
    return ToolCall(
        call_id=desk.draft.new_id("call"), session_id=desk.session_id, plan_id=state["plan_id"],
        task_id=plans.task_id(state["plan_id"], state["node"]), skill=spec.skill, tool=spec.name, risk=spec.risk,
        args=args, args_sensitive=sensitive, args_hash=hashed, seal=Seal(**seal) if seal else None,
        seals={name: Seal(**one) for name, one in seals.items()},
        idempotency_key=idempotency_key(state["plan_id"], state["node"], hashed), purpose=node.goal,
        expectation=f"success with {', '.join(spec.output_schema.required)}", declared_at=desk.draft.now,
        deadline=desk.draft.now + desk.config.call_deadline_ms, timeout_ms=spec.timeout_ms,
    )  # fmt: skip


def dispatch(desk: Desk, state: FlowDict, call: ToolCall) -> None:
    """The call goes to the tools step; the flow waits for its result."""
    state["call_id"], state["waiting_for"] = call.call_id, "tool"
    plans.called(state, state["node"], call.call_id)
    # Not an effect yet: the tools step checks it once more, against the state of its own decision.
    desk.publish("tools.calls", call)
    desk.touch(state)
    desk.draft.reason("planning.call", f"{call.tool}: {call.purpose}", call.call_id)


def ask_review(desk: Desk, state: FlowDict, node: Node, call: ToolCall) -> None:
    """A person decides on this very call (R-003-18): bound to its hash, for a limited time."""
    request_id = desk.draft.new_id("review")
    # The expiry is part of what the person is shown: an approval after it approves nothing.
    expires = desk.draft.now + desk.config.review_ms
    review = {"status": "open", "call": call.model_dump(mode="json"), "mismatches": 0, "call_hash": call.args_hash,
              "requested_at": desk.draft.now, "expires_at": expires}  # fmt: skip
    desk.remember_review(request_id, review)
    state["review_id"], state["waiting_for"] = request_id, "review"
    plans.mark(state, state["node"], status="waiting")
    # A review that nobody answers must not hold the customer for ever.
    desk.draft.timer(REVIEW_TIMER + request_id, expires, {"request_id": request_id})
    desk.publish("human.requests", review_request(desk, state, request_id, review, call.purpose))
    desk.draft.reason("planning.review", f"{call.tool} waits for a person", request_id, call.call_id)
    if node.template:
        refs = [EvidenceRef(kind="task_plan", id=state["plan_id"])]
        desk.say(node.template, state["slots"], language=state["language"], evidence=refs)


def review_request(desk: Desk, state: FlowDict, request_id: str, review: Mapping[str, Any],
                   reason: str) -> HumanRequest:  # fmt: skip
    """What the person is asked: this call, until then."""
    call = review["call"]
    return HumanRequest(
        request_id=request_id, session_id=call["session_id"], kind="review", rule="planning.money_reviewed",
        reason=reason, requested_at=review["requested_at"], expires_at=review["expires_at"],
        call_hash=review["call_hash"], tool=call["tool"], args=call["args"],
        context={"flow": state["flow"], "path": state["path"], "plan_id": state["plan_id"],
                 "messages": desk.heard()},
    )  # fmt: skip


def closed(review: Mapping[str, Any], status: str, by: str = "") -> dict[str, Any]:
    """What is kept of a review that was decided: enough to check the call against, and to know a repeat."""
    return {"status": status, "by": by, "call_hash": review["call_hash"], "expires_at": review["expires_at"]}


def drop_review(desk: Desk, state: FlowDict, status: str = "cancelled") -> None:
    """The flow's open review no longer counts: an approval that still comes changes nothing."""
    # The id stays on the flow after the review is closed, so the status is what counts.
    request_id = state["review_id"]
    review = desk.reviews.get(request_id or "")
    if request_id is None or review is None or review["status"] != "open":
        return
    desk.remember_review(request_id, closed(review, status))
    desk.draft.cancel(REVIEW_TIMER + request_id)
    # Who has it on their board must not decide on what nobody waits for.
    over = review_request(desk, state, request_id, review, f"{status}: nothing is to be decided any more")
    desk.publish("human.requests", over.model_copy(update={"status": "closed"}))
    desk.draft.reason("planning.review_closed", status, request_id)


def in_flight(desk: Desk, state: FlowDict) -> bool:
    """A call that changes something was handed over, or its outcome is not known: it can't be taken back."""
    if state["call_id"] is None:
        return False
    # While the estimate after a lost answer is computed, the refund may be done: to say that nothing was is no truth.
    if desk.node_of(state).fallback_of is not None and state["code"] == "uncertain":
        return True
    return desk.pack.tools[desk.node_of(state).tool or ""].risk != "query"
