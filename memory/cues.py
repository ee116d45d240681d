"""Words that point back: to something in sight (deictic), or to the past (R-002-08, R-002-10). Chinese and English."""

from __future__ import annotations

import re

_COUNT = "[一二两三四五六七八九十几0-9]*"
# 那 alone opens a sentence ("那好", "那请问"); with a measure word or a noun it points.
MEASURE = "(?:个|家|件|款|双|条|单|笔|只|本|张|台|份|套|部|辆|处|座|间|些|种|把|顶|块|瓶|包|位)"
_POINTING = (
    rf"(?:这|那|该|此|同){_COUNT}{MEASURE}|(?:这|那)(?:里|儿|边)|[它牠]们?|[他她]家|其(?=[地电评周价门营])|"
    rf"(?:第{_COUNT}|最后{_COUNT}|另外?{_COUNT}|上面?{_COUNT}|前面?{_COUNT}){MEASURE}|前者|后者|刚才|刚刚|上述"
)
_ENGLISH = (
    r"\b(?:it|its|this|that|these|those|them|they|(?:the )?(?:other|same|former|latter)(?: one)?"
    r"|the (?:first|second|third|fourth|fifth|last|next|[a-z]+) ones?)\b"
)
_PAST = (
    r"上[次回]|上(?:一)?次|之前(?=.{0,6}(?:那|买|说|问|订|办|聊|提|的))|以前|前几[天次]|前阵子|早先|曾经|当时"
    r"|(?:昨天|前天|上(?:个)?(?:周|月|星期|礼拜)|去年)(?=.{0,8}(?:买|说|问|订|办|聊|提|那|的))"
    r"|\b(?:last time|previous(?:ly)?|earlier|the other day|back then|used to|a while ago|days? ago|weeks? ago"
    r"|months? ago|(?:from|as|like) before"
    r"|(?:my|our|the) last (?:chat|conversation|session|talk|call|message|visit|question|request|(?:in|en)quiry)"
    r"|(?:bought|ordered|purchased|asked|asking|said|told|talked|talking|spoke|chatted|discussed|mentioned"
    r"|(?:in|en)quired)\b.{0,30}\b(?:before|yesterday|last \w+))\b"
)
_DEICTIC = re.compile(f"{_POINTING}|{_ENGLISH}", re.IGNORECASE | re.ASCII)
_CITES = re.compile(_PAST, re.IGNORECASE | re.ASCII)


def deictic(text: str) -> str | None:
    """The first word that points to something, if there is one."""
    match = _DEICTIC.search(text)
    return match[0] if match else None


def cites_past(text: str) -> str | None:
    """The first words that speak of an earlier time, if there are any."""
    match = _CITES.search(text)
    return match[0] if match else None
