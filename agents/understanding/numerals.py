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
    return Decimal(_below_wan(high) * 10_000 + (_below_wan(low) if low else 0))


def _scale(char: str) -> int:
    if char not in "百千万":
        message = f"{char!r} is not 百, 千 or 万"
        raise ValueError(message)
    return 10_000 if char == "万" else _UNITS[char]


def _below_wan(text: str) -> int:
    total, digit, unit = 0, None, 1
    for char in text:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _UNITS:
            unit = _UNITS[char]
            total += (1 if digit is None else digit) * unit
            digit = None
        else:
            message = f"{char!r} in {text!r} is not a Chinese numeral"
            raise ValueError(message)
    if not text:
        message = "an empty numeral"
        raise ValueError(message)
    if digit is None:
        return total
    colloquial = unit >= 100 and text[-2] in _UNITS  # 一百二 is 120, 一百零二 is 102
    return total + digit * (unit // 10 if colloquial else 1)
