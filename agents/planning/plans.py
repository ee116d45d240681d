"""Plans: what a flow means to do, and what it did, as a version of ExecutionPlan (R-002-24, R-004-12, R-004-13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.flows.model import Flow
from agents.tools.spec import Tools
from schemas.plans import ExecutionPlan, FallbackAction, PlanTask

# What the event by which a node was left says of its task; any other event: done.
_FAILED = {"failed", "uncertain", "violates", "over_amount", "not_found", "not_owner", "none", "repeated",
           "review_refused", "expired"}  # fmt: skip
_OPEN = {"denied", "unclear", "changed", "unconfirmed"}
_DROPPED = {"stopped", "recalled", "wants_person", "capped"}


def tasks_of(flow: Flow) -> list[dict[str, Any]]:
    """The tasks of a new plan: the flow's intended path."""
    return [_task(node) for node in flow.plan]


def _task(node: str, alternative: str = "") -> dict[str, Any]:
    return {"node": node, "status": "planned", "calls": [], "summary": "", "alternative": alternative}


def task_id(plan_id: str, node: str) -> str:
    """A task's id: the same at every attempt."""
    return f"{plan_id}.{node}"


def mark(state: dict[str, Any], node: str, **changes: Any) -> None:
    """Change a node's task; a node off the intended path gets a task, with the reason why it was needed."""
    if all(task["node"] != node for task in state["tasks"]):
        previous = state["path"][-2] if len(state["path"]) > 1 else ""
        state["tasks"] = [*state["tasks"], _task(node, f"off the intended path, after {previous}")]
    state["tasks"] = [{**task, **changes} if task["node"] == node else task for task in state["tasks"]]


def left(state: dict[str, Any], node: str, event: str) -> None:
    """The task of a node that was left by `event`."""
    # "missing_reason" at ask_reason means that it was not given; at ask_order_id it means that the order was.
    missing = event.startswith("missing_") and event.removeprefix("missing_") in node
    if event in _FAILED:
        mark(state, node, status="failed", summary=event)
    elif event in _DROPPED:
        mark(state, node, status="dropped", summary=event)
    elif event in _OPEN or missing:
        mark(state, node, status="planned", summary=event)
    else:
        mark(state, node, status="done", summary=event)


def called(state: dict[str, Any], node: str, call_id: str) -> None:
    """A call was declared for the node's task."""
    known: list[str] = next((task["calls"] for task in state["tasks"] if task["node"] == node), [])
    mark(state, node, status="running", calls=[*known, call_id])


def not_done(state: Mapping[str, Any]) -> list[str]:
    """Planned and not done: nodes of the intended path that were never finished (R-004-14)."""
    return [task["node"] for task in state["tasks"] if task["status"] in {"planned", "waiting", "running"}]


def finish(state: dict[str, Any], status: str) -> None:
    """The flow is over: what was not done is dropped, and says so."""
    why = "not needed: known already" if status == "done" else f"the flow ended: {status}"
    state["tasks"] = [
        {**task, "status": "dropped", "alternative": task["alternative"] or why}
        if task["status"] in {"planned", "waiting", "running"} else task
        for task in state["tasks"]
    ]  # fmt: skip


def calls_of(state: Mapping[str, Any]) -> set[str]:
    """Every call that the plan declared."""
    return {call for task in state["tasks"] for call in task["calls"]}


def plan_of(flow: Flow, tools: Tools, state: Mapping[str, Any], status: str, session_id: str) -> ExecutionPlan:
    """The version of the plan that the flow's state now stands for."""
    plan_id = state["plan_id"]
    before: str | None = None
    tasks = []
    for task in state["tasks"]:
        node = flow.nodes[task["node"]]
        identity = task_id(plan_id, task["node"])
        tasks.append(PlanTask(
            task_id=identity, description=f"{node.kind} {task['node']}", goal=node.goal, status=task["status"],
            depends_on=(before,) if before else (), assigned_skill=tools[node.tool].skill if node.tool else node.kind,
            actual_tool_calls=tuple(task["calls"]), result_summary=task["summary"],
            alternative_reason=task["alternative"],
        ))  # fmt: skip
        before = identity
    return ExecutionPlan(
        plan_id=plan_id, version=state["plan_version"], session_id=session_id, flow=flow.flow, node=state["node"],
        status=status, tasks=tuple(tasks), exit_conditions=flow.exit_conditions,  # type: ignore[arg-type]
        fallback_action=FallbackAction(type=flow.fallback_action.type, reason=flow.fallback_action.reason),
    )  # fmt: skip
