"""recall: what is remembered of a customer from before, loaded when a session starts."""

from __future__ import annotations

from agents.remembered import INPUTS, make_step
from streams.runtime.table import Row
from streams.settings import Settings


def row(settings: Settings) -> Row:
    """The row behind perception, which opens sessions, and which asks the stores itself when the past is cited."""
    return Row(
        name="recall",
        inputs=INPUTS,
        step=make_step(settings.profile_ms),
        failure_domain="what is known of a customer from before: the shop's CRM, or a store of facts",
        degrade="the conversation goes on without it, and the record says that the profile or the recall is "
        "unavailable; a profile of an earlier session stays, with its age",
        alarm="InterlockRecallUnavailable: interlock_decisions_by_rule_total with rule memory.recall_unavailable or "
        "memory.profile_unavailable rises",
        optional=True,
    )
