"""The tools step: the gates in order before a call is declared as an effect, and the outcome settled once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.tools.gates import Refusal, check
from agents.tools.spec import CALLS_MAX, Tools
from schemas.step import Draft, Input, Step
from schemas.tools import READINGS, ToolCall, ToolError, ToolResult

INPUTS = ("tools.calls", "tools.results")
_NOTHING_RAN = {"refused", "cancelled"}  # the same call may come again, and then it is the first


def make_step(tools: Tools) -> Step:
    """The pure step over a pack of tools."""

    def step(draft: Draft, cause: Input) -> None:
        if isinstance(cause.value, ToolCall):
            _call(draft, tools, cause.value)
        elif isinstance(cause.value, ToolResult) and cause.value.tool not in READINGS:  # those are no calls
            _result(draft, tools, cause.value)

    return step


def _call(draft: Draft, tools: Tools, call: ToolCall) -> None:
    known: Mapping[str, Any] = draft.get("tools", "calls")
    if call.call_id in known:
        draft.reason("tools.repeated", "the call was declared before", call.call_id)
        return
    refusal = check(draft, tools, call)
    if refusal is not None:
        _refuse(draft, call, refusal)
        return
    spec = tools[call.tool]
    if spec.idempotency == "key":  # a query may run as often as it is asked
        first = next((one for one, entry in known.items() if entry["key"] == call.idempotency_key
                      and entry["status"] not in _NOTHING_RAN), None)  # fmt: skip
        if first is not None:
            _duplicate(draft, call, first, known[first])
            return
    # The file may have become stricter since the call was made, or reviewed.
    timeout = min(call.timeout_ms, spec.timeout_ms)
    draft.effect(call.call_id, "tool", key=call.idempotency_key, timeout_ms=timeout, deadline=call.deadline,
                 request=call.model_dump(mode="json"))  # fmt: skip
    _remember(draft, call, "running")
    draft.reason("tools.declared", f"{call.tool}: {call.purpose}", call.call_id)


def _remember(draft: Draft, call: ToolCall, status: str, **more: Any) -> None:
    calls = dict(draft.get("tools", "calls"))
    calls[call.call_id] = {
        "tool": call.tool, "status": status, "key": call.idempotency_key, "declared_at": draft.now,
        "deadline": call.deadline, "plan_id": call.plan_id, "args_hash": call.args_hash, "result_id": None,
        "duplicate_of": None, **more,
    }  # fmt: skip
    pending = draft.get("pending")  # a call without its outcome is never forgotten,
    # nor one whose result a flow will cite when it goes on: without it the wording would have no evidence.
    cited = {result for flow in draft.get("planning", "flows") for result in flow["evidence"]}
    spare = [one for one, entry in calls.items()
             if one not in pending and one != call.call_id and entry["result_id"] not in cited]  # fmt: skip
    for old in spare[: max(0, len(calls) - CALLS_MAX)]:
        del calls[old]
        draft.delete("tools", "calls", old)
    draft.set(calls[call.call_id], "tools", "calls", call.call_id)


def _refuse(draft: Draft, call: ToolCall, refusal: Refusal) -> None:
    """No call runs: the outcome is there at once, and says why in a form that a planner can use."""
    _remember(draft, call, refusal.status)
    draft.emit("tools.results", ToolResult(
        result_id=f"{call.call_id}:r", call_id=call.call_id, tool=call.tool, status=refusal.status,
        error=ToolError(code=refusal.code, message=refusal.message), attempts=0, finished_at=draft.now,
        confirmed_by="none",
    ))  # fmt: skip
    draft.reason(f"tools.{refusal.code}", refusal.message, call.call_id)


def _duplicate(draft: Draft, call: ToolCall, first: str, entry: Mapping[str, Any]) -> None:
    """The same change once more: it gets the first one's outcome and runs nothing (E05)."""
    _remember(draft, call, "duplicate", duplicate_of=first)
    draft.reason("tools.duplicate", f"same key as {first}", call.call_id, first)
    if entry["result_id"] is not None:
        _answer(draft, call.call_id, call.tool, entry)


def _answer(draft: Draft, call_id: str, tool: str, first: Mapping[str, Any]) -> None:
    draft.emit("tools.results", ToolResult(
        result_id=f"{call_id}:r", call_id=call_id, tool=tool, status=first["status"], data=first.get("data") or {},
        attempts=0, finished_at=draft.now, duplicate=True,
        error=ToolError(**first["error"]) if first.get("error") else None,
    ))  # fmt: skip


def _result(draft: Draft, tools: Tools, result: ToolResult) -> None:
    # Settled even when the state forgot the call: a pending effect would be asked about for ever.
    draft.settle(result.call_id)
    entry = draft.get("tools", "calls", result.call_id)
    if entry is None:
        draft.reason("tools.result_unknown", f"{result.tool}: no such call was declared", result.result_id)
        return
    if entry["result_id"] is not None:
        draft.reason("tools.result_repeated", "the call has its outcome already", result.result_id, result.call_id)
        return
    spec = tools.get(entry["tool"])
    settled = {**entry, "status": result.status, "result_id": result.result_id}
    if spec is not None and spec.idempotency == "key":  # kept for the same call coming again
        settled |= {"data": result.data, "error": result.error.model_dump() if result.error else None}
    draft.set(settled, "tools", "calls", result.call_id)
    draft.reason("tools.settled", f"{result.tool}: {result.status}", result.result_id, result.call_id)
    for call_id, other in draft.get("tools", "calls").items():
        if other["duplicate_of"] == result.call_id and other["result_id"] is None:
            _answer(draft, call_id, other["tool"], settled)
