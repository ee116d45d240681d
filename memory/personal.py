"""Names after their cue and postal addresses by their shape, in Chinese and English text (promise 9).

Region and first letter stay readable: who reads a record still sees which city is meant, and nobody's door.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

Kind = Literal["name", "address"]
Hit = tuple[tuple[Kind, int, int], list[int]]

MOST = 200  # of one kind in a text; what comes next is found in the next look
_HAN = "\u4e00-\u9fff"

# Chinese addresses: region (stays), then a street or an estate with a number.
_PROVINCE = (
    "北京|天津|上海|重庆|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南|陕西|甘肃|"
    "青海|台湾|内蒙古|广西|西藏|宁夏|新疆|香港|澳门"
)
_REGION = (
    rf"(?:(?:{_PROVINCE})(?:省|市|壮族自治区|回族自治区|维吾尔自治区|自治区)?)?"
    rf"(?:[{_HAN}]{{2,6}}?(?:自治州|地区|市|盟))?(?:[{_HAN}]{{1,6}}?(?:新区|(?<!小)区|县|旗))?"
)
_NUMBER = r"(?:[0-9]{1,5}(?:[\-~/][0-9]{1,5})?[A-Za-z]?|[一二三四五六七八九十百零〇]{1,5}|[A-Za-z][0-9]{0,4})"
_HOUSE = rf"(?:附?{_NUMBER} ?(?:号楼|号院|号(?![线店口馆]|出口|线路|航站)|弄|栋|幢|座|单元|楼(?!梯)|层|室|门|户))"
_ROAD = r"(?:大道|大街|胡同|街道|路|街|巷|弄|(?<![知频渠味轨报难一])道)[东西南北中]?[一二三四]?段?(?:中路)?"
_ESTATE = r"(?:小区|花园|公寓|大厦|家园|新村|苑|园|村|庄|广场|中心|城|里)"
_ROOM = r"[0-9]{1,4}(?:-[0-9]{1,4}){1,3}(?![0-9.年月])|[0-9]{3,4}(?![0-9.元块年月个件折%\-])"
_REST = rf"(?:[{_HAN}A-Za-z]{{0,10}}?{_HOUSE}){{0,5}}(?:{_ROOM})?"
_LEAD = re.compile(
    "(?:地址|位于|[在到住去至给]|[改换]成|[改换]为|住)(?:应该)?[是为在到]{0,2}"
)  # what stands before an address, not in it
_CORE = re.compile(  # found first; what stands before it is looked at once, so that no text makes it slow
    rf"(?<=[{_HAN}])(?:{_ROAD}[ ,]?(?:[{_HAN}A-Za-z]{{0,12}}?{_HOUSE}){_REST}|{_ESTATE}[ ,]?{_HOUSE}{_REST}"
    rf"|(?P<seat>[区县市])[{_HAN}]{{1,8}}?{_HOUSE}{_REST})"
)
_BEFORE = re.compile(rf"[{_HAN}A-Za-z0-9]{{0,30}}\Z")
_STREET_CHARS = 8  # of what stands before a road's last word without a region: its name, and no sentence
_ZH_HINT = re.compile("[路街道巷弄村庄苑园厦区寓场心城里]")

# English addresses: a number and a street; what stands behind it (town, state) stays, its zip code does not.
_WAY = (  # those that are no common words may be written small
    r"(?:street|road|rd|avenue|ave|lane|ln|boulevard|blvd|terrace|crescent|parkway|pkwy|highway|hwy|"
    r"(?-i:St|Drive|Dr|Way|Court|Ct|Square|Sq|Place|Pl|Close))"
)
_NO_STREET = (
    r"(?:on|in|at|to|the|a|an|of|my|your|for|and|or|is|by|per|each|more|days?|hours?|times?|items?|orders?|from)"
)
_UNIT = (
    r"(?:,? ?(?:apartment|apt|suite|ste|unit|flat|floor|room|rm|bldg|building)\.? ?#? ?[0-9a-z\-]{1,6}"
    r"|,? ?#[0-9a-z\-]{1,6})"
)
_EN_ADDRESS = re.compile(
    rf"(?<![0-9A-Za-z#$.,])(?P<street>(?:(?:flat|apt|apartment|unit|suite|room) [0-9a-z]{{1,5}},? )?"
    rf"[0-9]{{1,5}}[a-d]?,? (?:[nsew]\.? |north |south |east |west )?"
    rf"(?:(?!{_NO_STREET}\b)[a-z][a-z'’.\-]{{1,20}} |[0-9]{{1,3}}(?:st|nd|rd|th) ){{1,3}}{_WAY}\b\.?{_UNIT}{{0,2}})"
    rf"(?P<town>(?:,? (?-i:[A-Z])[A-Za-z.\-]{{1,20}}){{0,4}})(?P<zip>,? [0-9]{{5}}(?:-[0-9]{{4}})?(?![0-9]))?",
    re.IGNORECASE | re.ASCII,
)

# Names. A cue in front, and an end behind: without both a Chinese name is any two or three characters.
_SURNAME = (
    "(?:欧阳|司马|上官|诸葛|司徒|东方|皇甫|尉迟|公孙|慕容|长孙|宇文|令狐|"
    "[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余于杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏"
    "韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟殷詹申欧耿关"
    "兰焦俞左柳甘祝包宁尚符舒阮柯纪梅童凌毕单季裴霍涂成苗谷盛曲翁冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤阳时穆农司卓古吉缪简车项"
    "连芦麦褚娄窦戚岑景党宫费卜冷晏席卫米柏宗瞿桂全佟应臧闵苟邬边卞姬师和仇栾隋商刁沙荣巫寇桑郎甄丛仲虞敖巩明佘池查麻苑迟邝])"
)
_ZH_CUE = (
    "(?:我叫|(?:我的?|他的?|她的?|客户)?名字(?:是|叫|改[成为])|姓名(?:是|为|改[成为])?|"
    "(?:收[件货]人|联系人|户名|开户名|持卡人|寄件人)(?:姓名|名字)?(?:是|叫|为|改[成为])?)[ :：\"'“]{0,3}"
)
_ZH_NO_NAME = (
    "(?:方便|任何|何时|何处|何人|马上|高兴|许可|成功|时间|时候|万一|连接|全部|全名|应该|和我|和地|和电|和手|明天|明细|解决|解释|关于|关闭|"
    "安全|安排|包裹|包括|管理|简单|单位|单号|路上|成了|成我|都|向|查[询看一]|白金|黄金|金额|石|师傅|游客|商家|商户|时都|有|文字|"
    "写错|不|没|是|在|于是|连同|常用|成什么|成都|施工|路痴|路过|于[今昨明])"
)
_ZH_END = rf"(?=[^{_HAN}]|$|手机|电话|地址|住[在址]?|的(?!确|士)|先生|女士|小姐|收[件货]?|身份证|联系|是我|来|要|想)"
_ZH_NAME = re.compile(
    rf"(?:{_ZH_CUE}|(?<![不就都])我是)(?P<name>(?!{_ZH_NO_NAME})(?:{_SURNAME}[{_HAN}]{{1,2}}?"
    rf"|[{_HAN}]{{2,6}}[·•][{_HAN}·•]{{2,12}})(?<![吗呢吧啊了么呀的]))(?<!我叫什么){_ZH_END}"
)
_CAPITAL = r"(?-i:[A-Z\u00c0-\u00de])[A-Za-z\u00c0-\u024f'’\-]{1,30}"
_NO_NAME = (
    r"(?:and|or|but|my|your|the|a|an|on|in|with|for|from|is|was|not|it|you|please|e-?mail|zip|phone|order|want|need|wrong|who|"
    r"what|so|to|at|of|change[ds]?|address|number|account|living|here|mis-?spel\w*|spel\w*|in-?correct\w*|missing|still|already|being|"
    r"show\w*|written|printed|listed|registered|under|also|no|longer|mr|mrs|ms|wrongly|different|that|this|there|are|as|"
    r"very|just|trying|looking|waiting|calling|having|going|unable|getting|now|same|too|i|we|they)"
)
_EN_NAME = re.compile(
    rf"(?:\b(?:my|his|her|their|the|full|first|last|customer|account|recipient)(?:'s)? (?:full |first |last )?"
    rf"name(?:'s| is| ?[:=])|"
    rf"(?<![A-Za-z] )\b(?:full |first |last )?name ?[:=]|\bcall me\b|\brecipient(?: is| ?[:=]))[ \"'“]{{1,3}}"
    rf"(?P<name>{_CAPITAL}(?:[ ]{_CAPITAL}){{0,2}}"
    rf"|(?!{_NO_NAME}\b)[a-z][a-z'’\-]{{1,20}}(?: (?!{_NO_NAME}\b)[a-z][a-z'’\-]{{1,20}}){{0,2}}"
    rf"(?=[.,;!?\n\"]|$| and\b| my\b| i\b| please\b| phone\b| order\b))"
    rf"|\b(?:i am|i['’]m|this is|it is|it's)[ ]"
    rf"(?P<said>(?!{_NO_NAME}\b){_CAPITAL}(?: (?!{_NO_NAME}\b){_CAPITAL}){{1,2}})"
    rf"|\b(?P<titled>(?:mr|mrs|ms|dr)(?:\. ?| ){_CAPITAL}(?: {_CAPITAL})?)(?![A-Za-z0-9_@])",
    re.IGNORECASE,
)
_EN_HINT = re.compile(
    r"\bname|\bcall me\b|\bi am\b|\bi['’]m\b|\bthis is\b|\bit'?s\b|\bit is\b|\brecipient|\b(?:mr|mrs|ms|dr)\b",
    re.IGNORECASE,
)
_ZH_NAMED = re.compile("叫|名|我是|[件货系卡]人")
_LETTERS = re.compile(r"[^\W\d_]+")
_TITLE = re.compile(r"(?:mr|mrs|ms|dr)\b\.? ?", re.IGNORECASE)
_PROVINCES = re.compile(_PROVINCE)
_REGION_ONLY = re.compile(_REGION)


def personal(text: str) -> Iterator[Hit]:
    """The names and addresses of a folded text, and the indexes to hide; nothing overlaps."""
    taken: list[tuple[int, int]] = []
    for kind, start, end, hidden in _all(text):
        if hidden and not any(start < right and left < end for left, right in taken):
            taken.append((start, end))
            yield (kind, start, end), hidden


def hidden_of(kind: Kind, text: str) -> list[int]:
    """The indexes to hide of a value that is known to be a name or an address, whatever its shape."""
    if kind == "name":
        return _name(text, 0, len(text))
    region = _REGION_ONLY.match(text)
    left = region.end() if region else 0
    return _words(text, left if left < len(text) else 0, len(text))


def _all(text: str) -> Iterator[tuple[Kind, int, int, list[int]]]:
    if not text.isascii():
        if _ZH_HINT.search(text):
            for core in islice(_CORE.finditer(text), MOST):
                yield _zh_address(text, core)
        if _ZH_NAMED.search(text):
            yield from _names(text, _ZH_NAME, ("name",))
    if any("0" <= char <= "9" for char in text):
        for match in islice(_EN_ADDRESS.finditer(text), MOST):
            hidden = _words(text, *match.span("street"))
            end = match.end("street")
            if match["zip"]:
                hidden, end = [*hidden, *_words(text, *match.span("zip"))], match.end()
            yield "address", match.start(), end, hidden
    if _EN_HINT.search(text):
        yield from _names(text, _EN_NAME, ("name", "said", "titled"))


def _zh_address(text: str, core: re.Match[str]) -> tuple[Kind, int, int, list[int]]:
    """The whole address around its street or estate, without what was said before it ("send it to")."""
    seat = core.end("seat") if core["seat"] else core.start()
    run = _BEFORE.search(text, max(0, seat - 30), seat)
    start = run.start() if run else seat
    for lead in _LEAD.finditer(text, start, core.start()):
        start = lead.end()
    for province in islice(_PROVINCES.finditer(text, start, seat), 1):
        start = province.start()
    region = _REGION_ONLY.match(text, start, max(seat, core.end() - 4))  # four: a street and a number are left
    left = region.end() if region else start
    if left == start:
        start = left = max(start, seat - _STREET_CHARS)
    return "address", start, core.end(), _words(text, left, core.end())


def _names(text: str, pattern: re.Pattern[str], groups: Sequence[str]) -> Iterator[tuple[Kind, int, int, list[int]]]:
    for match in islice(pattern.finditer(text), MOST):
        group = next(name for name in groups if match[name])
        yield "name", *match.span(group), _name(text, *match.span(group))


def _name(text: str, start: int, end: int) -> list[int]:
    """All letters but the first of each part: of a Chinese name the surname stays."""
    title = _TITLE.match(text, start, end)
    parts = (part.span() for part in _LETTERS.finditer(text, title.end() if title else start, end))
    return [index for left, right in parts for index in range(left + 1, right)]


def _words(text: str, start: int, end: int) -> list[int]:
    return [index for index in range(start, end) if text[index].isalnum()]
