"""Amounts in yuan, read exactly (case E11): what is not exact money in yuan is found, named and refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import chain, islice

from agents.understanding.lexicon import FLAGS
from agents.understanding.numerals import ENGLISH, NUMERAL, number
from schemas.base import fen

Hit = tuple[str, str, int, int]  # field, value, start, end, in the folded text
MOST = 50  # hits of one pattern: every hit is compared with the others, and nobody says more in earnest

_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?[百千万k]?"
_ALONE = r"(?<![\w.+\-])(?<![0-9],)"  # "1e3", "-50" and "1_000" are no amounts
_AFTER_WORD = rf"(?:{_ALONE}|(?<=[a-z][a-z]))"  # "of350 dollars", but not "1e3"
_NUMERALS = rf"(?<![{NUMERAL}])[{NUMERAL}]+"  # only where a run begins: else a long one costs its square
_WORDS = rf"(?<![\w\-]){ENGLISH}"
_CURRENCIES = (
    r"美元|美金|美刀|刀(?!片|具|叉|架)|欧元|英镑|日元|日币|港币|港元|台币|韩元|卢布|泰铢|加元|澳元|新币|[$€£]"
    r"|\b(?:dollars?|usd|euros?|eur|pounds?|gbp|bucks|cents?|yen|jpy|hkd|rupees?|cad|aud)\b"
)
# Behind a number: so many things, or a date. Units of money are not here, they have patterns of their own.
_COUNTED = "[件个天次双条号月年日点套台瓶盒箱本包份部支把张只顶副对颗片斤克米单笔楼栋码]"
_FOREIGN = re.compile(
    rf"[$€£]\s*{_NUMBER}|(?:{_AFTER_WORD}{_NUMBER}|{_NUMERALS}|{_WORDS})\s*(?:{_CURRENCIES})",
    FLAGS,
)
_YUAN = re.compile(
    rf"[¥]\s*(?P<sign>{_NUMBER})(?![\w.])"
    rf"|(?:\b(?:rmb|cny)|人民币)\s*(?P<code>{_NUMBER})(?![\w.])"
    rf"|(?:{_AFTER_WORD}(?P<digits>{_NUMBER})\s*|(?P<numeral>{_NUMERALS})|(?P<words>{_WORDS})\s+(?=[yrck]))"
    rf"(?:(?:块钱?|元)(?P<tenth>[0-9一二两三四五六七八九半])(?:毛|角)?(?![{NUMERAL}0-9.个件天])"
    r"|元|块钱?|圆|\b(?:yuan|rmb|cny|kuai)\b|(?P<dime>[毛角]钱?(?!衣|巾|发|笔|落)))",
    FLAGS,
)
_UNREADABLE = re.compile(  # what stands before a currency and is no exact figure is told, not passed over
    rf"(?<![\w.])(?:[\-+]?[0-9][0-9a-z_.,+\-]{{0,30}}|inf(?:inity)?|nan|true|false)\s*(?:元|块钱?|\byuan\b|\brmb\b|{_CURRENCIES})",
    FLAGS,
)
_CUED = re.compile(
    r"(?:金额|赔偿?我?|补偿我?|退款?给?我|退款金额|amount|refund(?: me)?|退)\s*(?:是|为|改[成为]|of|to|is|:|=|我)?\s*"
    r"(?P<bare>[0-9]{1,3}(?:\.[0-9]{1,2})?|[0-9]+\.[0-9]{1,2})(?![\w.]|\s*" + _COUNTED + ")",
    FLAGS,
)
_CORRECTED = re.compile(
    r"(?:改[成为到]?|换成|只要?退?|退|(?:change|make|set) it(?: to)?|only|just)\s*"
    r"(?P<bare>[0-9]{1,3}(?:\.[0-9]{1,2})?|[0-9]+\.[0-9]{1,2})"  # four digits may be an order
    r"(?![\w.]|\s*" + _COUNTED + ")",
    FLAGS,
)
_BARE = re.compile(rf"\s*({_NUMBER}|[{NUMERAL}]+|{ENGLISH})\s*", FLAGS)


def amounts(text: str, *, expected: bool = False, confirming: bool = False) -> Iterator[Hit]:
    """Hits of field amount (value in fen), foreign_amount or refused_amount (value as written).

    `expected` also takes a bare number that is the whole text: the customer was asked for an amount.
    `confirming`: an amount was shown to be confirmed, so that "make it 30" names another.
    """
    # Foreign money first: "50 dollars" must not be read as 50 yuan by a looser pattern.
    taken: list[tuple[int, int]] = []
    for match in islice(_FOREIGN.finditer(text), MOST):
        taken.append(match.span())
        yield "foreign_amount", match[0].strip(), *match.span()
    for match in islice(_YUAN.finditer(text), MOST):
        if not _overlaps(match.span(), taken):
            taken.append(match.span())
            yield _exact(match)
    cued = chain(_CUED.finditer(text), _CORRECTED.finditer(text) if expected or confirming else ())
    for match in islice(cued, MOST):
        if not _overlaps(match.span("bare"), taken):
            taken.append(match.span("bare"))
            yield "amount", str(fen(match["bare"])), *match.span("bare")
    for match in islice(_UNREADABLE.finditer(text), MOST):
        if not _overlaps(match.span(), taken):
            taken.append(match.span())
            yield "refused_amount", match[0], *match.span()
    whole = _BARE.fullmatch(text) if expected and not taken else None
    if whole:
        yield _hit(whole[1], None, *whole.span(1))


def _exact(match: re.Match[str]) -> Hit:
    figure = match["sign"] or match["code"] or match["digits"] or match["numeral"] or match["words"]
    field, value, start, end = _hit(figure, match["tenth"], *match.span(), dimes=match["dime"] is not None)
    return field, value if field == "amount" else match[0], start, end


def _hit(figure: str, tenth: str | None, start: int, end: int, *, dimes: bool = False) -> Hit:
    try:
        value = number(figure.replace(",", "")) / (10 if dimes else 1)
        if tenth:
            value += (5 if tenth == "半" else number(tenth)) / Decimal(10)
        if value > Decimal(100_000_000):
            return "refused_amount", figure, start, end
        return "amount", str(fen(f"{value:f}")), start, end
    except (ValueError, InvalidOperation):
        return "refused_amount", figure, start, end


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in taken)
