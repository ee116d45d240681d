"""One line of words for each kind of record: what a reader of a session wants to know first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from memory.bus import readable
from streams.replay.chain import Step
from streams.runtime.wire import DIFFS

Value = Mapping[str, Any]
SHORT = 160  # characters of a text that are shown
_SETTLED = frozenset({"planned", "done", "dropped"})  # tasks that a plan's line only counts


def when(millis: int) -> str:
    """UTC, to the millisecond: 2026-01-05 02:00:00.000."""
    seconds, rest = divmod(millis, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:03d}"


def clip(text: str, limit: int = SHORT) -> str:
    """On one line, and not longer than the limit."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def compact(value: Any, limit: int = SHORT) -> str:
    """A JSON value as short as it gets."""
    return clip(orjson.dumps(value).decode(), limit)


def describe(step: Step) -> str:
    """The step in words; a record that can't be read says so."""
    if step.value is None:
        return "unreadable record"
    teller = _dead_letter if step.topic.endswith(".dlq") else _TELLERS.get(step.topic)
    try:
        text = compact(step.value) if teller is None else teller(step.value)
    except (KeyError, TypeError, AttributeError):  # it came in before anyone checked it
        text = compact(step.value)
    return text if step.repeat_of is None else f"(again: offset {step.repeat_of}) {text}"


def inside(step: Step) -> list[str]:
    """What a decision holds: each reason in full, and each changed value with before and after (R-003-30)."""
    if step.topic != DIFFS or step.value is None:
        return []
    reasons = [
        _join([f"because {one['rule']}", one["text"], ", ".join(one["evidence"])]) for one in step.value["reasons"]
    ]
    return reasons + [changed(one) for one in step.value["changes"]]


def changed(change: Value) -> str:
    """A changed value: where, before and after."""
    before = compact(change["before"]) if "before" in change else "nothing"
    after = compact(change["after"]) if "after" in change else "nothing"
    return f"{readable(change['path'])}: {before} → {after}"


def _join(parts: Iterable[str]) -> str:
    return " · ".join(part for part in parts if part)


def _event(value: Value) -> str:
    body = value["body"]
    text = f"“{clip(body['text'])}”" if body.get("text") else ""
    rest = {
        name: item for name, item in body.items() if name not in ("kind", "text", "attachments") and item is not None
    }
    way = _way(value.get("forwarded") or {})
    return _join([body["kind"], text, compact(rest) if rest else "", "sealed" if value.get("seal") else "", way])


def _way(forwarded: Value) -> str:
    """How an event came from another conversation (R-003-05)."""
    if not forwarded:
        return ""
    if forwarded["refused"]:
        return f"sent back by {forwarded['conversation']}: {forwarded['refused']}"
    return f"forwarded by {forwarded['conversation']}, linked since its version {forwarded['since']}"


def _diff(value: Value) -> str:
    reasons = ", ".join(dict.fromkeys(reason["rule"] for reason in value["reasons"]))
    return f"decision {value['base']} → {value['version']} · {reasons}"


def _message(value: Value) -> str:
    item = value.get("target_item") or {}
    spans = ", ".join(f"{one['field']} “{one['value']}” {one['start']}-{one['end']}" for one in value["evidence"])
    return _join([
        f"intent {value['intent']} {value['confidence']:.2f}", value["language"], value["sentiment"],
        f"urgency {value['urgency']}", "".join(f"order {item['order_id']}" for _ in [0] if item.get("order_id")),
        f"evidence {spans}" if spans else "no evidence",
    ])  # fmt: skip


def _plan(value: Value) -> str:
    tasks = value["tasks"]
    done = f"{sum(task['status'] == 'done' for task in tasks)} of {len(tasks)} tasks done"
    now = ", ".join(
        f"{task['goal'] or task['task_id']}: {task['status']}" for task in tasks if task["status"] not in _SETTLED
    )
    return _join(
        [f"plan {value['flow']} v{value['version']} {value['status']}", f"at {value['node']}", done, clip(now)]
    )


def _call(value: Value) -> str:
    return _join([f"call {value['tool']} {compact(value['args'])}", value["risk"], clip(value["purpose"])])


def _result(value: Value) -> str:
    error = value.get("error")
    change = f"{compact(value['before'])} → {compact(value['after'])}" if value.get("after") is not None else ""
    return _join([
        f"result {value['tool']} {value['status']}", f"{error['code']}: {clip(error['message'])}" if error else "",
        change or compact(value["data"]), "had happened before" if value.get("duplicate") else "",
        f"{value['attempts']} attempt{'s' * (value['attempts'] != 1)}, {value['duration_ms']} ms",
    ])  # fmt: skip


def _outbound(value: Value) -> str:
    evidence = ", ".join(f"{one['kind']} {one['id']}" for one in value["evidence"])
    kind = value["kind"] if value["attempt"] == 1 else f"{value['kind']}, attempt {value['attempt']}"
    to = f"in {value['to']}" if value.get("to") else ""
    return _join([f"{kind} “{clip(value['text'])}”", value["template_id"], f"on {evidence}" if evidence else "", to])


def _receipt(value: Value) -> str:
    given = "" if value.get("occurred_at") is None else f"at {when(value['occurred_at'])}"
    return _join(
        [f"receipt {value['state']} of {value['message_id']}", f"from {value['source']}", given, value["reason"]]
    )


def _status(value: Value) -> str:
    change = f"{value['previous'] or 'new'} → {value['state']}"
    assumed = "assumed: nobody reported it" if value["assumed"] else ""
    late = "out of order" if value["out_of_order"] else ""
    return _join([f"message {value['message_id']} {change}", assumed, late, value["reason"]])


def _request(value: Value) -> str:
    tool = f"{value['tool']} {compact(value['args'])}" if value.get("tool") else ""
    return _join([f"person asked: {value['kind']}", value["rule"], clip(value["reason"]), tool])


def _decision(value: Value) -> str:
    return _join([f"person decided: {value['kind']} by {value['by']}", clip(value["reason"]), clip(value["text"])])


def _timer(value: Value) -> str:
    return f"deadline {value['name']} of {when(value['due'])} passed"


def _write(value: Value) -> str:
    change = f"{compact(value['value_before'])} → {compact(value['value_after'])}"
    return _join([f"memory {value['key']}: {change}", value["source"], clip(value["trigger_context"])])


def _signal(value: Value) -> str:
    return _join([f"signal {value['kind']} {value['value']:g}", clip(value["evidence"])])


def _health(value: Value) -> str:
    parts = ", ".join(f"{name} -{points:g}" for name, points in value["parts"].items())
    window = f"{when(value['window_start'])} to {when(value['window_end'])}"
    return _join(
        [f"health {value['score']}", parts, window, f"revision {value['revision']}" if value["revision"] else ""]
    )


def _system(value: Value) -> str:
    return _join(
        [f"{value['kind']} {value['subject']} by {value['by']}", compact(value["data"]) if value["data"] else ""]
    )


def _dead_letter(value: Value) -> str:
    place = f"{value['topic']} {value['partition']}:{value['offset']}"
    field = f"field {value['field']}" if value.get("field") else ""
    return _join([f"dead letter of {place}", value["code"], field, clip(value["reason"])])


_TELLERS: Mapping[str, Callable[[Value], str]] = {
    "channel.events": _event, "channel.raw": _event, "state.diffs": _diff, "messages.normalized": _message,
    "plans": _plan, "tools.calls": _call, "tools.results": _result, "actions.outbound": _outbound,
    "delivery.receipts": _receipt, "delivery.states": _status, "human.requests": _request,
    "human.decisions": _decision, "timers.fired": _timer, "memory.writes": _write, "feedback.signals": _signal,
    "feedback.health": _health, "system.events": _system,
}  # fmt: skip
