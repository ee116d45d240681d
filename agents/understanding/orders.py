"""Order and item numbers: what is shaped like one, stands where one is named, and is nothing else (case F07)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from agents.understanding.lexicon import FLAGS
from agents.understanding.money import MOST, Hit
from agents.understanding.typos import near

Span = tuple[int, int]

_DIGIT = re.compile("[0-9]")
_LEFT, _RIGHT = r"(?<![A-Za-z0-9_.*])", r"(?![A-Za-z0-9_*]|\.[0-9])"
_CUED = re.compile(
    r"(?:订单(?:的?编?号码?)?|单号|编号|流水号?|单子|\b(?:orders?|purchases?)(?: ?(?:numbers?|num|no\.?|id|#))?|#)"
    r"[\s:#=\"'是为]*(?:number |is |no |of )?(?P<id>(?=[A-Za-z]{0,6}[0-9])[A-Za-z0-9]{4,20})" + _RIGHT,
    FLAGS,
)
_OD = re.compile(_LEFT + r"(?P<id>O ?D(?: ?[0-9]){6,18}|W ?[0-9]{7})" + _RIGHT, FLAGS)  # "O D 100001" was said
_SPELT = re.compile(  # digit by digit
    r"(?:订单(?:的?编?号码?)?|单号|编号|\borders?(?: ?(?:numbers?|num|no\.?|id))?|#)[\s:#是]*(?:is )?"
    r"(?P<id>[0-9](?: [0-9]){3,19})" + _RIGHT,
    FLAGS,
)
_LONG = re.compile(_LEFT + r"(?P<id>(?=[A-Za-z0-9]*[0-9]{4})[A-Za-z0-9]{10,20})" + _RIGHT, FLAGS)
_GROUPED = re.compile(r"(?<![0-9\-])(?P<id>[0-9]{4}(?:[ \-][0-9]{4}){2,4})(?![0-9\-])")
_LISTED = 1_000  # numbers of one customer's orders lie nearer to each other than this; groups of one number rarely do
_COUNTED = (
    r"元|块|圆|毛|角|年|月|日|号|号?[楼栋室弄]|点|分|件|个|天|次|米|克|路|街|%|人|字|岁|公里|毫升|积分|cm\b|mm\b|ml\b|kg\b|g\b"
    r"|\byuan\b|\brmb\b|\bdollars?\b|\b(?:more|pieces?|pcs|times|points?|units?|people|miles?|hours?|words|steps)\b"
)
_BARE = re.compile(  # a number beside quotes, signs or a unit is no order
    r"(?<![A-Za-z0-9_.*¥$€£+\-/:\"'=])(?<!than )(?<!least )(?P<id>[0-9]{4,9})"
    rf"(?![A-Za-z0-9_*\"'/:]|[.\-][0-9]|-[a-z]| ?(?:{_COUNTED}))",
    FLAGS,
)
_YEAR = re.compile("1[5-9][0-9]{2}|20[0-9]{2}")
_DATED = re.compile(r"(?:\b(?:in|since|years?|until|till|by|from|during|around)|(?<=[a-z]),|[.] \()\s?$", FLAGS)
_SKU = re.compile(
    r"(?<![A-Za-z0-9\-])(?P<own>SKU-[A-Za-z0-9\-]{2,40})"
    r"|(?:\b(?:sku|(?:item|product|model|article)(?: with(?: an?| the)?)?(?: ?(?:id|numbers?|no\.?|code))?)"
    r"|商品(?:编?号|id)|货号|款号|型号)(?:[\s:#=是]|is\b)*(?P<id>[A-Za-z0-9][A-Za-z0-9_\-]{2,40})",
    FLAGS,
)
_INVOICE = re.compile(
    r"(?:发票(?:号码?)?|invoice (?:number|no\.?|id)|(?<![a-z])(?P<noun>[a-z]{3,10}))"
    r"(?:[\s:]|是|为|is )*(?P<id>#?[A-Za-z]{0,4}-?[0-9]{4,12})" + _RIGHT,
    FLAGS,
)
_INVOICES = ("invoice", "invoices", "bill", "bills", "receipt", "receipts")
_STREET = re.compile(r"\s+[A-Z][a-z]+\s+(?:road|street|st|avenue|ave|lane|rd|drive|way)\b", FLAGS)
_WHOLE = re.compile(r"[\s#]*(?P<id>(?=[A-Za-z]{0,6}[0-9])[A-Za-z0-9]{4,20})[\s.!。]*", FLAGS)


def orders(text: str, closed: Sequence[Span]) -> Iterator[Hit]:
    """Order numbers in text order; `closed` spans are something else (phones, cards, amounts, addresses)."""
    if not _DIGIT.search(text):
        return
    taken = list(closed)
    hits: list[Hit] = []
    # The surest shape first: what it takes, a looser one can't read differently.
    for pattern in (_CUED, _SPELT, _OD, _GROUPED, _LONG, _BARE):
        for match in pattern.finditer(text):
            start, end = match.span("id")
            if any(start < right and left < end for left, right in taken) or _STREET.match(text, end):
                continue
            if pattern is _BARE and _YEAR.fullmatch(match["id"]) and _DATED.search(text, max(0, start - 12), start):
                continue
            if len(hits) == MOST:
                break
            taken.append((start, end))
            hits += _listed(match) if pattern is _GROUPED else [_order(match["id"], start, end)]
    yield from sorted(hits, key=lambda hit: hit[2])


def _order(said: str, start: int, end: int) -> Hit:
    # One spelling, so that "od100001" and "OD100001" are one order to the tool and to the caps.
    value = re.sub(r"[ \-]", "", said)
    return "order_id", value.upper() if value[:1] in "oOwW" else value, start, end


def _listed(match: re.Match[str]) -> list[Hit]:
    """Groups of four digits: one number in groups, or several short numbers beside each other ("1001 1002 1003")."""
    groups = list(re.finditer("[0-9]{4}", match["id"]))
    numbers = [int(group[0]) for group in groups]
    several = "-" not in match["id"] and len(set(numbers)) == len(numbers) and numbers[0] >= _LISTED
    if several and max(numbers) - min(numbers) < _LISTED:
        at = match.start("id")
        return [_order(group[0], at + group.start(), at + group.end()) for group in groups]
    return [_order(match["id"], *match.span("id"))]


def invoices(text: str) -> Iterator[Hit]:
    """Invoice numbers: behind a word for an invoice, which may be misspelled before a `#`."""
    for match in islice(_INVOICE.finditer(text), MOST) if _DIGIT.search(text) else ():
        noun = match["noun"]
        if noun is None or noun.lower() in _INVOICES or (match["id"][0] == "#" and near(noun, _INVOICES)):
            yield "invoice_id", match["id"].lstrip("#"), *match.span("id")


def skus(text: str) -> Iterator[Hit]:
    """Item numbers that are named as such."""
    for match in islice(_SKU.finditer(text), MOST):
        group = "own" if match["own"] else "id"
        if any(char.isdigit() for char in match[group]):
            yield "sku_id", match[group], *match.span(group)


def only_a_number(text: str) -> bool:
    """The whole text is one order-shaped number (case B25)."""
    return _WHOLE.fullmatch(text) is not None
