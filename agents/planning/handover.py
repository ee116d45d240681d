"""Bringing a person: one request with all that they need, one message, and the agent keeps quiet from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.planning import calls, plans
from agents.planning.desk import Desk, FlowDict
from schemas.delivery import EvidenceRef
from schemas.people import HumanRequest
from schemas.sections import KEPT_CHARS

KEPT_MAX = 50
TIMER = "planning.handover:"


def hand_over(desk: Desk, state: FlowDict | None, code: str, evidence: tuple[str, ...] = ()) -> None:
    """Hand the conversation over (R-003-13): the rule is `planning.<code>`."""
    if desk.owner == "human":  # one request, however many rules ask for a person
        desk.draft.reason("planning.already_with_person", code, *evidence)
        return
    # The request before the flows are dropped: it carries them, so that nobody asks the customer again.
    request_id = desk.draft.new_id("handover")
    desk.publish("human.requests", HumanRequest(
        request_id=request_id, session_id=desk.session_id, kind="handover", rule=f"planning.{code}",
        reason=code.replace("_", " "), requested_at=desk.draft.now, context=context(desk, state),
    ))  # fmt: skip
    _tell(desk, state, code)
    desk.owner = "human"
    desk.handover = {"request_id": request_id, "rule": f"planning.{code}", "at": desk.draft.now, "taken_by": None,
                     "noticed": False, "kept": [], "asked": 1}  # fmt: skip
    desk.draft.timer(TIMER + request_id, desk.draft.now + desk.config.handover_ms)
    stop_all(desk, "handed_over")
    desk.draft.reason("planning.handover", code, request_id, *evidence)


def _tell(desk: Desk, state: FlowDict | None, code: str) -> None:
    template, params, refs = f"handover.{code}", {}, []
    if template not in desk.pack.templates:
        template = "handover.default"
    if state is not None:
        params = state["slots"]
        refs = [EvidenceRef(kind="task_plan", id=state["plan_id"])]
        variant = desk.node_of(state).variants.get(code, template)
        # Wording with an estimate needs one: without it (the failure came earlier) the plain wording is used.
        wanted = desk.pack.templates[variant].params if variant in desk.pack.templates else {}
        template = variant if wanted.keys() <= params.keys() else template
    desk.say(template, params, language=state["language"] if state else None, evidence=refs)


def ask_again(desk: Desk, request_id: str) -> None:
    """Nobody took it: people are asked again, and the customer is told once; after some times it only waits."""
    known = desk.handover
    desk.draft.cancel(TIMER + request_id)
    if known is None or known["request_id"] != request_id or known["taken_by"] is not None:
        desk.draft.reason("planning.timer_stale", "a person has it, or gave it back", request_id)
        return
    asked = int(known.get("asked", 1)) + 1
    kept = [{"text": one["text"], "at": one["at"]} for one in known["kept"]]
    desk.publish("human.requests", HumanRequest(
        request_id=request_id, session_id=desk.session_id, kind="handover", rule=str(known["rule"]), asked=asked,
        reason=f"nobody has taken it since {known['at']}", requested_at=known["at"],
        context={**context(desk, None), "waiting": kept},
    ))  # fmt: skip
    desk.handover = {**known, "asked": asked, "noticed": True}
    desk.draft.reason("planning.handover_again", f"asked for the {asked}. time", request_id)
    if asked == 2:
        desk.say("handover.nobody_yet")
    if asked <= desk.config.handover_reminders:
        desk.draft.timer(TIMER + request_id, desk.draft.now + desk.config.handover_ms)


def settle(desk: Desk) -> None:
    """A person has come, or the conversation is the agent's again: nobody need be asked."""
    if desk.handover is not None and desk.handover["request_id"] is not None:
        desk.draft.cancel(TIMER + str(desk.handover["request_id"]))


def stop_all(desk: Desk, status: str) -> None:
    """All that is under way stops: reviews are closed, calls not yet begun will be refused, wishes are kept."""
    # No event is fired: a flow that said its last word here would talk into the person's conversation.
    for state in reversed(desk.flows):
        calls.drop_review(desk, state)
        undone = ", ".join(plans.not_done(desk.flow_of(state), state)) or "nothing"
        desk.draft.reason("planning.not_done", f"planned and not done: {undone}", state["plan_id"])
        desk.touch(state, status)
    for waiting in desk.queue:
        keep(desk, waiting.get("text", ""), waiting["message_id"])
    desk.flows, desk.queue, desk.offer, desk.ended_top = [], [], [], False


def keep(desk: Desk, text: str, message_id: str) -> None:
    """A message for the person."""
    handover = desk.handover or {"request_id": None, "rule": "takeover", "at": desk.draft.now, "taken_by": None,
                                 "noticed": True, "kept": []}  # fmt: skip
    kept = [*handover["kept"], {"message_id": message_id, "text": text[:KEPT_CHARS], "at": desk.draft.now}]
    desk.handover = {**handover, "kept": kept[-KEPT_MAX:]}


def context(desk: Desk, state: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a person needs to go on without asking again (R-003-14): masked, as the state holds it."""
    states = desk.flows if state is None or any(one is state for one in desk.flows) else [*desk.flows, state]
    declared = desk.draft.get("tools", "calls", default={})
    return {
        "messages": desk.heard(),
        "flows": [{"flow": one["flow"], "node": one["node"], "path": one["path"], "slots": one["slots"],
                   "plan_id": one["plan_id"]} for one in states],
        "calls": [{"call_id": call_id, "tool": call["tool"], "status": call["status"]}
                  for call_id, call in list(declared.items())[-10:]],
        "waiting": [{"intent": one.get("intent"), "text": one.get("text", "")} for one in desk.queue],
    }  # fmt: skip
