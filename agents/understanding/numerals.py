"""Chinese and English numerals as exact decimals, for amounts: 五十 is 50, 一百二 is 120, "fifty five" is 55."""

from __future__ import annotations

import re
from decimal import Decimal

_FORMAL = str.maketrans("壹贰叁肆伍陆柒捌玖拾佰仟萬俩", "一二三四五六七八九十百千万两")
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
NUMERAL = "零〇一二两三四五六七八九十百千万壹贰叁肆伍陆柒捌玖拾佰仟"
_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_WORD = "|".join((*_ONES, *_TENS, "hundred", "thousand"))
ENGLISH = rf"(?:(?:an?|{_WORD})(?:(?: and |[ -])(?:{_WORD})){{0,12}})"
"""Pattern of English number words; what it finds may still be no number ("an" alone)."""


def spoken_digits(text: str) -> str:
    """Digits that were said one by one in English: "one double zero oh" is "1000"."""
    times, digits = 1, ""
    for word in re.split(r"[ \-]+", text.lower()):
        if word in ("double", "triple"):
            times = 2 if word == "double" else 3
        else:
            digits += ("0" if word == "oh" else str(_ONES[word])) * times
            times = 1
    return digits


def number(text: str) -> Decimal:
    """The value of a numeral below 100 million: Chinese, English, or ASCII digits with 百, 千, 万 or k behind.

    Raises ValueError when the text is none of them.
    """
    text = text.translate(_FORMAL)
    if text[:1].isalpha() and text.isascii():
        return Decimal(_english(text.lower()))
    if text[:1].isdigit() and text[-1:] in "kK":
        return Decimal(text[:-1]) * 1_000
    if text[:1].isdigit() and text.isascii():
        return Decimal(text)
    if text[:1].isdigit() and text[:1].isascii():
        return Decimal(text[:-1]) * _scale(text[-1])
    high, separator, low = text.partition("万")
    if not separator:
        return Decimal(_below_wan(text))
    tail = _below_wan(low) if low else 0
    return Decimal(_below_wan(high) * 10_000 + (tail * 1_000 if len(low) == 1 else tail))  # 三万五 is 35000


def _english(text: str) -> int:
    """Parts go down: "two hundred and five" is one number, "five two hundred" is none."""
    total, part, last = 0, 0, 1_000
    words = text.replace("-", " ").split()
    for place, word in enumerate(words):
        if word == "thousand" and part and not total:
            total, part, last = part * 1_000, 0, 1_000
        elif word == "hundred" and 0 < part < 10 and last < 100:
            part, last = part * 100, 100
        elif word in ("a", "an") and place == 0 and words[1:2] and words[1] in ("hundred", "thousand"):
            part, last = 1, 1
        elif word in _TENS and last >= 100:
            part, last = part + _TENS[word], 10
        elif word in _ONES and (last >= 100 or (last == 10 and 0 < _ONES[word] < 10)):
            part, last = part + _ONES[word], 1
        elif word != "and" or place in (0, len(words) - 1):
            message = f"{word!r} in {text!r} makes it no English numeral"
            raise ValueError(message)
    return total + part


def _scale(char: str) -> int:
    if char not in "百千万":
        message = f"{char!r} is not 百, 千 or 万"
        raise ValueError(message)
    return 10_000 if char == "万" else _UNITS[char]


def _below_wan(text: str) -> int:
    """Units go down and digits never stand side by side: "二三百" is a guess and "三百二百" two sums, not one."""
    total, unit = 0, 10_000
    digit: int | None = None
    for char in text:
        if char in _DIGITS and not digit:
            digit = _DIGITS[char]
        elif _UNITS.get(char, unit) < unit and digit != 0:
            unit = _UNITS[char]
            total += (digit or 1) * unit
            digit = None
        else:
            message = f"{char!r} in {text!r} makes it no Chinese numeral"
            raise ValueError(message)
    if not text:
        message = "an empty numeral"
        raise ValueError(message)
    if digit is None:
        return total
    colloquial = unit >= 100 and text[-2:-1] in _UNITS  # 一百二 is 120, 一百零二 is 102
    return total + digit * (unit // 10 if colloquial else 1)
