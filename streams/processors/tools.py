"""tools: the last gates before a call runs, and its one outcome."""

from __future__ import annotations

from agents.planning.pack import load_pack
from agents.tools.step import INPUTS, make_step
from streams.runtime.table import Row
from streams.settings import Settings


def row(settings: Settings) -> Row:
    """The tools processor over the built-in tool files and the settings' own."""
    return Row(
        name="tools",
        inputs=INPUTS,
        step=make_step(load_pack(settings.packs).tools),
        failure_domain="one call: its arguments, its service, or its outcome",
        degrade="refused with a structured reason; a query is said to have failed, a change goes to a person",
        alarm="InterlockToolsFailing: interlock_tool_outcomes_total with status failure, timeout or unknown rises",
    )
