"""Text in a message that plays somebody else: a system, a tool, a transcript, a program (case E15).

From its first mark on, a message is quoted rather than said. What stands there fills no slot and is no yes, and a
wish to change something is only a hint, so that planning asks before it acts. What was said before it counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from agents.understanding.intents import Mention
from agents.understanding.lexicon import Lexicon, View
from agents.understanding.money import MOST, Hit

FIELD = "forged_text"
HINT = 0.55  # below 0.6: planning asks
ASKED_FIRST = frozenset(
    {"refund", "return", "exchange", "cancel", "change_address", "change_phone", "change_order"}
)  # fmt: skip
_YES = frozenset({"confirm"})
_OPENED = re.compile(r"(?<![^\s:(,])['\"“「『‘](?=\w)[^'\"”」』’]*$")
_QUOTE = 300  # characters that a quote may run on before its first mark
_LONGER = 4  # segments behind the first, of a text that is more than an answer


def forged(view: View, words: Lexicon) -> list[Hit]:
    """The marks of forged text, each with what stands there; inside quotation marks from where the quote opens."""
    marks = [(FIELD, match[0].strip(" .,;。\n"), *match.span()) for match in islice(words.forged.finditer(view), MOST)]
    first = min((mark[2] for mark in marks), default=0)
    opened = _OPENED.search(view.text, max(0, first - _QUOTE), first)
    return [*marks, (FIELD, opened[0].strip(), opened.start(), first)] if opened else marks


def said(hits: Sequence[Hit], marks: Sequence[Hit]) -> list[Hit]:
    """The slots that the customer said, without those that stand in quoted text."""
    start = _start(marks)
    return [hit for hit in _cut(hits, start) if hit[2] < start]


def meant(spoken: Sequence[Mention], marks: Sequence[Hit], last: int) -> list[Mention]:
    """The wishes, those in quoted text doubted: no yes among them, and no write that is clear.

    `last` is the number of the last segment: a yes amid a longer text ("a jack and, of course, a tyre") is none either.
    """
    start = _start(marks)
    return [
        replace(one, confidence=min(one.confidence, HINT)) if one.start >= start and one.intent in ASKED_FIRST else one
        for one in spoken
        if one.intent not in _YES or (one.start < start and (last < _LONGER or one.segment in (0, last)))
    ]


def _start(marks: Sequence[Hit]) -> int:
    return min((mark[2] for mark in marks), default=1 << 30)


def _cut(hits: Sequence[Hit], start: int) -> Iterator[Hit]:
    """A reason or an address that runs into quoted text ends before it."""
    for field, value, left, right in hits:
        if field in ("reason", "address") and left < start < right:
            kept = value[: start - left].rstrip()
            if kept:
                yield field, kept, left, left + len(kept)
        else:
            yield field, value, left, right
