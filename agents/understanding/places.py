"""Addresses, Chinese and English: named by a cue, asked for, or plain from their parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from agents.understanding.lexicon import FLAGS
from agents.understanding.money import MOST, Hit

_LONGEST = 300  # characters of an answer that may still be an address
_NEXT = (  # words that do not belong to an address any more
    r"[嗯呃额啊]|(?:我的)?(?:订单|单号)"
    r"|(?:for |on |my |the )*\border (?:number|no\.?|id)?[\s:#]*[A-Za-z]{0,3}[0-9]{4}"
    r"|收件人|收货人|联系|电话|手机|谢谢|麻烦|再|顺便|另外|还有|可以吗|好吗|行吗"
    r"|thanks?|thank you|please|phone|tel\b"
    r"|and (?:also|then|please|where|when|what|how|can|could|track|check|refund|tell|i)\b"
)
_ZH_STOP = rf"(?=[,。;!?\n]*(?:$|[。;!?\n]|,? ?(?:那个|这个|就是)?(?:{_NEXT})))"
_EN_STOP = rf"(?=[,。;!?\n]*(?:$|[。;!?\n]|\. |\.$|,? ?(?:那个|这个|就是)?(?:{_NEXT})))"
_EN_WAY = r"(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|way)"
_ZH_CUE = re.compile(
    r"(?:改成|改到|改为|换成|换到|变更为|更新为|修改为|修改成|改寄到?|(?:改?送|改?寄|改?发)(?:到|去|至)|地址(?:是|为|:|应该是|在)"
    r"|(?:我(?:们)?(?:家)?|现在|人)(?:现在)?(?:住在?|搬到了?|搬去了?))"
    r"[\s:\"'“]*(?P<place>(?![吗么呢嘛吧])[^。;!?\n\"'”]{2,120}?)" + _ZH_STOP
)
_EN_CUE = re.compile(
    r"(?:addres+(?: (?:on|for|of) [^.;!?\n]{0,30}?)?,? ?(?:to|is|should be|as|:)"
    r"|\b(?:ship|deliver|send)(?: (?:it|this|them|my order|the (?:order|package)))? to)"
    r"\s*:?\s*(?P<place>[^;!?。\n]{5,160}?)" + _EN_STOP,
    FLAGS,
)
_ZH_PLAIN = re.compile(
    r"(?P<place>[\u4e00-\u9fff]{2,8}(?:省|自治区|市|区|县)[\u4e00-\u9fffA-Za-z0-9\-#]{0,40}?"
    r"(?:路|街|道|巷|弄|村|苑|园|大厦|小区|镇)[\u4e00-\u9fffA-Za-z0-9\-#]{0,10}?[0-9]+[号弄栋楼室单元幢层0-9A-Za-z\-座]*)"
)
_ZH_REGION = re.compile(  # without a house: enough to ask for the rest, not enough to send anything to
    r"(?:我(?:们)?(?:家)?在|住在?)(?P<place>[\u4e00-\u9fff]{0,8}?(?:省|市|区|县|镇|村|小区|大厦|花园|公寓)[\u4e00-\u9fffA-Za-z0-9\-]{0,20}?)"
    + _ZH_STOP
)
_EN_PLAIN = re.compile(
    rf"(?P<place>\b[0-9]{{1,5}} (?:[A-Z][a-z]+ ){{1,3}}{_EN_WAY}\b[^;!?。\n]{{0,80}}?)" + _EN_STOP, FLAGS
)
_LIKELY = re.compile(
    rf"[省市区县镇乡村路街巷弄楼栋室苑园厦]|[A-Za-z0-9]座|[一二三四五六七八九十]号|[大街人]道|小区|花园|公寓|门口|前台|驿站|快递柜|丰巢|代收点|物业|传达室|门卫|公司|学校|大学|宿舍"
    rf"|家里|单位|医院|酒店|广场|\b(?:{_EN_WAY}|block|floor|flat|room)\b",
    FLAGS,
)
_NUMBER = re.compile("[0-9]")
_OTHER_NUMBERS = re.compile(  # of orders and sizes: no sign of a place
    r"(?:订单|单号|\border|#)[\s#:]*[A-Za-z0-9]{4,}|(?<![A-Za-z0-9])[0-9]{1,3}(?:\.5)?码|(?<![A-Za-z0-9\-])[0-9]{4,}(?![A-Za-z0-9\-号])",
    FLAGS,
)
_ORDER_ONLY = re.compile(r"(?:订单|order)?[\s#]*[A-Za-z0-9.]{0,20}$", FLAGS)  # or an amount
_NO_PLACE = re.compile(r"(?:be )?the same\b|.{0,20}\border ?#", FLAGS)  # "the same as in order #1001"
_ASKS_BACK = re.compile(  # who asks something else has given no address
    r"(?<!可以吗)(?<!可以么)(?<!行吗)(?<!好吗)(?<!ok)(?<!right)(?<!okay)\?\s*$"
    r"|\b(?:can|could|would|will) (?:you|i|we)\b|\b(?:where|what|who|why|how) (?:do|does|did|is|are|was|would|can)\b",
    FLAGS,
)
_NO = re.compile(
    r"\s*(?:不对|不是的?|错了|写错了?|有误|no\b|wrong\b|not that\b)[,。;!. ]*"
    r"(?:应该|要|改)?(?:是|成)?(?:it'?s|it should be|should be)?\s*", FLAGS
)  # fmt: skip
_FRAGMENT = re.compile(
    r"(?:不对|不是|错了|应该|就?是|改成|[,\s])*(?:[A-Za-z0-9一二三四五六七八九十]{1,5}(?:号楼?|楼|室|单元|栋|幢|层|座))+",
    FLAGS,
)
_LEAD = re.compile(
    r"^(?:我的?|新的?|收货|地址|现在|住在?|在|是|请|帮我|寄到?|送到?|改[成到为]|:|,|\s|(?:it'?s|my|new|address|is|to)\b)+",
    FLAGS,
)
_TAIL = re.compile(r"(?:吧|了|哦|啊|谢谢|可以吗|[,\s.])+$")


def likely(text: str) -> bool:
    """Whether there is a sign of a place in the text: a word of streets and houses, or a number."""
    return _LIKELY.search(text) is not None or _NUMBER.search(_OTHER_NUMBERS.sub("", text)) is not None


def addresses(text: str, *, expected: bool = False, confirming: bool = False) -> Iterator[Hit]:
    """At most one address. `expected` takes the whole text: the customer was asked for one.

    `confirming`: one was shown to be confirmed, so that what follows a no is the right one.
    """
    for pattern in (_ZH_CUE, _EN_CUE, _ZH_PLAIN, _EN_PLAIN, _ZH_REGION):
        for match in islice(pattern.finditer(text), MOST):
            hit = _trimmed(match["place"], match.start("place"))
            if not hit or _FRAGMENT.fullmatch(hit[1]) or _ORDER_ONLY.fullmatch(hit[1]) or _NO_PLACE.match(hit[1]):
                continue
            if likely(hit[1]):
                yield hit
                return
    no = _NO.match(text) if confirming else None
    start = no.end() if no else 0
    if (expected or no) and len(text) <= _LONGEST and not _ASKS_BACK.search(text):
        hit = _trimmed(text[start:], start)
        # "不对，是200号": of an address that it corrects we know no part; it is asked for as a whole
        part = hit is None or len(hit[1]) < 4 or _FRAGMENT.fullmatch(hit[1]) or _ORDER_ONLY.fullmatch(hit[1])
        if hit and not part and likely(hit[1]):
            yield hit


def _trimmed(text: str, start: int) -> Hit | None:
    lead = _LEAD.match(text)
    left = lead.end() if lead else 0
    tail = _TAIL.search(text, left)
    right = tail.start() if tail else len(text)
    return ("address", text[left:right], start + left, start + right) if right > left else None
