"""planning: flows, people, plans and replies."""

from __future__ import annotations

from agents.planning.pack import Config, load_pack
from agents.planning.step import INPUTS, make_step
from streams.runtime.table import Row
from streams.settings import Settings


def row(settings: Settings) -> Row:
    """The planning processor over the built-in files and the settings' own."""
    config = Config(review_ms=settings.review_ms, handover_ms=settings.handover_ms)
    return Row(
        name="planning",
        inputs=INPUTS,
        step=make_step(load_pack(settings.packs), config),
        failure_domain="one conversation: its flow, its plan, or a file of the pack",
        degrade="neutral wording and a person, with the whole context; nothing is executed on a guess; "
        "a record that the step can't take is a dead letter, and the conversation goes on with the next",
        alarm="InterlockHandovers: interlock_decisions_by_rule_total with rule planning.handover rises",
    )
