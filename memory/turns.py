"""A conversation as turns: what both sides said, and the things that each message names or shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Who = Literal["customer", "agent"]
Role = Literal["subject", "offered", "aside"]


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that a message names or shows: an order, an item, or what else a shop talks of.

    `kind` and `name` are its identity, `values` what is known of it by the names of the slots. `role`: the message
    is about it, offers it to choose from (`number` is its place in the list), or names it by the way.
    """

    kind: str
    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    role: Role = "subject"
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One message of either side, masked as the state keeps it; `at` in milliseconds."""

    message_id: str
    who: Who
    text: str
    at: int = 0
    things: tuple[Thing, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """What the customer said and what was answered, in order; `number` counts up from the oldest that is known."""

    number: int
    said: tuple[Said, ...]
    intent: str = ""
