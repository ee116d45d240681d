"""plans: what the agent means to do, every version of it (R-002-24, R-004-12, R-004-13)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Id, Model, Name, Text


class FallbackAction(Model):
    """What happens when the plan can't be carried out; both fields are required (R-002-24)."""

    type: Literal["handover", "ask", "inform", "retry_later"]
    reason: Text


class PlanTask(Model):
    """One step of a plan (R-004-12)."""

    task_id: Id
    parent_id: Id | None = None
    description: Text
    goal: Text
    status: Literal["planned", "running", "waiting", "done", "failed", "dropped"]
    depends_on: tuple[Id, ...] = ()
    assigned_skill: Name
    actual_tool_calls: tuple[Id, ...] = ()
    result_summary: Text = ""
    alternative_reason: Text = ""


class ExecutionPlan(Model):
    """plans v1: one version of a plan."""

    plan_id: Id
    version: int = Field(ge=1)
    session_id: Id
    flow: Name
    node: Name
    status: Literal["open", "suspended", "done", "failed", "handed_over", "cancelled"]
    tasks: tuple[PlanTask, ...]
    exit_conditions: tuple[Text, ...] = Field(min_length=1)
    fallback_action: FallbackAction
    light: bool = Field(default=False, description="one query and its answer; nothing can be changed by it (R-003-20)")
