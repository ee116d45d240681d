"""Text as the patterns see it: widths folded, invisible characters left out, spoken digits as digits.

Every folded character knows where it stood, so that each span of a reading indexes the raw text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_SPOKEN = str.maketrans("零〇幺一二三四五六七八九", "001123456789")
_SPOKEN_RUN = re.compile(r"(?<![0-9])[零〇幺一二三四五六七八九]{4,}(?![0-9])")
_KEPT_CONTROLS = "\t\n\r"
_VARIATION = {*map(chr, range(0xFE00, 0xFE10)), "\u034f"}


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text and, for each of its characters, the raw index that it came from."""

    text: str
    origin: tuple[int, ...]

    def raw(self, start: int, end: int) -> tuple[int, int]:
        """The raw span, in code points, of a folded span that is not empty."""
        return self.origin[start], self.origin[end - 1] + 1


@lru_cache(maxsize=8_192)
def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf" or char in _VARIATION or (category == "Cc" and char not in _KEPT_CONTROLS):
        return ""  # zero-width, direction marks, NUL: invisible to the customer, so also to the patterns
    if char == "，":
        return ", "  # never the comma of "1,000": the space tells them apart
    return unicodedata.normalize("NFKC", char) if char > "\x7f" else char


def fold(text: str) -> Folded:
    """Fold for matching (cases B17, B27, F05): NFKC character by character, invisibles out, spoken digits."""
    # Most English texts: nothing to fold, and no table of indexes to build character by character.
    if text.isascii() and text.isprintable():
        return Folded(text, tuple(range(len(text))))
    parts: list[str] = []
    origin: list[int] = []
    for index, char in enumerate(text):
        folded = _fold_char(char)
        parts.append(folded)
        origin.extend([index] * len(folded))
    view = _SPOKEN_RUN.sub(lambda run: run[0].translate(_SPOKEN), "".join(parts))
    return Folded(view, tuple(origin))


def scrub(text: str) -> str:
    """The text without NUL and without lone surrogates, which no store takes (cases B15, B17)."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
