"""Reads texts with the package's own reader, and shows a reading in few words."""

from __future__ import annotations

from typing import Any

from agents.understanding.embedded import embedded
from agents.understanding.port import Context, Expects, Reading, Slots

RULES = embedded()


def read(text: str, expects: Expects | None = None, flow: str | None = None, language: str | None = None) -> Reading:
    """The reading of a text, where the flow asked for `expects`."""
    return RULES.read(text, Context(flow=flow, expects=expects, language=language))


def intents(text: str, expects: Expects | None = None, flow: str | None = None) -> list[str]:
    """The intents of a text in order."""
    return [wish.intent for wish in read(text, expects, flow).wishes]


def filled(slots: Slots) -> dict[str, Any]:
    """The slots that have a value."""
    return {name: value for name in Slots.__slots__ if (value := getattr(slots, name)) is not None}


def slots(text: str, expects: Expects | None = None) -> dict[str, Any]:
    """The main wish's slots."""
    return filled(read(text, expects).wishes[0].slots)


def spans(text: str, field: str) -> list[str]:
    """The raw text that each evidence of a field points at."""
    return [text[found.start : found.end] for found in read(text).evidence if found.field == field]


def values(text: str, field: str) -> list[str]:
    """The values of a field's evidence."""
    return [found.value for found in read(text).evidence if found.field == field]
