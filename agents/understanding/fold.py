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

Piece = tuple[int, int, str]  # start, end, what it becomes
Pieces = Callable[[re.Match[str]], Iterator[Piece]]

_MOST_OF_ONE = 4  # characters that one may fold to: U+FDFA is eighteen, and a long text of it would be an attack
_SPOKEN = str.maketrans("零〇幺一二三四五六七八九", "001123456789")
_SPOKEN_RUN = re.compile(r"(?<![0-9])[零〇幺一二三四五六七八九]{4,}(?![0-9])")
_KEPT_CONTROLS = "\t\n\r"
_VARIATION = {*map(chr, range(0xFE00, 0xFE10)), "\u034f"}
_HAN = "[\u3400-\u9fff]"
_SPACES = re.compile(  # between a Chinese character and what it touches a space says nothing; elsewhere one is enough
    rf"(?<={_HAN})[ \t]+(?=[\u3400-\u9fffA-Za-z0-9])|(?<=[A-Za-z0-9])[ \t]+(?={_HAN})|(?<=\S )[ \t]+(?=\S)"
)
# A picture's text is broken where its line was full. A line stays one where it may begin a wish of its own, unless the
# line before it can't end there.
_OPEN_ZH = "要想把请帮给在是改退换查的我你这那个和跟订开申取买到从为路街道巷弄村镇"
_BEGINS_ZH = "我|帮|请|麻烦|查|退(?!款|给|回|到)|换|还|另|再|顺便|取消|申请|转人|开发?票|改|投诉|谢|你好|订单|地址|电话"
_OPEN_EN = (
    r"\b(?:a|an|the|my|your|his|her|our|this|that|i|to|for|of|on|in|at|by|with|from|and|or|is|are|was|be|been|am|have|has|"
    r"had|not|want|would|like|need|can|could|please|order|number|it|me|you|will|do|does|did|because|where|when|what|"
    r"cancel|refund|return|exchange|track|change|check|send|find|see|get)"
)
_BEGINS_EN = (
    r"i\b|i'|please|can\b|could|where|when|what|how|why|and\b|also|then|my\b|refund|return|exchange|cancel|track|"
    r"change|check|order\b|hi\b|hello|thanks?|yes\b|no\b|not\b|is\b|do\b|the order"
)
_BREAK_ZH = re.compile(
    rf"(?<=[{_OPEN_ZH}])[ \t]*\r?\n[ \t]*(?=[\u3400-\u9fffA-Za-z0-9])"
    rf"|(?<={_HAN})[ \t]*\r?\n[ \t]*(?={_HAN})(?!{_BEGINS_ZH})"
    r"|(?<=[0-9])[ \t]*\r?\n[ \t]*(?=[号元块件个日月年天点码楼室层栋的])"
    r"|[ \t]*\r?\n[ \t]*(?=[。！？，,;.?!]|改[ \t]*[成为到]|换[ \t]*成)"
)
_LINE = re.compile(r"(?<=\S)[ \t]*\r?\n[ \t]*(?=[A-Za-z0-9#])")
_ENDS_OPEN = re.compile(rf"{_OPEN_EN}$", re.IGNORECASE | re.ASCII)
_NAME_GOES_ON = re.compile(r"(?:^|[ \n])(?:[A-Z][a-z]+|[0-9]{1,5})$", re.ASCII)  # "7 Hill / Lane"
_BEGINS = re.compile(_BEGINS_EN, re.IGNORECASE | re.ASCII)
_LONGEST_WORD = 12  # characters looked back at for an open word
_FILLER = re.compile(
    rf"[呃唔]+(?={_HAN})|(?<![A-Za-z])(?:u[mh]+|erm+|hmm+)\b[, ]+(?=[A-Za-z])", re.IGNORECASE | re.ASCII
)
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
    folded = unicodedata.normalize("NFKC", char) if char > "\x7f" else char
    return folded if len(folded) <= _MOST_OF_ONE else char


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
    for hint, pattern, pieces in _MENDED:
        if hint.search(folded.text):
            folded = _mended(folded, pattern, pieces)
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


def _mended(folded: Folded, pattern: re.Pattern[str], pieces: Pieces) -> Folded:
    """Each piece replaced; what it becomes stands for the whole piece's raw span."""
    text = folded.text
    parts: list[str] = []
    origin: list[int] = []
    ends: list[int] = []
    done = 0
    for match in pattern.finditer(text):
        for start, end, becomes in pieces(match):
            parts += (text[done:start], becomes)
            origin += [*folded.origin[done:start], *[folded.origin[start]] * len(becomes)]
            ends += [*folded.ends[done:start], *[folded.ends[end - 1]] * len(becomes)]
            done = end
    if not parts:
        return folded
    return Folded("".join([*parts, text[done:]]), (*origin, *folded.origin[done:]), (*ends, *folded.ends[done:]))


def _dropped(match: re.Match[str]) -> Iterator[Piece]:
    yield *match.span(), ""


def _joined(match: re.Match[str]) -> Iterator[Piece]:
    """A line's end as a space, where the sentence goes on."""
    text, start, end = match.string, *match.span()
    open_before = _ENDS_OPEN.search(text[max(0, start - _LONGEST_WORD) : start]) is not None
    last = text[start - 1]
    goes_on = (last.islower() or last.isdigit()) and text[end].islower() and not _BEGINS.match(text, end)
    named = _NAME_GOES_ON.search(text[max(0, start - _LONGEST_WORD) : start]) and text[end].isupper()
    if open_before or goes_on or (named and not _BEGINS.match(text, end)):
        yield start, end, " "


def _said(match: re.Match[str]) -> Iterator[Piece]:
    """Each word, with the gap before it, is its digits: a part of a number still has a span of its own."""
    if len(spoken_digits(match[0])) < _SHORTEST_SAID:
        return
    at = match.start()
    for word in _SAID_WORD.finditer(match[0]):
        end = match.start() + word.end()
        yield at, end, spoken_digits(word[0])
        at = end


_MENDED: tuple[tuple[re.Pattern[str], re.Pattern[str], Pieces], ...] = (  # a first look that costs little, pattern, ...
    (re.compile("\n"), _BREAK_ZH, _dropped),
    (re.compile("\n"), _LINE, _joined),
    (re.compile("[呃唔]|[um][mhr]", re.IGNORECASE), _FILLER, _dropped),
    (re.compile("[ \t]"), _SPACES, _dropped),
    (_MAY_BE_SAID, _SAID_RUN, _said),
)


def scrub(text: str) -> str:
    """The text without NUL and without lone surrogates, which no store takes (cases B15, B17)."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
