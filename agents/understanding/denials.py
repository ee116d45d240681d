"""What a text says is not meant: wishes that are denied, order numbers that are left out, wishes that are taken back.

"I don't want a refund, I want an exchange" is no refund, and "return 1001 but not 1002" leaves 1002 alone (promise 7:
what is done is what was asked for).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from agents.understanding.clauses import Layout, Segment
from agents.understanding.lexicon import FLAGS
from agents.understanding.money import Hit

_SELF = r"(?:我们?|你们?|您)?"
_DENIAL_ZH = (
    rf"(?<!是)(?<!要)不是{_SELF}(?:要|想|想要|来|为了|申请|要求|打算)*"
    rf"|(?:没有?|从没|从未|并未)(?:说|想|打算|要|要求|申请|让{_SELF}|叫{_SELF})过?{_SELF}(?:要|想|去)*"
    rf"|(?<!想)(?<!需)(?<!愿)不(?:想|打算|准备|需要|考虑|愿意|希望|同意){_SELF}(?:要|再|去)*"
    rf"|(?<!要)不要再?|(?<!用)不用再?去?|(?<![特个差区分级类识辨告])别(?:再|急着|去|{_SELF}帮我|给我|让我)*|无需|不必|甭|暂不"
    rf"|与其(?:给我|让我|再)?|(?:(?<!们)先|我就?先?)不"
)
# Asked of nobody: "who said that I want a refund?"
_RHETORICAL = re.compile(
    r"(?:谁说|什么时候(?:说|让|叫|申请)过?|几时(?:说|让|叫)过?|哪里?有?(?:说|让|叫)过?)[我你们]*(?:要|想|去|让)*"
    r"|\b(?:who said (?:that )?i|when did i (?:ever )?(?:say|ask|tell))"
    r"(?: (?:that|i|you|to|for|want|wanted|a|the|my))*",
    FLAGS,
)
_PLAIN = r"(?: (?:really|actually|even|ever|just|please|yet))*"
_DENIAL_EN = (
    rf"\b(?:(?:do|does|did|am|are|is|was|were|would|will|need|have|has|had)(?: not|n't)|never|no longer|not){_PLAIN}"
    r" (?:want|need|wish|like|care|mean|ask|say|request|look|try|plan|go|here|about|wanting|asking|asked|saying|said"
    r"|requesting|requested|looking|trying|planning|going|gonna|meaning|meant|interested in)"
    r"(?: (?:to|you|for|about|get|have|make|do|be|a|an|the|my|any|that|this|another|your|on))*"
    r"|\b(?:i|we)(?: (?:did not|didn't|never|have not|haven't)|'ve never| have never)" + _PLAIN +
    r"|(?<!you )(?<!they )(?<!he )(?<!seller )(?<!shop )(?<!store )"
    r"\b(?:do not|don't|dont|won't|will not|shouldn't|should not|must not|needn't)" + _PLAIN +
    r"|(?<!have )(?<!has )(?<!had )(?<!can )(?<!could )(?<!did )(?<!are )(?<!if )(?<!or )(?<!why )\bnot"
    r"(?: (?:a|an|the|my|any|for|to|about))*"
    r"|(?<!you have )(?<!they have )\bno (?:need|intention|plans?|wish|desire|longer)"
    r"(?: (?:to|of|for|on|be|get|have|a|an|the|any|my))*"
    r"|\b(?:nobody|no one) (?:has |ever )?(?:asked|told) you(?: (?:for|to|a|the))*"
    r"|\b(?:against|(?:i|we) refused? to|hate to|(?<!n't )(?<!not )forget(?: about)?|anything but)"
    r"(?: (?:a|an|the|my|any))*"
    r"|\b(?:i|we) (?:won't|will not) be"
    r"|\bdo(?: not|n't) think (?:i|we) (?:need|want|should)(?: (?:to|a|an|the|any|my))*"
    r"|(?<!you )(?<!they )\b(?:do not|don't|dont) (?:send|give|issue|make|start|process)(?: (?:me|us|a|an|the|any|my))*"
    r"|\brather\b[^,.;!?]{1,40}\bthan(?: (?:a|an|the|my|to|get|getting|have|having))*"
    r"|\bprefer\b[^,.;!?]{1,40}\b(?:over|to (?=an? ))(?: ?(?:a|an|the))*"
    r"|\b(?:instead of|rather than|without)(?: (?:a|an|the|my|any|getting|asking for))*"
)  # fmt: skip
_DENIES = re.compile(rf"(?:{_DENIAL_ZH}|{_DENIAL_EN})\s*$", FLAGS)
# of a denied wish in a few words, which the lexicon does not take for one: "I don't want to cancel"
_WORDS = {"cancel": "cancel", "return": "return", "refund": "refund", "exchange": "exchange", "swap": "exchange",
          "replace": "exchange", "取消": "cancel", "退货": "return", "退": "refund", "换": "exchange"}  # fmt: skip
_FEW = re.compile(rf"(?:{_DENIAL_ZH}|{_DENIAL_EN})\s*(?:to )?(?P<word>{'|'.join(_WORDS)})(?![出休役伍到])", FLAGS)
_STAYS = re.compile(
    r"[\s]*(?:不变|没变|照旧|不用[改换动]|(?:申请|[我就也都先])*不(?:要|用|需要|用开)了(?=[,。;!]|\Z)"
    r"|(?:stays?|remains?|is) (?:the same|unchanged|as it is))",
    FLAGS,
)
_ANY = re.compile(
    r"[不没别甭未暂]|无需|与其|n't|\bnot?\b|nobody|against|refuse|hate|forget|anything but|prefer"
    r"|\bdont\b|never|no longer|instead|rather|without",
    FLAGS,
)
_MODAL = re.compile(r"(?:我?想要?|我?要|需要|申请|打算)", FLAGS)  # may be the first word of the wish itself
_OWN = re.compile(r"(?:给我|帮我|麻烦|把|退到)", FLAGS)  # "I don't want it, give me …": a wish of its own begins
_LONGEST = 48  # characters before a wish in which a denial of it may begin
_ASKED_WHY = re.compile(r"(?:\b(?:why|how come|if|when|unless|until)\b|为什么|为何|怎么|凭什么|干嘛|如果|要是)", FLAGS)
_QUESTION = re.compile(r"\s*(?:[?？]|(?:吗|么|呢|嘛)(?:[?？。!,\s]|$))")
_ENDS_ASKING = re.compile(r"(?:吗|么|呢|嘛|不|没|没有)\s*$")

_LEFT_OUT = re.compile(
    r"(?:(?<!是)(?<!要)不是(?:订单|单号)?|(?<!要)不要动?|别(?:动|管|碰)|不(?:含|包括|包含|算|动)"
    r"|\b(?:but )?not(?: (?:for|from|order|number|the|on))*"
    r"|\b(?:instead of|rather than|except|excluding|apart from|other than|leave out|skip)(?: (?:for|order|number))*"
    r"|\b(?:all|everything|every order|everything else) but(?: (?:for|order|number))*)"
    r"[\s#:]*$",
    FLAGS,
)
_BESIDES = re.compile(r"除了?(?:订单|单号|这个|了)?[\s#:]*$", FLAGS)
_ALSO = re.compile(r"[^。;!?\n]{0,16}?(?:还|也)")  # "besides 1001 also 1002" leaves nothing out
_OUTSIDE = re.compile(r"\s*(?:这个|这单|号|那单)?(?:除外|不算|不要动|别动|不动)")
# Said of one order beside another, it is left as it is: "cancel 1001, keep 1002", "1001我留着，1002退"
_EXCEPTS = re.compile(
    r"(?:除了?|except(?: for)?|excluding|all but|apart from|other than)(?: ?(?:订单|单号|order))?[\s#:]*$", FLAGS
)
_PART = re.compile(r"\s*(?:里|中|的)|'s\b")  # "all but the cup of 1002"
_KEEPS = re.compile(
    r"(?:保留|留(?:下|着)|\b(?:keep(?:ing)?|leav(?:e|ing)|touch(?:ing)?|do(?:ing)? nothing (?:with|to|about)))"
    r"(?: (?:the|my|order|number))*[\s#:]*$",
    FLAGS,
)
_STAYS_SO = re.compile(
    r"\s*(?:这个|这单|号|那单)?(?:(?:[我就先都也很挺]|暂时|还是|收到了?|非常)*"
    r"(?:要?留着?|保留|不用[管动]|不管|没问题|没毛病|满意|挺好|不错)|已经?(?:退|换|取消)过"
    r"|(?:i'd like to|i want to|i will|i'll|i am|i'm) keep(?:ing)?\b"
    r"|(?:stays|can stay|is (?:fine|ok|okay|good|great)(?! to))\b"
    r"|(?:was|has been|is) already (?:been )?(?:refunded|cancel+ed|exchanged|done)\b)",
    FLAGS,
)
_UNDOES = re.compile(r"\s*(?:这个|这单|号|那单)?[就先我也]*不(?:退|换|取消|改)(?!了?(?:吗|么|嘛|\?))")

_CORRECTS = re.compile(
    r"(?:不对|[说写搞打]?错字?了|说错|[哦啊]不|不不|等[等一]下?|口误"
    r"|\b(?:no|wait|sorry|oops|i mean|i meant|actually|correction|typo|rather|scratch that)\b)"
    r"[\s,.。!]*(?:应该|我?要?的?)?(?:是|it'?s|it is|should be|make that)?(?:订单|单号|order)?[\s#:]*$",
    FLAGS,
)
_TAKES_BACK = re.compile(
    r"[\s,]*(?:(?:哦|噢|呃|啊|诶|哎)?(?:不对|不不|不是|[说打写搞弄]?错字?了|说错|口误|算了|等等|等一?下|还是)"
    r"|[哦啊噢哎]不(?=[,。\s]|\Z)"
    r"|我?(?:没有?|不)同意"
    r"|(?:oh |um |uh )?(?:\bno\b|\bwait\b|\bactually\b|\bscratch that\b|\bsorry\b|\bon second thoughts?\b|\brather\b"
    r"|\bi mean\b|\binstead\b|\bmake that\b))",
    FLAGS,
)


_ENDED = re.compile(
    r"(?:(?:no|oh|please|wait|actually|那|你们?|还是|先|请|就)[\s,]*)*(?:don't|do not|dont|leave it|别|不要)"
    r"(?: it| that| please|了|吧|啊|急)*"
    r"|我?(?:没有?|不)(?:同意|想|愿意)|(?:那|还是|先|我)*(?:算了|不用了|不办了)吧?"
    r"|i (?:don't|do not|didn't|did not|won't) (?:want|wish|agree)(?: to)?|never ?mind|forget it"
    r"|(?:i(?:'ve| have)? )?changed my mind",
    FLAGS,
)
_AGREES = re.compile(r"同意|\bagree", FLAGS)
_TOLD = re.compile(r"[让叫劝]我|(?:建议|要求)我|\b(?:told|asked|wants?|wanted) me to\b", FLAGS)
# What a stop's words stop: what else is said in its clause is a wish of its own.
_FAMILIES = (
    (
        re.compile(r"退|refund|return", FLAGS),
        frozenset({"refund", "return", "refund_status", "refund_amount", "return_status"}),
    ),
    (
        re.compile(r"换|exchange|replacement", FLAGS),
        frozenset({"exchange", "change_address", "change_phone", "change_order"}),
    ),
    (re.compile(r"改|(?<!ex)change", FLAGS), frozenset({"change_address", "change_phone", "change_order"})),
    (re.compile(r"cancell?ation", FLAGS), frozenset({"cancel"})),
    (re.compile(r"查", FLAGS), frozenset({"logistics", "refund_status", "refund_amount", "return_status"})),
)  # fmt: skip
_CONDITION = re.compile(
    r"(?:如果|若是?|要是|假如|倘若|万一)[^,。;!?\n]{1,20}?(?=就|那|的话)|\b(?:if|unless|in case)\b[^,.。;!?\n]*", FLAGS
)
_ONCE = re.compile(  # wished for at first: given up where something else follows
    r"(?:本来|原本|原先|一开始)我?(?:是|就)?(?:想|打算|要|准备)|本打算"
    r"|\b(?:was|were) (?:going|planning|about) to\b|\b(?:originally|initially|at first)\b",
    FLAGS,
)
_WANTED = re.compile(r"\bwanted to\b", FLAGS)  # may be but polite
_TURNS = re.compile(r"\bbut\b(?! also)|\b(?:now|instead|actually)\b|现在|后来|还是|改|不如|算了|但|直接", FLAGS)
_KEPT = re.compile(r"\bkeep(?:ing)? (?:it|them|this)\b|(?:我|就|先)留着|changed my mind|never ?mind|改主意", FLAGS)
_NUMBERS = re.compile(r"[0-9]{4,20}")
_ONLY = re.compile(r"[\sA-Z0-9]*(?:了|吧|啊|的|哦|啦|it|any ?more|any longer|please|after all|\s)*", FLAGS)
_OTHERS = re.compile(r"你|客服|[卖商店]家|店|他|她|平台|人家|对方|\b(?:you|they|he|she)\b", FLAGS)  # who will not do it


def denied(text: str, segment: Segment, start: int, end: int) -> bool:
    """Whether a wish in these words is denied by those before it; a question denies nothing ("不能退吗")."""
    left = max(segment.start, start - _LONGEST)
    if _STAYS.match(text, end):  # "地址不变"
        return True
    wished = _after_modal(text, start)
    if any(match.end() in (start, wished) for match in _RHETORICAL.finditer(text, left, end)):
        return True
    if not _ANY.search(text, left, end):  # nearly always
        return False
    places = {start, wished}
    if _OWN.match(text, start):  # "别退到银行卡" is about the way, not the wish
        places.remove(start)
    if not any(_DENIES.search(text[left:place]) for place in places):
        inner = _FEW.search(text, left, end + 1)  # "did not ask for a refund" begins with its denial
        if inner is None or inner.end() != end:
            return False
    if _ASKED_WHY.search(text, left, start):
        return False
    last = text[max(segment.start, segment.end - 4) : segment.end]
    return not (_QUESTION.match(text, segment.end) or _ENDS_ASKING.search(last))


def until(text: str, end: int) -> int:
    """Where the words end that deny a wish which ends here ("发票不要了")."""
    stays = _STAYS.match(text, end)
    return end if stays is None else stays.end()


def _after_modal(text: str, start: int) -> int:
    modal = _MODAL.match(text, start)
    return start if modal is None else modal.end()


def conditions(text: str, segment: Segment) -> list[tuple[int, int]]:
    """Where a segment says under which condition its wish holds ("a refund if it can't be exchanged")."""
    return [match.span() for match in _CONDITION.finditer(text, segment.body, segment.end)]


def stopped(words: str) -> frozenset[str] | None:
    """The intents that a stop in these words is about; None: any."""
    found = [family for pattern, family in _FAMILIES if pattern.search(words)]
    return frozenset().union(*found) if found else None


def ends(text: str, cut: Layout) -> bool:
    """Whether the last words of a text take back what it asked for: "cancel 1001 ... no, don't"."""
    last = cut.segments[-1]
    if _AGREES.search(text, last.body, last.end) and not _TOLD.search(text, 0, last.start):
        return False  # "they give me half back, I don't agree" wants more, not less
    return len(cut.segments) > 1 and _ENDED.fullmatch(text[last.body : last.end].strip()) is not None


def few(text: str, segment: Segment) -> tuple[str, int, int] | None:
    """The intent that a segment denies by its bare name, and where that stands."""
    match = _FEW.search(text, segment.body, min(segment.end, segment.body + 2 * _LONGEST))
    if match is None or not denied(text, segment, *match.span("word")):
        return None
    return _WORDS[match["word"].lower()], *match.span("word")


def kept(text: str, hits: Sequence[Hit]) -> list[Hit]:
    """The values without the order numbers that the text leaves out or corrects ("all but 1001", "1001，不对1002")."""
    found: list[Hit] = []
    excepted: set[str] = set()
    several = len({hit[1] for hit in hits if hit[0] == "order_id"}) > 1
    for hit in hits:
        out = hit[0] == "order_id" and _left_out(text, hit[2], hit[3], several=several)
        undone = hit[0] == "order_id" and several and _UNDOES.match(text, hit[3])
        if (out or undone) and not _PART.match(text, hit[3]):
            found = [one for one in found if one[:2] != hit[:2]]  # "return 1001 and 1002 ... but not 1002"
            if _EXCEPTS.search(text[max(0, hit[2] - _LONGEST) : hit[2]]):
                excepted.add(hit[1])  # "all but 1003: 1001 1002 1003"
        if out or (hit[0] == "order_id" and hit[1] in excepted):
            continue
        if hit[0] == "order_id" and _CORRECTS.search(text[max(0, hit[2] - _LONGEST) : hit[2]]):
            last = next((one for one in reversed(found) if one[0] == "order_id" and one[2] < hit[2]), None)
            found = [one for one in found if one is not last]
        found.append(hit)
    return found


def _left_out(text: str, start: int, end: int, *, several: bool) -> bool:
    before = text[max(0, start - _LONGEST) : start]
    if several and (_KEEPS.search(before) or _STAYS_SO.match(text, end)):
        return True
    if _BESIDES.search(before):
        return _ALSO.match(text, end) is None
    return _LEFT_OUT.search(before) is not None or _OUTSIDE.match(text, end) is not None


def taken_back(text: str, cut: Layout, segments: Sequence[int]) -> int:
    """The first segment whose wish counts, where a later one says that it comes instead ("退款，算了，换货吧").

    `segments`: those with a wish, in order.
    """
    first = 0
    for before, here in pairwise(segments):
        between = [cut.segments[index] for index in range(before + 1, here + 1)]
        plain = all(one.start == one.body for one in between)  # behind "also" it is one more wish
        asks = _QUESTION.match(text, between[-1].end) is not None
        if plain and not asks and any(_TAKES_BACK.match(text, one.body, one.end) for one in between):
            first = here
    return first


def given_up(text: str, cut: Layout, segment: int, later: int) -> bool:
    """Whether a wish was one at first only: "I was going to return it but I'll keep it", "本来想退，还是换吧".

    `later`: the last segment that has something done or stopped.
    """
    here = cut.segments[segment]
    if _KEPT.search(text, here.end, here.end + 2 * _LONGEST):
        return (_ONCE.search(text, here.start, here.end) or _WANTED.search(text, here.start, here.end)) is not None
    once = later > segment and _ONCE.search(text, here.start, here.end)
    return bool(once) and _TURNS.search(text, here.start, here.end + 2 * _LONGEST) is not None


def stops_all(text: str, cut: Layout, stop: tuple[int, int, int], segment: int) -> bool:
    """Whether a stop (segment, start, end) is about the orders of an earlier segment: "cancel 1001, don't cancel 1002".

    One of other orders, of one thing ("别退衣服") or of what others do ("你们就是不退") leaves that wish alone.
    """
    index, _, end = stop
    here, there = cut.segments[index], cut.segments[segment]
    words = text[here.start : here.end]
    if not _ONLY.fullmatch(text, end, here.end) or _OTHERS.search(words) or _QUESTION.match(text, here.end):
        return False
    named, wished = (set(_NUMBERS.findall(text[one.start : one.end])) for one in (here, there))
    return not named or (bool(wished) and wished <= named)
