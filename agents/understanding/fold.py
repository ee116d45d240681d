"""Text as the patterns see it: widths folded, invisible characters and broken lines mended, spoken digits as digits.

Every folded character knows where it stood, so that each span of a reading indexes the raw text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from agents.understanding.numerals import spoken_digits

_SPOKEN = str.maketrans("零〇幺一二三四五六七八九", "001123456789")
_SPOKEN_RUN = re.compile(r"(?<![0-9])[零〇幺一二三四五六七八九]{4,}(?![0-9])")
_KEPT_CONTROLS = "\t\n\r"
_VARIATION = {*map(chr, range(0xFE00, 0xFE10)), "\u034f"}
_HAN = "[\u3400-\u9fff]"
_HAN_GAP = re.compile(rf"(?<={_HAN})[ \t]+(?={_HAN})")
# A picture's text is broken where its line was full. A line that begins with one of these may be a wish of its own.
_STARTS_ZH = "我帮请麻查退换订单地电手还另再顺什怎多少能可为你想要给把取投开发申物快谢好不"
_STARTS_EN = (
    r"i\b|i'|please|can\b|could|where|when|what|how|why|and\b|also|then|my\b|refund|return|exchange|cancel|track|"
    r"change|check|order\b|hi\b|hello|thanks?|yes\b|no\b|not\b|is\b|do\b|the order"
)
_HAN_BREAK = re.compile(rf"(?<={_HAN})[ \t]*\r?\n[ \t]*(?={_HAN})(?![{_STARTS_ZH}])")
_WORD_BREAK = re.compile(rf"(?<=[a-z])[ \t]*\r?\n[ \t]*(?=[a-z])(?!{_STARTS_EN})")
_SAID = r"(?:(?:double|triple) )?(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_SAID_RUN = re.compile(
    rf"(?<![A-Za-z]){_SAID}(?:[ \-]+{_SAID}){{2,}}(?![A-Za-z])",
    re.IGNORECASE | re.ASCII,
)
_SAID_WORD = re.compile(_SAID, re.IGNORECASE)
_SHORTEST_SAID = 4  # digits: "one, two, three" is said of other things than numbers
_MAY_BE_SAID = re.compile(r"zero|oh|one|two|three|four|five|six|seven|eight|nine", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text and, for each of its characters, the raw span that it came from."""

    text: str
    origin: tuple[int, ...]
    ends: tuple[int, ...]

    def raw(self, start: int, end: int) -> tuple[int, int]:
        """The raw span, in code points, of a folded span that is not empty."""
        return self.origin[start], self.ends[end - 1]


@lru_cache(maxsize=8_192)
def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf" or char in _VARIATION or (category == "Cc" and char not in _KEPT_CONTROLS):
        return ""  # zero-width, direction marks, NUL: invisible to the customer, so also to the patterns
    if char == "，":
        return ", "  # never the comma of "1,000": the space tells them apart
    return unicodedata.normalize("NFKC", char) if char > "\x7f" else char


def fold(text: str) -> Folded:
    """Fold for matching (cases B17, B27, F05, F11): NFKC character by character, invisibles out, spoken digits.

    Spaces and line breaks that a picture's text has inside a word or a sentence are mended, too.
    """
    indexes = range(len(text))
    if text.isascii() and (text.isprintable() or not _hidden(text)):
        view, origin, ends = text, tuple(indexes), tuple(range(1, len(text) + 1))
    else:
        view, origin = _widths(text)
        ends = tuple(index + 1 for index in origin)
    if not view.isascii():
        view = _SPOKEN_RUN.sub(lambda run: run[0].translate(_SPOKEN), view)
    folded = Folded(view, origin, ends)
    for pattern, said in _MENDED:
        folded = _mended(folded, pattern, said)
    return folded


def _hidden(text: str) -> bool:
    return any(not char.isprintable() and char not in _KEPT_CONTROLS for char in text)


def _widths(text: str) -> tuple[str, tuple[int, ...]]:
    parts: list[str] = []
    origin: list[int] = []
    for index, char in enumerate(text):
        folded = _fold_char(char)
        parts.append(folded)
        origin.extend([index] * len(folded))
    return "".join(parts), tuple(origin)


def _mended(folded: Folded, pattern: re.Pattern[str], said: Callable[[str], str]) -> Folded:
    """Each match replaced; what it becomes stands for the whole match's raw span, digit words one by one."""
    text = folded.text
    if pattern is _SAID_RUN and not _MAY_BE_SAID.search(text):
        return folded
    parts: list[str] = []
    origin: list[int] = []
    ends: list[int] = []
    done = 0
    for match in pattern.finditer(text):
        for start, end, becomes in _pieces(match, said):
            parts += (text[done:start], becomes)
            origin += [*folded.origin[done:start], *[folded.origin[start]] * len(becomes)]
            ends += [*folded.ends[done:start], *[folded.ends[end - 1]] * len(becomes)]
            done = end
    if not parts:
        return folded
    return Folded("".join([*parts, text[done:]]), (*origin, *folded.origin[done:]), (*ends, *folded.ends[done:]))


def _pieces(match: re.Match[str], said: Callable[[str], str]) -> Iterator[tuple[int, int, str]]:
    if match.re is not _SAID_RUN:
        yield *match.span(), said(match[0])
        return
    if len(said(match[0])) < _SHORTEST_SAID:
        return
    # Each word, with the gap before it, is its digits: a part of a number still has a span of its own.
    at = match.start()
    for word in _SAID_WORD.finditer(match[0]):
        end = match.start() + word.end()
        yield at, end, said(word[0])
        at = end


_MENDED: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (_HAN_BREAK, lambda _: ""),
    (_HAN_GAP, lambda _: ""),
    (_WORD_BREAK, lambda _: " "),
    (_SAID_RUN, spoken_digits),
)


def scrub(text: str) -> str:
    """The text without NUL and without lone surrogates, which no store takes (cases B15, B17)."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
