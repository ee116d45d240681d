"""Who the customer is: names after their cue, emails, zip codes, user and payment ids, kinds of account.

A name is only read where something says that one follows: no list of names is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from agents.understanding.lexicon import FLAGS
from agents.understanding.money import MOST, Hit
from agents.understanding.typos import near

_CAPITAL = r"(?-i:[A-Z\u00c0-\u00de])"
_PART = rf"{_CAPITAL}[A-Za-z\u00c0-\u024f'’\-]{{1,30}}"
_FULL = rf"{_PART}(?: {_PART}){{1,2}}"
_SAID_EN = (  # after one of these a name follows, however it is written
    r"\b(?:my|your?|his|her|full|first|last|customer|account) (?:full )?names?(?: is|'s| are| ?:)"
    r"|\bname (?:is|on (?:it|the order|the account) is)|\bcall me|\bnames? ?[:=]"
)
_NO_NAME = (
    r"and|or|but|my|your|the|a|an|on|in|with|for|from|is|was|not|in|i|it|you|please|email|e-?mail|zip|phone|order|want|"
    r"need|wrong|misspelled|who|what|so|to|at|of|changed|address|number|account|living|here"
)
_SAID = re.compile(
    rf"(?:{_SAID_EN})\s+[\"'“]?(?P<name>{_FULL}|(?!(?:{_NO_NAME})\b)[a-z\u00c0-\u024f][a-z\u00c0-\u024f'’\-]+"
    rf"(?: (?!(?:{_NO_NAME})\b)[a-z\u00c0-\u024f][a-z\u00c0-\u024f'’\-]+){{0,2}})",
    FLAGS,
)
_INTRODUCED = re.compile(
    rf"\b(?:i am|i[’']?m|this is|you are|you[’']re|it's|here is|called|named|goes by|under|name of|behalf of|customer|"
    r"recipient|sincerely,?|regards,?)\s+"
    rf"(?P<name>{_FULL})(?![A-Za-z0-9_@])",
    FLAGS,
)
_TITLED = re.compile(rf"\b(?P<name>(?:mr|mrs|ms|miss|dr|prof)(?:\. ?| ){_PART}(?: {_PART})?)(?![A-Za-z0-9_@])", FLAGS)
_PAPER = re.compile(
    rf"(?<![A-Za-z])(?P<noun>[A-Za-z]{{3,12}}) {{1,3}}(?P<of>(?-i:[a-z]{{2,6}})) {{0,3}}(?P<name>{_PART} {_PART})"
    r"(?![A-Za-z0-9_@])",
    FLAGS,
)
_PAPERS = ("invoice", "invoices", "bill", "bills", "receipt", "receipts")
_OF = ("from", "for", "of", "by", "under")
_SURNAME = (
    "[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余于杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石"
    "廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤欧]"
)
_ZH_END = r"(?=[,。;!?\s:、0-9(]|$|手机|电话|地址|住|的|和|我|先生|女士|，)"
_ZH_SAID = re.compile(
    rf"(?:我叫|名字(?:是|叫|改[成为])|姓名(?:是|为|改[成为])?:?|(?:收[件货]人|联系人|户名)(?:是|叫|为|改[成为])?:?)[\s:]*"
    rf"(?P<name>[\u4e00-\u9fff]{{1,4}}(?:·[\u4e00-\u9fff]{{1,8}})?){_ZH_END}"
)
_ZH_CALLED = re.compile(rf"(?:我是|找|给|^)(?P<name>{_SURNAME}[\u4e00-\u9fff]{{0,2}}(?:先生|女士|小姐|太太))")
_ZH_AM = re.compile(rf"我是(?P<name>{_SURNAME}[\u4e00-\u9fff]{{1,2}})(?=[,。;!?\s:]|$)")
_ZH_NO_NAME = re.compile("多少|什么|谁|哪|错|不|老|新|会员|客户|买|改")

_US = r"[0-9]{5}(?:-[0-9]{4})?(?![0-9A-Za-z\-])"
_ABROAD = r"[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}\b|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]\b"
_ZIP = re.compile(
    r"\b(?:zip ?(?:-?codes?)?|post ?(?:al)? ?codes?|postcode)['\"]?(?: ?(?:is|was|of|number|,)| to){0,3}[\s'\":=]{0,5}"
    rf"(?P<us>{_US}|{_ABROAD})"
    r"|(?:邮编|邮政编码)(?:号码?)?(?:是|为|改[成为])?[\s:]*(?P<cn>[0-9]{6})(?![0-9])"
    rf"|(?-i:\b[A-Z]{{2}}),? (?P<state>{_US})"
    r"|\b(?:live|living|resid(?:e|ing)|located|based|moved|moving|address is)\b[^.;:!?\n0-9#]{0,40}?[ (]"
    rf"(?P<lived>{_US})(?![.,][0-9]| [A-Z][a-z]+ [A-Z])",
    FLAGS,
)
_BEHIND_PLACE = re.compile(r",? [(]?(?P<zip>" + _US + r")(?![.,][0-9])", re.ASCII)
_ZIP_WORD = re.compile(r"\bzip|\bpostal code|\bpostcode", FLAGS)
_FIVE = re.compile(
    r"(?<![0-9A-Za-z#¥$€£.,\-])(?<!order )(?<!number )[0-9]{5}(?![0-9A-Za-z\-]|[.,][0-9]| ?(?:yuan|rmb|dollars))", FLAGS
)
_USER = re.compile(
    r"(?<![A-Za-z0-9_@.])(?P<shape>[a-z]{2,20}_[a-z]{2,20}_[0-9]{3,6})(?![A-Za-z0-9_@])"
    r"|(?:\buser ?(?:id|name)|\bmember ?(?:id|number)|\baccount (?:id|number)|用户名|用户id|会员号|会员id|账号|账户名)"
    r"['\"]?(?: ?(?:is|=)|是|为){0,2}[\s'\":]{0,5}(?P<named>[A-Za-z0-9][A-Za-z0-9_\-]{3,40})(?![A-Za-z0-9_@.\-])",
    FLAGS,
)
_PAYMENT = re.compile(
    r"(?<![A-Za-z0-9_])(?P<id>(?:paypal|gift_card|credit_card|debit_card|alipay|wechat)_[0-9]{4,12})(?![A-Za-z0-9_])",
    FLAGS,
)
_TIERS = (  # longer words before those that they begin with
    "freemium|free|basic|standard|plus|professional|pro|premium|platinum|gold|silver|bronze|diamond|business|"
    "enterprise|vip"
)
_ACCOUNT = ("account", "accounts", "profile", "membership", "plan", "subscription", "profiles", "user", "tier")
_TIER = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=[a-z])(?=(?-i:[A-Z])))(?P<tier>{_TIERS})(?: {{1,3}}|(?=a?cc|prof))"
    r"(?P<noun>[A-Za-z]{3,14})",
    FLAGS,
)
_ZH_TIER = re.compile(
    "(?P<tier>普通|黄金|白金|铂金|钻石|高级|企业|个人|至尊|体验|免费|付费|超级|金牌|银牌|黑金)(?:版)?(?:会员|账户|账号|用户)"
)


def names(text: str) -> Iterator[Hit]:
    """Person names where a cue says so, in text order of each cue; overlapping finds are one."""
    taken: list[tuple[int, int]] = []
    for match in _name_matches(text):
        start, end = match.span("name")
        if any(start < right and left < end for left, right in taken):
            continue
        taken.append((start, end))
        yield "person_name", match["name"], start, end


def _name_matches(text: str) -> Iterator[re.Match[str]]:
    if not text.isascii():
        for pattern in (_ZH_SAID, _ZH_CALLED, _ZH_AM):
            yield from (hit for hit in islice(pattern.finditer(text), MOST) if not _ZH_NO_NAME.search(hit["name"]))
    for pattern in (_SAID, _TITLED, _INTRODUCED):
        yield from islice(pattern.finditer(text), MOST)
    for match in islice(_PAPER.finditer(text), MOST):
        if near(match["noun"], _PAPERS) and near(match["of"], _OF):
            yield match


def _zips(text: str, places: Sequence[Hit]) -> Iterator[Hit]:
    for match in islice(_ZIP.finditer(text), MOST):
        group = match.lastgroup or ""
        yield "zip_code", match[group], *match.span(group)
    for _, _, _, end in places:
        behind = _BEHIND_PLACE.match(text, end)
        if behind:
            yield "zip_code", behind["zip"], *behind.span("zip")
    # Who speaks of a zip code and says five digits later means it.
    for match in islice(_FIVE.finditer(text), MOST) if _ZIP_WORD.search(text) else ():
        yield "zip_code", match[0], *match.span()


def zips(text: str, places: Sequence[Hit]) -> Iterator[Hit]:
    """Zip codes and postcodes that are named as such, or stand behind one of `places` ("Denver, 80280")."""
    taken: set[int] = set()
    for hit in _zips(text, places):
        if hit[2] not in taken:
            taken.add(hit[2])
            yield hit


def accounts(text: str, closed: Sequence[tuple[int, int]]) -> Iterator[Hit]:
    """User ids, payment ids and kinds of account; nothing inside a `closed` span (an email)."""
    for match in islice(_PAYMENT.finditer(text), MOST):
        yield "payment_id", match["id"], *match.span("id")
    for match in islice(_USER.finditer(text), MOST):
        group = "shape" if match["shape"] else "named"
        start, end = match.span(group)
        plain = group == "shape" or any(char.isdigit() for char in match[group])
        if plain and not any(start < right and left < end for left, right in closed):
            yield "user_id", match[group], start, end
    for match in islice(_TIER.finditer(text), MOST):
        if near(match["noun"], _ACCOUNT):
            yield "account_type", match["tier"].lower(), *match.span("tier")
    for match in islice(_ZH_TIER.finditer(text), MOST):
        yield "account_type", match["tier"], *match.span("tier")
