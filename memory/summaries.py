"""Progressive summaries: what is left of an older turn, at most 50 characters (R-000-25)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory.turns import Said, Turn

MOST_CHARS = 50
_CLAUSES = re.compile(r"[,，.。;；:：!！?？\n]+")


def summarise(turn: Turn) -> str:
    """The intent, what it was about and the first words of the answer, in that order, as far as 50 characters go."""
    parts = [part for part in (turn.intent, *_names(turn.said)) if part]
    head = " ".join(parts)
    answer = next((one.text for one in reversed(turn.said) if one.who == "agent"), "")
    asked = next((one.text for one in turn.said if one.who == "customer"), "")
    return _cut(" | ".join(part for part in (head, _first(asked) if not head else "", _first(answer)) if part))


def _names(said: Sequence[Said]) -> Iterator[str]:
    """Identities in the order told; what was only offered or named by the way is left out."""
    seen: set[str] = set()
    for thing in (thing for one in said for thing in one.things if thing.role == "subject"):
        if thing.name not in seen:
            seen.add(thing.name)
            yield thing.name


def _first(text: str) -> str:
    return next((part.strip() for part in _CLAUSES.split(text) if part.strip()), "")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 1].rstrip() + "…"
