"""All slots of a text, in text order, each with its span in the folded text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from agents.understanding.fold import fold
from agents.understanding.lexicon import FLAGS, Lexicon, View, lexicon
from agents.understanding.money import MOST, Hit, amounts
from agents.understanding.orders import invoices, orders, skus
from agents.understanding.people import accounts, names, zips
from agents.understanding.places import addresses
from agents.understanding.port import Context, Found
from agents.understanding.regions import regions
from agents.understanding.times import mentioned
from memory.masking import mask

_MASKED_PHONE = re.compile(r"(?<![0-9*])1[3-9][0-9]\*{4}[0-9]{4}(?![0-9*])")
_SIZE = re.compile(
    r"(?<![A-Za-z0-9])(?P<letters>[2-5]?XS|X{1,4}S|[SML]|X{1,4}L|[2-5]XL)\s*[码号]"
    r"|(?:尺码|尺寸|鞋码|\bsizes?)['\"]?\s*(?:是|为|:|is|in)?\s*['\"]?"
    r"(?P<named>(?:[2-5]?X{0,4}[SML]|extra small|small|medium|large|extra large|x-large|xx-large)\b"
    r"|(?:eu |us |uk )?[0-9]{1,2}(?:\.5)?\b)"
    r"|(?<![A-Za-z0-9])(?P<plain>[2-5]?X{1,4}[SL])(?![A-Za-z0-9])|(?<![0-9])(?P<code>[2-5][0-9](?:\.5)?)码"
    r"|(?P<free>均码)"
    r"|(?<![A-Za-z0-9])(?P<word>extra small|small|medium|large|extra large)(?= (?:size|one\b|in (?:size|stock)))"
    r"|(?<![A-Za-z0-9])(?P<figure>1[4-9][05]/[0-9]{2,3}[ABC]?)(?![0-9/])"
    r"|(?P<said>特大|加大|(?<![一二两几])[大中小])[号码](?![码线0-9])",
    FLAGS,
)
_SIZES = {
    "均码": "free", "特大": "XXL", "加大": "XL", "大": "L", "中": "M", "小": "S", "EXTRA SMALL": "XS", "SMALL": "S",
    "MEDIUM": "M", "LARGE": "L", "EXTRA LARGE": "XL", "X-LARGE": "XL", "XX-LARGE": "XXL",
}  # fmt: skip
_PHONE_OF = re.compile(
    r" ?(?:尾?号|后四位|验证|\bnumber|(?:是|为|:|改[成为]|换成) ?\+?[0-9]{3})", FLAGS
)  # "手机号": how to reach them, and no thing
_BECAUSE = re.compile(
    r"(?:因为|由于|原因(?:是|为|改[成为])?:?|\bbecause(?: of)?\b|\bthe reason is\b|\breason:)\s*"
    r"(?P<why>[^。;!?\n]{2,200})", FLAGS
)  # fmt: skip
_REASON_END = re.compile(r"[,;。!?\n]|\.(?:\s|$)|我?(?:要|想)(?:退|换)|\s(?:and|so|please|i want)\b", FLAGS)
_BECAUSE_END = re.compile(
    r"[,、] ?(?:请?给我|帮我|就|麻烦)?退|,? ?(?:所以|我(?:现在|又|就|也|还)?(?:要|想|需要|希望|打算)|希望|请|帮我|麻烦"
    r"|\bso\b|\bi want\b|\bplease\b)",
    FLAGS,
)
_PHONE_CUE = re.compile(
    r"[\s,:;、(]*(?:我?的?(?:联系)?(?:电话|手机|邮箱|邮件|身份证)(?:号码?|地址)?(?:是|为)?"
    r"|\b(?:my )?(?:e-?mail|tel|phone|mobile|cell)(?: number)?(?: is)?)?[\s,:;、.]*$",
    FLAGS,
)
REASON_CHARS = 200  # the refund tool takes 500; a longer one is cut here, not refused after a person approved it
_CHOICE = re.compile(r"(?:我?选|第)? ?(?:option |number |no\.? ?)?(?P<number>[1-9]) ?(?:个|项|号|吧|\.|\)|、)*", FLAGS)


def sensitive(text: str) -> list[Hit]:
    """Phones, cards and emails. A phone that was masked upstream, its key gone, is still known as one."""
    hits: list[Hit] = [(found.kind, found.plain, found.start, found.end) for found in mask(text)[1]
                       if found.kind not in ("name", "address")]  # fmt: skip
    hits += [("phone", match[0], *match.span()) for match in _MASKED_PHONE.finditer(text)]
    return hits


def entities(text: str) -> tuple[Found, ...]:
    """Everything of a text that has a name, with its raw span, whoever said it and whatever is wanted."""
    folded = fold(text)
    view = View(folded.text)
    hits = slots(view, Context(), lexicon(), sensitive(folded.text))
    return tuple(Found(name, value, *folded.raw(start, end)) for name, value, start, end in hits if start < end)


def slots(view: View, context: Context, words: Lexicon, private: list[Hit]) -> list[Hit]:
    """Every slot of the folded text; `private` is what `sensitive` found in it."""
    text, asked = view.text, context.expects
    confirming = asked == "confirm" and context.flow == "refund"
    hits = [hit for hit in private if hit[0] in ("phone", "email")]
    hits += _address(text, context, private)
    closed = [hit[2:] for hit in (*private, *hits)]
    there = list(regions(text))
    hits += [*zips(text, there), *names(text)]  # also inside an address: it keeps them
    known = [*accounts(text, closed), *(hit for hit in invoices(text) if _free(hit, closed))]
    closed += [hit[2:] for hit in (*hits, *known)]
    hits += known
    hits += [hit for hit in there if _free(hit, closed)]
    money = [hit for hit in amounts(text, expected=asked == "amount", confirming=confirming) if _free(hit, closed)]
    hits += money
    closed += [hit[2:] for hit in money]
    hits += skus(text)
    closed += [hit[2:] for hit in hits if hit[0] == "sku_id"]
    times = list(mentioned(text))
    vague = (("time_reference", match[0], *match.span()) for match in islice(words.time.finditer(view), MOST))
    hits += [hit for hit in chain(times, vague) if _free(hit, closed)][:1]
    dated = [hit[2:] for hit in times if any(char.isdigit() for char in hit[1])]
    hits += orders(text, closed + dated)
    hits += [hit for hit in _things(view, words) if _free(hit, closed)]
    hits += [_before(hit, money) for hit in _reasons(view, words)]
    choice = _CHOICE.fullmatch(text, len(text) - len(text.lstrip()), len(text.rstrip()))
    if choice and context.expects != "amount":
        hits.append(("choice", choice["number"], *choice.span("number")))
    return sorted(hits, key=lambda hit: hit[2])


def _free(hit: Hit, closed: list[tuple[int, int]]) -> bool:
    return not any(hit[2] < end and start < hit[3] for start, end in closed)


def _address(text: str, context: Context, private: list[Hit]) -> Iterator[Hit]:
    for field, value, start, end in addresses(
        text, expected=context.expects == "address",
        confirming=context.expects == "confirm" and context.flow == "change_address",
    ):  # fmt: skip
        cut = min((left for _, _, left, _ in private if start <= left < end), default=end)
        kept = value if cut == end else _PHONE_CUE.sub("", value[: cut - start])  # the phone is a slot of its own
        if len(kept) >= 2:
            yield field, kept, start, start + len(kept)


def _things(view: View, words: Lexicon) -> Iterator[Hit]:
    for match in islice(words.category.finditer(view), MOST):
        if not _PHONE_OF.match(view.text, match.end()):
            yield "category", _canonical(words.categories, match[0]), *match.span()
    for match in islice(words.colour.finditer(view), MOST):
        yield "colour", _canonical(words.colours, match[0]), *match.span()
    for match in islice(_SIZE.finditer(view.text), MOST):
        value = next(group for group in match.groups() if group)
        yield "size", _SIZES.get(value.upper(), value.upper()), *match.span()


def _canonical(names: dict[str, str], word: str) -> str:
    lowered = word.lower()
    return names.get(lowered) or names[lowered[:-1]]  # an English plural


def _reasons(view: View, words: Lexicon) -> Iterator[Hit]:
    text = view.text
    because = _BECAUSE.search(text)
    if because:
        start, end = because.span("why")
        yield from _reason(text, start, _BECAUSE_END.search(text, start, end), end)
    for kind, pattern in words.reasons:
        match = pattern.search(view)
        if match:
            yield "reason_kind", kind, *match.span()
            if because is None:
                yield from _reason(text, match.start(), _REASON_END.search(text, match.end()), len(text))
                because = match


def _before(hit: Hit, money: list[Hit]) -> Hit:
    """The reason as far as the first amount in it: "broken 150 yuan" says why, then how much."""
    field, said, start, end = hit
    cut = min((left for _, _, left, _ in money if start < left < end), default=end)
    if field != "reason" or cut == end:
        return hit
    said = said[: cut - start].rstrip()
    return field, said, start, start + len(said)


def _reason(text: str, start: int, stop: re.Match[str] | None, end: int) -> Iterator[Hit]:
    said = text[start : min(stop.start() if stop else end, start + REASON_CHARS)].rstrip(" \t\"'”’」』")
    if said:
        yield "reason", said, start, start + len(said)
