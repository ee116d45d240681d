"""Moving a flow: the table decides where to, and the node that is entered asks, calls, says or hands over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.flows.engine import RefusedError, move, wanting
from agents.flows.model import Node
from agents.planning import calls, handover, plans, wishes
from agents.planning.desk import Desk, FlowDict
from agents.understanding.normalize import SEALED
from schemas.delivery import EvidenceRef
from schemas.events import Seal


def start(desk: Desk, flow_name: str, slots: Mapping[str, Any], message: Mapping[str, Any]) -> FlowDict:
    """A new flow on top of the others, moved as far as it goes without anybody."""
    flow = desk.pack.flows[flow_name]
    if desk.top is not None:
        desk.touch(desk.top)
        desk.draft.reason("planning.suspend", f"{desk.top['flow']} waits for {flow_name}", message["message_id"])
    given = wishes.usable(flow.slots, slots)
    state: FlowDict = {
        "flow": flow_name, "node": flow.start, "plan_id": desk.draft.new_id("plan"), "plan_version": 0,
        "slots": given, "sources": dict.fromkeys(given, message["message_id"]), "seal": message.get("seal"),
        "seals": {name: message["seal"] for name in SEALED if name in given and message.get("seal")},
        "entries": {flow.start: 1}, "path": [flow.start], "tasks": [],
        "message_id": message["message_id"], "language": desk.language, "waiting_for": "none", "call_id": None,
        "review_id": None, "tried": {}, "choices": [], "evidence": [], "turns": 0, "concluded": "no", "code": "",
    }  # fmt: skip
    desk.flows.append(state)
    desk.draft.reason("planning.start", f"{flow_name} because of its intent", message["message_id"])
    if flow.quick:
        desk.draft.reason("planning.light_path", f"{flow_name} is one query (R-003-20)", state["plan_id"])
    fire(desk, state, wanting(flow, flow.start, given), message.get("code", ""))
    return state


def fire(desk: Desk, state: FlowDict, event: str, code: str = "") -> bool:
    """Let an event happen to a flow. False, with nothing changed, when the table refuses it."""
    # Every move goes through the table here: no other line of planning writes a node (R-003-07).
    flow, before = desk.flow_of(state), state["node"]
    try:
        after = move(flow, state, event)
    except RefusedError as refused:
        desk.draft.reason("planning.refused", str(refused), desk.draft.cause.id)
        return False
    if state["plan_id"] not in desk.acted:  # a turn is a decide-act step, not each node that it passes
        desk.acted.add(state["plan_id"])
        after["turns"] += 1
    # The node that only computes a fallback must not lose why it was entered.
    keeps_code = desk.node_of(state).fallback_of is not None and not code
    state.update(after, code=state["code"] if keeps_code else code, choices=[], waiting_for="none", call_id=None)
    # A route is no task: nothing is done there.
    if flow.nodes[before].kind != "route":
        plans.left(state, before, event)
    desk.draft.reason("planning.move", f"{flow.flow}: {before} --{event}--> {state['node']}", desk.draft.cause.id)
    desk.touch(state)
    _enter(desk, state)
    return True


def _enter(desk: Desk, state: FlowDict) -> None:
    node, limit = desk.node_of(state), desk.config
    if not node.terminal and state["turns"] > limit.turns_max:  # the turn caps come before the node caps (X9)
        desk.draft.reason("planning.turn_cap", f"{state['turns']} turns", desk.draft.cause.id)
        fire(desk, state, "capped", "turn_cap")
    # Ends have no cap: a flow must always be able to finish.
    elif not node.terminal and state["entries"][state["node"]] > 1 + limit.reentries_max:
        desk.draft.reason("planning.node_cap", f"{state['node']} re-entered once too often", desk.draft.cause.id)
        fire(desk, state, "capped", "node_cap")
    elif node.kind == "route":
        fire(desk, state, wanting(desk.flow_of(state), state["node"], state["slots"]))
    elif node.kind in {"ask", "confirm"}:
        _wait(desk, state)
    elif node.kind == "call":
        if not calls.begin(desk, state, node):
            fire(desk, state, "repeated")
    elif node.kind == "say":
        _last_word(desk, state, node)
    else:
        plans.mark(state, state["node"], status="done")
        handover.hand_over(desk, state, state["code"] or "wish")


def hand(desk: Desk, code: str, *evidence: str) -> None:
    """Bring a person, from wherever the active flow stands; without a flow, by the human flow (R-003-13)."""
    top = desk.top
    if desk.owner == "human":
        handover.hand_over(desk, None, code, evidence)
    elif top is None:
        human = desk.pack.by_intent.get("human")
        if human is None:
            handover.hand_over(desk, None, code, evidence)
            return
        start(desk, human.flow, {}, {"message_id": evidence[0] if evidence else desk.draft.cause.id, "code": code})
    # Through the table where it allows, so that the path shows how it went; a person comes in any case.
    elif not fire(desk, top, "wants_person" if code == "wish" else "capped", code):
        handover.hand_over(desk, top, code, evidence)


def _wait(desk: Desk, state: FlowDict) -> None:
    """Ask and wait; at the eighth turn say where things stand instead, and ask whether to go on (R-000-21)."""
    if state["turns"] >= desk.config.turns_conclude and state["concluded"] == "no":
        state["concluded"] = "asking"
        desk.draft.reason("planning.conclude", f"turn {state['turns']}", desk.draft.cause.id)
    plans.mark(state, state["node"], status="waiting")
    state["waiting_for"] = "customer"
    raise_(desk, state)
    ask(desk, state)


def raise_(desk: Desk, state: FlowDict) -> None:
    """On top of the others: what is asked last is what the customer answers."""
    if state is not desk.top:
        desk.flows = [*(one for one in desk.flows if one is not state), state]
        desk.draft.reason("planning.on_top", f"{state['flow']} asks now", state["plan_id"])


def ask(desk: Desk, state: FlowDict) -> None:
    """Say the question that the flow waits with."""
    if state["concluded"] == "asking":
        slots = {**state["slots"], "order_id": state["slots"].get("order_id") or "-"}
        _say(desk, state, "common.conclude", slots)
        return
    node = desk.node_of(state)
    template = node.variants.get(state["code"], node.template or "")
    # Choices from a tool are labels under an approved sentence; they never replace it.
    offered = state["slots"].get("choices") if template == "common.choose_order" else None
    _say(desk, state, template, state["slots"], offered)


def _say(
    desk: Desk, state: FlowDict, template_id: str, slots: Mapping[str, Any], offered: list[dict[str, Any]] | None = None
) -> bool:
    # All that the flow rests on is cited, not only what this sentence needs: a reader sees the whole basis.
    refs = [EvidenceRef(kind="tool_result", id=one) for one in state["evidence"]]
    refs.append(EvidenceRef(kind="task_plan", id=state["plan_id"]))
    labels = None if offered is None else [choice["label"] for choice in offered]
    params = {**slots, "title": desk.title(state["flow"], state["language"])}
    template = desk.pack.templates.get(template_id)
    state["choices"] = offered or [{"event": offer.event} for offer in (template.choices if template else ())]
    # The flow's language, not the last message's: an approval or a result has none.
    # The customer sees what they say yes to: the sender opens the address, here it stays masked.
    shows_address = template is not None and "goes_to" in template.params
    seal = state.get("seals", {}).get("address") if shows_address else None
    if desk.say(template_id, params, language=state["language"], evidence=refs, choices=labels,
                seal=Seal(**seal) if seal else None):  # fmt: skip
        return True
    handover.hand_over(desk, state, "claim_refused")
    return False


def _last_word(desk: Desk, state: FlowDict, node: Node) -> None:
    if _say(desk, state, node.variants.get(state["code"], node.template or ""), state["slots"]):
        plans.mark(state, state["node"], status="done")
        end(desk, state, node.end or "failed")


def end(desk: Desk, state: FlowDict, status: str) -> None:
    """The flow is over; what waits below or behind it goes on."""
    # An approval that comes after the end must find nothing to approve.
    calls.drop_review(desk, state)
    # Only when the active flow ends is there somebody below to go back to.
    desk.ended_top = desk.ended_top or state is desk.top
    undone = plans.not_done(desk.flow_of(state), state)
    if undone:
        desk.draft.reason("planning.not_done", f"planned and not done: {', '.join(undone)}", state["plan_id"])
    desk.flows = [one for one in desk.flows if one is not state]
    desk.last_done = {"flow": state["flow"], "status": status, "message_id": state["message_id"],
                      "plan_id": state["plan_id"], "order_id": state["slots"].get("order_id"),
                      "session_id": desk.session_id}  # fmt: skip
    desk.touch(state, status)
    desk.draft.reason("planning.end", f"{state['flow']}: {status}", state["plan_id"])
