"""How a wish relates to what is under way or was just done: it joins its task, means its order, or hurries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.flows.model import Flow
from agents.planning import answers, moves
from agents.planning.desk import Desk, FlowDict

_ITEM = ("order_id", "sku_id", "category", "colour")  # whoever names one of these means that, and nothing earlier


def same(desk: Desk, flow: Flow, slots: Mapping[str, Any]) -> FlowDict | None:
    """The open flow that this wish is said again for (R-002-06): the same flow, and no other order."""
    new = slots.get("order_id")
    for state in reversed(desk.flows):
        known = state["slots"].get("order_id")
        if state["flow"] == flow.flow and (new is None or known is None or new == known):
            return state
    return None


def join(desk: Desk, state: FlowDict, wish: Mapping[str, Any]) -> None:
    """The wish belongs to an open flow: its new slots go there, its question comes back, no second plan is made."""
    note(desk, state, wish["message_id"])
    if state["waiting_for"] == "tool":
        desk.say("common.in_progress", language=state["language"])
        return
    moves.raise_(desk, state)
    if answers.fill(desk, state, wish["slots"], wish["message_id"], wish.get("seal")):
        answers.moved(desk, state)
    elif state["waiting_for"] == "review":
        desk.say("common.in_progress", language=state["language"])
    else:
        moves.ask(desk, state)
        desk.touch(state)


def note(desk: Desk, state: FlowDict, message_id: str) -> None:
    """Keep that the customer had to say it again: feedback counts it as a correction (R-002-06)."""
    desk.last_message = {**(desk.last_message or {}), "joined": state["plan_id"]}
    desk.draft.reason("planning.joined", f"{state['flow']} is under way, and was asked for again", message_id,
                      state["plan_id"])  # fmt: skip


def with_order(desk: Desk, flow: Flow, slots: Mapping[str, Any]) -> Mapping[str, Any]:
    """The wish's slots, with the order of the flow that it follows when it names nothing itself."""
    if "order_id" not in flow.slots or any(slots.get(name) for name in _ITEM):
        return slots
    for state in reversed(desk.flows):
        if state["flow"] in flow.follows and (known := state["slots"].get("order_id")):
            return _meant(desk, flow, slots, str(known), state)
    done = _just_done(desk)
    if done is not None and done["flow"] in flow.follows and done.get("order_id"):
        return _meant(desk, flow, slots, str(done["order_id"]), done)
    return slots


def _meant(desk: Desk, flow: Flow, slots: Mapping[str, Any], order_id: str, of: Mapping[str, Any]) -> Mapping[str, Any]:
    desk.draft.reason("planning.same_order", f"{flow.flow} is about order {order_id} of {of['flow']}", of["plan_id"])
    return {**slots, "order_id": order_id}


def urged(desk: Desk) -> tuple[Flow | None, dict[str, Any]]:
    """The query that tells an impatient customer where things stand when nothing is open, and the order it is about."""
    done = _just_done(desk)
    for flow in desk.pack.flows.values() if done is not None else ():
        if done is not None and (done["flow"] in flow.urged_after or (flow.quick and done["flow"] == flow.flow)):
            known = done.get("order_id")
            return flow, {"order_id": known} if known else {}
    return desk.pack.by_intent.get("hurry_up"), {}


def _just_done(desk: Desk) -> Mapping[str, Any] | None:
    """The flow that ended last in this session, unless it was called off."""
    done = desk.last_done
    if done is None or done.get("session_id") != desk.session_id or done["status"] == "cancelled":
        return None
    return done
