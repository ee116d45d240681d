"""Order and item numbers: what is shaped like one, stands where one is named, and is nothing else (case F07)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from agents.understanding.lexicon import FLAGS
from agents.understanding.money import MOST, Hit

Span = tuple[int, int]

_DIGIT = re.compile("[0-9]")
_LEFT, _RIGHT = r"(?<![A-Za-z0-9_.*])", r"(?![A-Za-z0-9_*]|\.[0-9])"
_CUED = re.compile(
    r"(?:订单(?:的?编?号码?)?|单号|编号|流水号?|单子|\border(?: ?(?:numbers?|num|no\.?|id|#))?|#)"
    r"[\s:#=\"'是为]*(?:number |is |no )?(?P<id>(?=[A-Za-z]{0,6}[0-9])[A-Za-z0-9]{4,20})" + _RIGHT,
    FLAGS,
)
_OD = re.compile(_LEFT + r"(?P<id>OD[0-9]{6,18})" + _RIGHT, FLAGS)
_LONG = re.compile(_LEFT + r"(?P<id>(?=[A-Za-z0-9]*[0-9]{4})[A-Za-z0-9]{10,20})" + _RIGHT, FLAGS)
_GROUPED = re.compile(r"(?<![0-9\-])(?P<id>[0-9]{4}(?:[ \-][0-9]{4}){2,4})(?![0-9\-])")
_COUNTED = r"元|块|圆|年|月|日|号|号?[楼栋室弄]|点|分|件|个|天|次|米|克|路|街|%|\byuan\b|\brmb\b|\bdollars?\b"
_BARE = re.compile(  # a number beside quotes, signs or a unit is no order
    r"(?<![A-Za-z0-9_.*¥$€£+\-/:\"'=])(?P<id>[0-9]{4,9})"
    rf"(?![A-Za-z0-9_*\"'/:]|[.\-][0-9]| ?(?:{_COUNTED}))",
    FLAGS,
)
_SKU = re.compile(
    r"(?<![A-Za-z0-9\-])(?P<own>SKU-[A-Za-z0-9\-]{2,40})"
    r"|(?:\b(?:sku|item(?: ?id)?)|商品(?:编?号|id)|货号)[\s:#=是]*(?P<id>[A-Za-z0-9][A-Za-z0-9_\-]{2,40})",
    FLAGS,
)
_STREET = re.compile(r"\s+[A-Z][a-z]+\s+(?:road|street|st|avenue|ave|lane|rd|drive|way)\b", FLAGS)
_WHOLE = re.compile(r"[\s#]*(?P<id>(?=[A-Za-z]{0,6}[0-9])[A-Za-z0-9]{4,20})[\s.!。]*", FLAGS)


def orders(text: str, closed: Sequence[Span]) -> Iterator[Hit]:
    """Order numbers in text order; `closed` spans are something else (phones, cards, amounts, addresses)."""
    if not _DIGIT.search(text):
        return
    taken = list(closed)
    hits: list[Hit] = []
    # The surest shape first: what it takes, a looser one can't read differently.
    for pattern in (_CUED, _OD, _GROUPED, _LONG, _BARE):
        for match in pattern.finditer(text):
            start, end = match.span("id")
            if any(start < right and left < end for left, right in taken) or _STREET.match(text, end):
                continue
            if len(hits) == MOST:
                break
            taken.append((start, end))
            # One spelling, so that "od100001" and "OD100001" are one order to the tool and to the caps.
            value = re.sub(r"[ \-]", "", match["id"])
            hits.append(("order_id", value.upper() if value[:2].lower() == "od" else value, start, end))
    yield from sorted(hits, key=lambda hit: hit[2])


def skus(text: str) -> Iterator[Hit]:
    """Item numbers that are named as such."""
    for match in islice(_SKU.finditer(text), MOST):
        group = "own" if match["own"] else "id"
        if any(char.isdigit() for char in match[group]):
            yield "sku_id", match[group], *match.span(group)


def only_a_number(text: str) -> bool:
    """The whole text is one order-shaped number (case B25)."""
    return _WHOLE.fullmatch(text) is not None
