"""identity: links a customer's conversations, and forwards what is written in one to its root."""

from __future__ import annotations

from dataclasses import replace

from agents.identity import standing_aside, step
from streams.runtime.table import Row

# Who is there, and what was sent, is a matter of the channel itself; silence closes a conversation, linked or not.
_STAYS = frozenset({"delivery", "session", "system"})


def row() -> Row:
    """The identity processor."""
    return Row(
        name="identity",
        inputs=("channel.events",),
        step=step,
        failure_domain="one customer's link: what is not linked does not know of it",
        degrade="a link in doubt is refused and each conversation goes on by itself; an event that the step can't take "
        "is a dead letter, and a redrive forwards it",
        alarm="InterlockLinksRefused: interlock_decisions_by_rule_total with rule identity.refused rises",
    )


def linked(*rows: Row) -> tuple[Row, ...]:
    """The table with links: identity first, and whoever reads customers' words leaves those to the root."""
    return (row(), *(one if one.name in _STAYS else replace(one, step=standing_aside(one.step)) for one in rows))
