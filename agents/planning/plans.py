"""Plans: what a flow means to do, and what it did, as a version of ExecutionPlan (R-002-24, R-004-12, R-004-13).

The state keeps only the tasks that something happened to; what is planned stands in the flow's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.flows.model import Flow
from agents.tools.spec import Tools
from schemas.plans import ExecutionPlan, FallbackAction, PlanTask

# What the event by which a node was left says of its task; any other event: done.
_FAILED = {"failed", "uncertain", "violates", "over_amount", "not_found", "not_owner", "none", "repeated",
           "review_refused", "expired"}  # fmt: skip
_OPEN = {"denied", "described", "unclear", "changed", "unconfirmed"}
_DROPPED = {"stopped", "recalled", "wants_person", "capped"}
_UNFINISHED = {"planned", "waiting", "running"}
_LIVE = {"open", "suspended"}

Task = Mapping[str, Any]


def task_id(plan_id: str, node: str) -> str:
    """A task's id: the same at every attempt."""
    return f"{plan_id}.{node}"


def mark(state: dict[str, Any], node: str, **changes: Any) -> None:
    """Change a node's task; one that nothing happened to yet is planned."""
    tasks: list[Task] = state["tasks"]
    if all(task["node"] != node for task in tasks):
        tasks = [*tasks, {"node": node, "status": "planned"}]
    state["tasks"] = [{**task, **changes} if task["node"] == node else task for task in tasks]


def left(state: dict[str, Any], node: str, event: str) -> None:
    """The task of a node that was left by `event`."""
    # "missing_reason" at ask_reason means that it was not given; at ask_order_id it means that the order was.
    missing = event.startswith("missing_") and event.removeprefix("missing_") in node
    status = "done"
    if event in _FAILED:
        status = "failed"
    elif event in _DROPPED:
        status = "dropped"
    elif event in _OPEN or missing:
        status = "planned"
    mark(state, node, status=status, summary=event)


def called(state: dict[str, Any], node: str, call_id: str) -> None:
    """A call was declared for the node's task."""
    known: list[str] = next((task.get("calls", []) for task in state["tasks"] if task["node"] == node), [])
    mark(state, node, status="running", calls=[*known, call_id])


def tasks_of(flow: Flow, state: Mapping[str, Any]) -> list[Task]:
    """Every task: those of the intended path in its order, then those that became necessary."""
    touched = {task["node"]: task for task in state["tasks"]}
    planned = [touched.get(node, {"node": node, "status": "planned"}) for node in flow.plan]
    # What was not intended stands at the end, with its reason (R-004-12).
    return [*planned, *(task for node, task in touched.items() if node not in flow.plan)]


def not_done(flow: Flow, state: Mapping[str, Any]) -> list[str]:
    """Planned and not done (R-004-14), leaving out questions whose answer was known already."""
    slots = state["slots"]
    return [task["node"] for task in tasks_of(flow, state)
            if task["status"] in _UNFINISHED and flow.nodes[task["node"]].slot not in slots]  # fmt: skip


def calls_of(state: Mapping[str, Any]) -> set[str]:
    """Every call that the plan declared."""
    return {call for task in state["tasks"] for call in task.get("calls", ())}


def plan_of(flow: Flow, tools: Tools, state: Mapping[str, Any], status: str, session_id: str) -> ExecutionPlan:
    """The version of the plan that the flow's state now stands for."""
    before: str | None = None
    tasks = []
    for task in tasks_of(flow, state):
        node, identity = flow.nodes[task["node"]], task_id(state["plan_id"], task["node"])
        # A plan that is over has no open task: a reader must not wait for one.
        over = status not in _LIVE and task["status"] in _UNFINISHED
        tasks.append(PlanTask(
            task_id=identity, description=f"{node.kind} {task['node']}", goal=node.goal,
            status="dropped" if over else task["status"], depends_on=(before,) if before else (),
            assigned_skill=tools[node.tool].skill if node.tool else node.kind,
            actual_tool_calls=tuple(task.get("calls", ())), result_summary=task.get("summary", ""),
            alternative_reason=_alternative(flow, state, task["node"], status, over=over),
        ))  # fmt: skip
        before = identity
    return ExecutionPlan(
        plan_id=state["plan_id"], version=state["plan_version"], session_id=session_id, flow=flow.flow,
        node=state["node"], status=status, tasks=tuple(tasks),  # type: ignore[arg-type]
        exit_conditions=flow.exit_conditions,
        fallback_action=FallbackAction(type=flow.fallback_action.type, reason=flow.fallback_action.reason),
        light=flow.quick,
    )  # fmt: skip


def _alternative(flow: Flow, state: Mapping[str, Any], node: str, status: str, *, over: bool) -> str:
    """Why a task is not as planned: it was not on the intended path, or it was not done."""
    if over:
        return "not needed: known already" if status == "done" else f"the flow ended: {status}"
    if node in flow.plan:
        return ""
    at = state["path"].index(node) if node in state["path"] else 0
    return f"off the intended path, after {state['path'][at - 1]}" if at else "off the intended path"
