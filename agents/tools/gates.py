"""The gates before a call runs, in order: known, planned, schema and injection, deadline, rate, review."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from agents.tools.arguments import args_hash, problems
from agents.tools.spec import Tools, ToolSpec
from schemas.step import Draft
from schemas.tools import ToolCall


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call does not run."""

    code: str
    message: str
    status: Literal["refused", "cancelled"] = "refused"


def check(draft: Draft, tools: Tools, call: ToolCall) -> Refusal | None:
    """The first gate that says no, or None."""
    # Known comes first: every other gate needs the tool's file.
    spec = tools.get(call.tool)
    if spec is None:
        return _unknown(tools, call.tool)
    for gate in _GATES:
        refusal = gate(draft, spec, call)
        if refusal is not None:
            return refusal
    return None


def _unknown(tools: Tools, name: str) -> Refusal:
    """A made-up or misspelt name: the real ones are said (E13)."""
    near = get_close_matches(name.replace("-", "_"), tools, n=1)
    hint = f" (did you mean {near[0]}?);" if near else ";"
    return Refusal("unknown_tool", f"{name} is no tool{hint} the tools are: {', '.join(sorted(tools))}")


def _schema(draft: Draft, spec: ToolSpec, call: ToolCall) -> Refusal | None:
    """Gate 1 (R-003-16): arguments complete and well-formed, the customer's own, without injection, as declared."""
    session = draft.get("session") or {}
    sender = session.get("sender") or draft.conversation.rpartition("/")[2]
    found = problems(spec, call.args, sender)
    if found:
        return Refusal(found[0][0], "; ".join(message for _, message in found))
    seal = call.seal.model_dump(mode="json") if call.seal else None
    # The hash is made anew: what is on the topic may have been written by anyone with the right to.
    seals = {name: one.model_dump(mode="json") for name, one in call.seals.items()}
    if args_hash(call.tool, call.args, seal, seals) != call.args_hash:
        return Refusal("changed_arguments", "the arguments are not those that the hash was made of")
    return None


def _planned(draft: Draft, _spec: ToolSpec, call: ToolCall) -> Refusal | None:
    """Only what an open plan still wants runs (R-000-24): a recall or a person may have come in between."""
    for flow in draft.get("planning", "flows", default=()):
        wanted = (task.get("calls", ()) for task in flow["tasks"] if task["status"] == "running")
        if flow["plan_id"] == call.plan_id and any(call.call_id in ids for ids in wanted):
            return None
    return Refusal("not_planned", "no open plan wants this call (any more)", "cancelled")


def _deadline(draft: Draft, _spec: ToolSpec, call: ToolCall) -> Refusal | None:
    late = draft.now - call.deadline
    return Refusal("deadline_passed", f"its deadline passed {late} ms ago") if late > 0 else None


def _rate(draft: Draft, spec: ToolSpec, call: ToolCall) -> Refusal | None:
    since = draft.now - spec.rate_limit.per_ms
    # Counted in the state, so that a replay counts the same; no file may allow more calls than the state keeps.
    recent = [entry for entry in draft.get("tools", "calls").values()
              if entry["tool"] == call.tool and entry["declared_at"] > since]  # fmt: skip
    if len(recent) < spec.rate_limit.calls:
        return None
    return Refusal("rate_limited", f"{len(recent)} calls of {call.tool} in {spec.rate_limit.per_ms} ms")


def _role(_draft: Draft, spec: ToolSpec, call: ToolCall) -> Refusal | None:
    return None if "agent" in spec.allowed_roles else Refusal("not_allowed", f"{call.tool} is not for the agent")


def _review(draft: Draft, spec: ToolSpec, call: ToolCall) -> Refusal | None:
    """Gate 3 (R-003-18): money runs only with an approval of exactly this call."""
    if spec.risk != "money":
        return None
    # Both the state and the hash: an approval of another amount is no approval.
    review = draft.get("planning", "reviews", call.review_id or "") or {}
    if review.get("status") != "approved" or review.get("call_hash") != call.args_hash:
        return Refusal("review_missing", f"{call.tool} moves money and has no approval of this very call")
    return None


_GATES: tuple[Callable[[Draft, ToolSpec, ToolCall], Refusal | None], ...] = (
    _schema, _planned, _deadline, _rate, _role, _review,
)  # fmt: skip
