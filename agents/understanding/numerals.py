"""Chinese numerals as exact decimals, for amounts: 五十 is 50, 一百二十 is 120, 三块五 is 3.5."""

from __future__ import annotations

from decimal import Decimal

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
NUMERAL = "零〇一二两三四五六七八九十百千万"


def number(text: str) -> Decimal:
    """The value of a Chinese numeral below 100 million, or of ASCII digits with 百, 千 or 万 behind.

    Raises ValueError when the text is neither.
    """
    if text[:1].isdigit() and text.isascii():
        return Decimal(text)
    if text[:1].isdigit() and text[:1].isascii():
        return Decimal(text[:-1]) * _scale(text[-1])
    high, separator, low = text.partition("万")
    if not separator:
        return Decimal(_below_wan(text))
    tail = _below_wan(low) if low else 0
    return Decimal(_below_wan(high) * 10_000 + (tail * 1_000 if len(low) == 1 else tail))  # 三万五 is 35000


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
