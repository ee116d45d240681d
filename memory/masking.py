"""Masking of phones, cards, emails, names and addresses in Chinese and English text (promise 9, R-000-12).

No pattern uses a word boundary: in Chinese text the data touches the words (case F09). A mask keeps the
length of the text, so a span means the same in the clear and in the masked text.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from memory.personal import hidden_of, personal

Kind = Literal["phone", "id_card", "bank_card", "email", "name", "address"]
Span = tuple[Kind, int, int]

# What people and keyboards put between groups of digits, zero-width characters included.
_SEPARATOR = r"[ \t\u00a0\u2000-\u200d\u2060\u3000\ufeff.\-\u2010-\u2015\u2212\u00b7_()/]"
_SEP = _SEPARATOR + "{0,3}"
_LEFT, _RIGHT = "(?<![0-9])", "(?![0-9])"  # a longer number is not a phone with something around it (case F07)
_SPOKEN_DIGIT = "[零〇一幺二两三四五六七八九]"

_EMAIL = re.compile(r"([A-Za-z0-9._%+\-]{1,64})@(?:[A-Za-z0-9\-]{1,63}\.)+[A-Za-z]{2,24}")
_ID_CARD = re.compile(rf"{_LEFT}([1-9](?:{_SEP}[0-9]){{16}}{_SEP}[0-9Xx]){_RIGHT}")
# One pattern a length, longest first: of "card, space, three more digits" the card must be found.
_BANK_CARDS = [re.compile(rf"{_LEFT}([2-9](?:{_SEP}[0-9]){{{size - 1}}}){_RIGHT}") for size in (19, 18, 17, 16, 15)]
_MOBILE = re.compile(rf"{_LEFT}(?:(?:\+{_SEP}|00)?86{_SEP})?(1(?:{_SEP}[0-9]){{10}}){_RIGHT}")
_SPOKEN = re.compile(rf"(?<!{_SPOKEN_DIGIT})([一幺][三四五六七八九]{_SPOKEN_DIGIT}{{9}})(?!{_SPOKEN_DIGIT})")
_SAID = "(?:(?:double|triple) )?(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_SPOKEN_EN = re.compile(rf"(?<![A-Za-z])({_SAID}(?:[ ,\-]{{1,2}}{_SAID}){{5,10}})(?![A-Za-z])", re.IGNORECASE)
_SAID_WORD = re.compile("double|triple|zero|oh|one|two|three|four|five|six|seven|eight|nine", re.IGNORECASE)
_LANDLINE = re.compile(
    rf"{_LEFT}(\(?0(?:10|2[0-9]|[3-9][0-9]{{2}}){_SEPARATOR}{{1,3}}[2-9](?:{_SEP}[0-9]){{6,7}}){_RIGHT}"
)
_ABROAD = re.compile(rf"(\+{_SEP}[1-9](?:{_SEP}[0-9]){{7,14}}){_RIGHT}")
_AMERICAN = re.compile(rf"{_LEFT}(\(?[2-9][0-9]{{2}}[)\-. ]{{1,2}}[2-9][0-9]{{2}}[\-. ][0-9]{{4}}){_RIGHT}")
_HINT = re.compile(f"[0-9@一幺]|one[ ,-]{{1,2}}{_SAID}", re.IGNORECASE)

# Groups that people write a mobile number in; "1.5 2.5 3.5 4.5 5.5 6" is eleven digits, too, and a list of sizes.
_MOBILE_GROUPS = {(11,), (3, 4, 4), (3, 8), (7, 4), (3, 3, 5), (4, 4, 3), (4, 3, 4), (5, 6), (3, 5, 3), (3, 2, 2, 2, 2),
                  (5, 3, 3), (3, 4, 2, 2), (1, 3, 3, 4), (1, 10), (2, 3, 3, 3), (6, 5), (3, 6, 2)}  # fmt: skip
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_SAID_VALUES = {"oh": "0", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
                "seven": "7", "eight": "8", "nine": "9"}  # fmt: skip
_SPOKEN_VALUES = dict(zip("零〇一幺二两三四五六七八九", "0011223456789", strict=True))


@dataclass(frozen=True, slots=True)
class Masked:
    """One masked value: `start` and `end` are code points of the text that was given (and of the masked one)."""

    kind: Kind
    start: int
    end: int
    value: str
    shown: str

    @property
    def plain(self) -> str:
        """The value in ASCII without separators; a mobile number without its country prefix."""
        text = _fold(self.value)
        if self.kind == "email":
            return text
        if _SPOKEN_EN.fullmatch(text):
            return _said_digits(text)
        digits = "".join(_SPOKEN_VALUES.get(char, char) for char in _alnum(text)).upper()
        return re.sub(r"^(?:00)?86(?=1\d{10}$)", "", digits)


def mask(text: str) -> tuple[str, list[Masked]]:
    """The text with every sensitive value masked, and what was masked, in text order.

    Masking what is masked changes nothing: it goes on until nothing is found.
    """
    shown, spans = text, list[Span]()
    while found := _next(_fold(shown)):
        chars = list(shown)
        for span, hidden in found:
            spans.append(span)
            for index in hidden:
                chars[index] = "*"
        shown = "".join(chars)
    return shown, [Masked(kind, start, end, text[start:end], shown[start:end]) for kind, start, end in _merge(spans)]


def hide(kind: Literal["name", "address"], value: str) -> str:
    """A value that is known to be a name or an address, masked whatever its shape; of the same length."""
    shown = mask(value)[0]
    chars = list(shown)
    for index in hidden_of(kind, _fold(value)):
        chars[index] = "*"
    return "".join(chars)


def _next(folded: str) -> list[tuple[Span, list[int]]]:
    """What to mask in this look: numbers first, so that a phone behind an address is no part of it."""
    found: list[tuple[Span, list[int]]] = list(_found(folded)) if _HINT.search(folded) else []
    return found or list(personal(folded))


def _merge(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for kind, start, end in sorted(spans, key=lambda span: span[1:]):
        if merged and start < merged[-1][2]:
            merged[-1] = (merged[-1][0], merged[-1][1], max(end, merged[-1][2]))
        else:
            merged.append((kind, start, end))
    return merged


def _found(text: str) -> Iterator[tuple[Span, list[int]]]:
    """What to mask now, and the indexes to hide. The most specific kinds go first, and nothing overlaps."""
    taken = bytearray(len(text))
    for kind, pattern, check, hide in _RULES:
        match = pattern.search(text)
        while match:
            start, end = match.span()
            if any(taken[start:end]) or not check(match.group(1)):
                match = pattern.search(text, match.start() + 1)  # a rejected one must not swallow a good one
                continue
            taken[start:end] = b"\1" * (end - start)
            yield (kind, start, end), hide(text, *match.span(1))
            match = pattern.search(text, end)


def _fold_table() -> dict[int, int]:
    table = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    for code in range(0x80, sys.maxunicode + 1):
        digit = unicodedata.decimal(chr(code), None)
        if digit is not None:
            table[code] = ord("0") + digit
    return table


_FOLD = _fold_table()


def _fold(text: str) -> str:
    """Full-width letters and every alphabet's digits as ASCII, of the same length."""
    return text if text.isascii() else text.translate(_FOLD)


def _alnum(text: str) -> str:
    return "".join(char for char in text if char.isalnum())


def _any(_: str) -> bool:
    return True


def _mobile(text: str) -> bool:
    groups = tuple(len(group) for group in re.findall("[0-9]+", text))
    one_by_one = set(groups) == {1} and len(set(re.findall("[^0-9]+", text))) == 1
    return _alnum(text)[1] in "3456789" and (one_by_one or groups in _MOBILE_GROUPS)


def _said_digits(text: str) -> str:
    times, digits = 1, ""
    for word in _SAID_WORD.findall(text.lower()):
        digits += _SAID_VALUES.get(word, "") * times
        times = {"double": 2, "triple": 3}.get(word, 1)
    return digits


def _said_mobile(text: str) -> bool:
    return re.fullmatch("1[3-9][0-9]{9}", _said_digits(text)) is not None


def _id_card(text: str) -> bool:
    digits = _alnum(text).upper()
    try:
        born = date(int(digits[6:10]), int(digits[10:12]), int(digits[12:14]))
    except ValueError:
        return False
    total = sum(int(digit) * weight for digit, weight in zip(digits[:17], _ID_WEIGHTS, strict=True))
    return born.year >= 1900 and "10X98765432"[total % 11] == digits[17]


def _bank_card(text: str) -> bool:
    """Issuer prefix, its lengths and the Luhn sum: one in ten serial numbers has a right sum by chance."""
    digits = _alnum(text)
    size = len(digits)
    known = (
        (digits[:2] in ("34", "37") and size == 15)
        or ("2221" <= digits[:4] <= "2720" and size == 16)
        or (digits[0] in "345" and size in (16, 19))
        or ((digits[0] in "69" or digits[:2] == "81") and size >= 16)
    )
    return known and _luhn(digits)


def _luhn(digits: str) -> bool:
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(value - 9 if value > 9 else value for value in doubled)) % 10 == 0


def _values(text: str, start: int, end: int) -> list[int]:
    return [index for index in range(start, end) if text[index].isalnum()]


def _middle_four(text: str, start: int, end: int) -> list[int]:
    at = _values(text, start, end)
    first = (len(at) - 4) // 2
    return at[first : first + 4]


def _inner_words(text: str, start: int, end: int) -> list[int]:
    """All words but the first three and the last two: said with "double", no four of them are the middle digits."""
    words = [match.span() for match in _SAID_WORD.finditer(text, start, end)]
    return [index for left, right in words[3:-2] for index in range(left, right)]


def _inner(text: str, start: int, end: int) -> list[int]:
    return _values(text, start, end)[3:-4]


def _all_but_last_four(text: str, start: int, end: int) -> list[int]:
    return _values(text, start, end)[:-4]


def _local_part(_: str, start: int, end: int) -> list[int]:
    return list(range(start + (end - start > 1), end))


_RULES: tuple[tuple[Kind, re.Pattern[str], Callable[[str], bool], Callable[[str, int, int], list[int]]], ...] = (
    ("email", _EMAIL, _any, _local_part),
    ("id_card", _ID_CARD, _id_card, _inner),
    *(("bank_card", pattern, _bank_card, _all_but_last_four) for pattern in _BANK_CARDS),
    ("phone", _MOBILE, _mobile, _middle_four),
    ("phone", _SPOKEN, _any, _middle_four),
    ("phone", _SPOKEN_EN, _said_mobile, _inner_words),
    ("phone", _LANDLINE, _any, _middle_four),
    ("phone", _ABROAD, _any, _middle_four),
    ("phone", _AMERICAN, _any, _middle_four),
)
