"""Clauses and segments: where one wish of a message ends and the next may begin.

Punctuation ends a clause; a connective ("再", "顺便", "and also") only begins a new segment inside it, so that
"change my name and address" is still matched as one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agents.understanding.lexicon import FLAGS

_CLAUSE_END = re.compile(r"[,;。!?\n、]+|(?<![.A-Z])\.(?=\s|$)|(?<=[0-9a-z])\.{2,}", re.ASCII)
_GOES_ON = re.compile(
    r"\s*(?:改[成为到]|换成|改寄|应该是|也就是)"
)  # "改手机号，改成138…": what it is changed to is no new wish
_CONNECTIVE = re.compile(
    r"(?=[再顺另还然同并此atpb])"  # a first look that costs little
    r"(?:再|顺便|另外|还有|还想|还要|然后|同时|并且|此外|\b(?:and|also|then|plus|but|by the way|btw)\b)+\s*",
    FLAGS,
)

_IF = re.compile(r"[\s,]*(?:如果|若|要是|假如|倘若|万一|\b(?:if|in case|unless)\b)", FLAGS)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text inside one clause; `body` is where it begins after its connective."""

    start: int
    body: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The segments of a text in order, and where each starts."""

    segments: tuple[Segment, ...]
    starts: tuple[int, ...]

    def segment_at(self, position: int) -> int:
        """Index of the segment that a position is in, or that ends last before it."""
        return max(0, bisect_right(self.starts, position) - 1)


def conditional(text: str, segment: Segment) -> bool:
    """Whether the segment says under which condition something else is wanted ("如果没发货，就取消")."""
    return _IF.match(text, segment.body, segment.end) is not None


def layout(text: str, whole: Sequence[tuple[int, int]]) -> Layout:
    """The text cut up; nothing is cut inside a `whole` span (an address may hold commas, an amount too)."""
    clauses = []
    start = 0
    for match in _CLAUSE_END.finditer(text):
        if any(left < match.end() and match.start() < right for left, right in whole):
            continue
        if match[0] in ",、" and _GOES_ON.match(text, match.end()):
            continue
        clauses.append((start, match.start()))
        start = match.end()
    clauses.append((start, len(text)))
    kept = [(left, right) for left, right in clauses if text[left:right].strip()]
    segments = [segment for left, right in kept for segment in _segments(text, left, right, whole)]
    return Layout(tuple(segments), tuple(segment.start for segment in segments))


def _segments(text: str, left: int, right: int, whole: Sequence[tuple[int, int]]) -> list[Segment]:
    # A connective at the very beginning joins nothing: "also refund 1001" is one wish.
    starts = [(left, left)]
    for match in _CONNECTIVE.finditer(text, left, right):
        if any(start < match.end() and match.start() < end for start, end in whole):
            continue
        if not text[starts[-1][1] : match.start()].strip():
            starts[-1] = (starts[-1][0], match.end())
        else:
            starts.append(match.span())
    ends = [start for start, _ in starts[1:]] + [right]
    return [Segment(start, body, end) for (start, body), end in zip(starts, ends, strict=True)]
