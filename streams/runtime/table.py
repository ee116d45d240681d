"""A processor is a row: its input topics, its pure step, and what happens when it fails (R-002-49)."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.step import Needs, Step


@dataclass(frozen=True, slots=True)
class Row:
    """One processor. Rows with the same input topic run in table order inside one decision."""

    name: str
    inputs: tuple[str, ...]
    step: Step
    failure_domain: str
    degrade: str
    alarm: str
    needs: Needs | None = None
    opens_seal: bool = False
    # only where nothing depends on it: what it would have set is missing in the decision
    optional: bool = False  # when its step raises, its own part of the decision is left out, and that is said


@dataclass(frozen=True, slots=True)
class Domain:
    """A part that is no row of the table and can fail by itself, stated in the same three words."""

    name: str
    failure_domain: str
    degrade: str
    alarm: str
