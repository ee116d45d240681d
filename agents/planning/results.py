"""A call's outcome: the flow goes on by it, and what was not planned stops it and brings a person (R-004-14)."""

from __future__ import annotations

from agents.flows.checks import CHECKS, Outcome
from agents.flows.model import Node
from agents.planning import calls, handover, messages, moves, plans
from agents.planning.desk import Desk, FlowDict
from agents.tools.fallback import estimate
from schemas.tools import ToolResult

_UNCERTAIN = {"timeout", "unknown", "fallback"}


def on_result(desk: Desk, result: ToolResult) -> None:
    """Handle one outcome; a second one for the same call changes nothing (E17)."""
    known = desk.draft.get("tools", "calls", result.call_id)
    # This step runs before the tools step settles the call: an id that is there came with an earlier decision.
    if known is not None and known["result_id"] not in (None, result.result_id):
        desk.draft.reason("planning.result_repeated", "the call has its result already", result.result_id)
        return
    # The claim gate must be able to cite this result, which the state holds only after the tools step.
    desk.results = {result.result_id: (result.tool, result.status)}
    state = next((one for one in desk.flows if one["call_id"] == result.call_id), None)
    if state is not None:
        desk.in_reply_to = state["message_id"]
        desk.language = state["language"]
        _go_on(desk, state, result)
        messages.proceed(desk)
        return
    # Done and not planned (R-004-14). A call that the state forgot is still known by the plan that made it.
    if known is None and not any(result.call_id in plans.calls_of(one) for one in desk.flows):
        desk.draft.reason("planning.unplanned", f"{result.tool} was done and not planned", result.result_id)
        _bring_person(desk, result, "unplanned")
        return
    _late(desk, result)


def _late(desk: Desk, result: ToolResult) -> None:
    """The flow went on, or ended, without this call; a change that happened all the same needs a person."""
    spec = desk.pack.tools.get(result.tool)
    # Whether it really happened is for the person to find out; that it may have is enough to bring one.
    changed = spec is not None and spec.risk != "query" and result.status in {"success", *_UNCERTAIN}
    if changed and not result.duplicate:
        desk.draft.reason("planning.late_change", f"{result.tool} happened after its plan was over", result.result_id)
        _bring_person(desk, result, "late_change")
    else:
        desk.draft.reason("planning.late_result", f"{result.tool}: nobody waits for it", result.result_id)


def _bring_person(desk: Desk, result: ToolResult, code: str) -> None:
    if desk.owner == "human":
        handover.keep(desk, f"{result.tool}: {result.status}", result.result_id)
    moves.hand(desk, code, result.result_id)


def _go_on(desk: Desk, state: FlowDict, result: ToolResult) -> None:
    node = desk.node_of(state)
    if _never_started(result) and calls.again(desk, state, node):
        return
    outcome = _outcome(desk, state, node, result)
    # Failures are evidence, too: "it can't be refunded" rests on the answer that said so.
    state["evidence"] = [*state["evidence"], result.result_id]
    state["slots"] = {**state["slots"], **outcome.slots}
    if node.fallback_of is not None:
        found = estimate(desk.pack.tools[node.fallback_of], state["slots"].get("level"),
                         state["slots"].get("amount_fen") or 0)  # fmt: skip
        state["slots"] = {**state["slots"], **found}
        desk.draft.reason("planning.fallback", "estimate computed; the outcome stays unknown", state["plan_id"])
    if result.status != "success":
        _remember_failure(desk, state, result)
    desk.draft.reason("planning.result", f"{result.tool}: {result.status}, so {outcome.event}", result.result_id)
    # The lookup of the level must not overwrite why it was made: that code picks what the customer is told.
    code = outcome.code if node.fallback_of is None else ""
    if not moves.fire(desk, state, outcome.event, code):
        moves.hand(desk, "unmet_transition", result.result_id)


def _never_started(result: ToolResult) -> bool:
    """The deadline had passed before anybody could start it, as after a long absence of all workers."""
    code = result.error.code if result.error else ""
    return result.status in {"refused", "cancelled"} and code in {"deadline_passed", "deadline"}


def _outcome(desk: Desk, state: FlowDict, node: Node, result: ToolResult) -> Outcome:
    if result.status == "success":
        if node.check is None:
            return Outcome("ok")
        try:
            return CHECKS[node.check](state["slots"], result.data, desk.draft.now)
        # A broken success of a change is the worst kind: it may have happened, so it is not a failure.
        except (KeyError, TypeError, AttributeError) as error:  # a service that breaks its own contract
            desk.draft.reason("planning.bad_result", f"{result.tool}: {error!r}", result.result_id)
            return _unknown(desk, result)
    if result.status in _UNCERTAIN:
        return _unknown(desk, result)
    code = result.error.code if result.error else ""
    event = node.errors.get(code) if result.status == "failure" else None
    return Outcome(event, code) if event else Outcome("failed", "failed")


def _unknown(desk: Desk, result: ToolResult) -> Outcome:
    """A query without an answer failed; a change without one may have happened."""
    query = desk.pack.tools[result.tool].risk == "query"
    return Outcome("failed", "failed") if query else Outcome("uncertain", "uncertain")


def _remember_failure(desk: Desk, state: FlowDict, result: ToolResult) -> None:
    call = desk.draft.get("tools", "calls", result.call_id)
    if call is not None:
        hashed = call["args_hash"]
        state["tried"] = {**state["tried"], hashed: state["tried"].get(hashed, 0) + 1}
