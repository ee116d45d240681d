"""Times that a customer names, found in the text and placed on the customer's clock.

A time becomes an interval of ISO 8601, "start/end" with the end not in it, in local time; an open end is "..".
On 5 January 2026 "昨天" is "2026-01-04/2026-01-05", "十一点前" "../2026-01-05T11:00". What has no place stays as said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from agents.understanding.lexicon import FLAGS
from agents.understanding.money import MOST, Hit
from agents.understanding.numerals import number
from agents.understanding.port import Context

Interval = tuple[datetime | None, datetime | None]
Closed = tuple[datetime, datetime]
DAY = timedelta(days=1)
_NIGHT = 7  # o'clock: an hour below it, said without a part of the day, is one of the afternoon
LONGEST_CHARS = 30  # of one expression: a longer "1点1点1点" is not read as one

_N = r"(?:[0-9]{1,3}|[一二三四五六七八九十两]{1,3})"
_DAYS_ZH = {"大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "今天": 0, "今日": 0, "当天": 0, "明天": 1, "明日": 1,
            "后天": 2, "大后天": 3}  # fmt: skip
_SHORT_ZH = {"今早": (0, "早上"), "昨晚": (-1, "晚上"), "今晚": (0, "晚上"), "明早": (1, "早上"), "明晚": (1, "晚上"),
             "昨夜": (-1, "晚上")}  # fmt: skip
_FEASTS = {
    "元旦": (1, 1), "情人节": (2, 14), "三八节": (3, 8), "五一": (5, 1), "劳动节": (5, 1), "六一": (6, 1),
    "618": (6, 18), "国庆": (10, 1), "双十一": (11, 11), "双11": (11, 11), "双十二": (12, 12), "双12": (12, 12),
    "圣诞": (12, 25),
}  # fmt: skip
_PARTS = {
    "凌晨": (0, 6), "早上": (6, 12), "清晨": (6, 9), "上午": (6, 12), "中午": (11, 14), "下午": (12, 18),
    "傍晚": (17, 20), "晚上": (18, 24), "夜里": (18, 24), "morning": (6, 12), "afternoon": (12, 18),
    "evening": (18, 24), "night": (18, 24),
}  # fmt: skip
_YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1}
_WEEKDAYS_EN = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS_EN = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {
    "分钟": 60, "小时": 3_600, "钟头": 3_600, "天": 86_400, "日": 86_400, "周": 604_800,
    "星期": 604_800, "礼拜": 604_800, "minute": 60, "min": 60, "hour": 3_600, "day": 86_400, "week": 604_800,
}  # fmt: skip
_WORDS_EN = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
             "nine": 9, "ten": 10, "fourteen": 14, "thirty": 30, "couple of": 2, "few": 3}  # fmt: skip

_DIGIT = "[0-9A-Za-z零〇一二三四五六七八九十幺两百千]"  # 618 and 六一 inside a number are no feast
_PART_ZH = "凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|夜里"
_CLOCK_ZH = rf"(?P<hour>{_N})点(?:(?P<half>半)|(?P<quarter>[一三])刻|钟|(?P<minute>{_N})分?(?![0-9个件天]))?"
_SIDE_ZH = "(?P<side>之?以?前|之?以?后)"
_ZH = re.compile(
    rf"(?:(?:(?P<year>[0-9]{{4}})年|(?P<past>去年|前年|今年|明年))?(?P<month>{_N})月(?:(?P<day>{_N})[日号]?|(?P<edge>底|初))?"
    rf"|(?P<named>{'|'.join(sorted(_DAYS_ZH, key=len, reverse=True))})"
    rf"|(?<!{_DIGIT})(?P<feast>{'|'.join(sorted(_FEASTS, key=len, reverse=True))})(?!{_DIGIT})"
    r"(?:节|那天|当天|期间)?(?![0-9])"
    rf"|(?P<week>上上|上|这|本|下下|下)个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天末])?"
    rf"|(?:周|星期|礼拜)(?P<this>[一二三四五六日天])"
    rf"|(?P<moon>上上|上|这|本|下)个?月(?:(?P<moonday>{_N})[日号]|(?P<moonedge>底|初))?|(?P<yearonly>去年|前年|今年|明年)"
    rf"|(?P<bare>(?<![0-9A-Za-z])[0-3]?[0-9]|[一二三四五六七八九十]{{1,3}})[号](?=[^楼栋室院门店线单码弄0-9]|$)|(?P<last>月底|月初|年底))"
    rf"(?P<part>{_PART_ZH})?(?:{_CLOCK_ZH})?{_SIDE_ZH}?"
    rf"|(?P<short>{'|'.join(_SHORT_ZH)})(?:{_CLOCK_ZH.replace('<', '<s')})?{_SIDE_ZH.replace('<', '<s')}?"
    rf"|(?P<only>{_PART_ZH})?{_CLOCK_ZH.replace('<', '<o')}{_SIDE_ZH.replace('<', '<o')}?|(?P<daypart>{_PART_ZH})"
    r"|(?P<count>(?<![0-9])[0-9]{1,4}|[一二三四五六七八九十两几半]{1,3})个?"
    r"(?P<unit>天|日|周|星期|礼拜|月|年|小时|钟头|分钟)(?P<way>之?以?前|之?以?后|之?以?内)"
)
_DATE = re.compile(
    r"(?<![0-9])(?P<year>20[0-9]{2})(?P<sep>[-/.])(?P<month>[0-9]{1,2})(?P=sep)(?P<day>[0-9]{1,2})(?![0-9])"
)
_UNIT_EN = "minute|min|hour|day|week|month|year"
_COUNT_EN = (
    rf"(?P<count>[0-9]{{1,4}}|{'|'.join(sorted((w for w in _WORDS_EN if len(w) > 2), key=len, reverse=True))}|an?)"
)
_MONTH_EN = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_EN = re.compile(
    r"\b(?:(?P<side>before|by|after|since|until) )?(?:on |at |the )?(?:"
    r"(?P<named>the day before yesterday|day before yesterday|yesterday|today|tomorrow|the day after tomorrow)"
    r"(?: (?P<part>morning|afternoon|evening|night))?"
    r"|(?P<short>tonight|last night|this (?:morning|afternoon|evening))"
    rf"|(?P<which>last|this|next) (?P<period>week|month|year|{'|'.join(_WEEKDAYS_EN)})"
    rf"|(?P<weekday>{'|'.join(_WEEKDAYS_EN)})(?: (?P<wpart>morning|afternoon|evening|night))?"
    rf"|(?:an? )?{_COUNT_EN} (?P<unit>{_UNIT_EN})s? (?P<way>ago|from now|before)"
    r"|(?P<within>in|within|(?:for|in|over) the (?:last|past)) (?:the next )?"
    rf"{_COUNT_EN.replace('<', '<w')} (?P<wunit>{_UNIT_EN})s?"
    rf"|(?P<month>{_MONTH_EN})\.? (?:(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>20[0-9]{{2}}))?(?![0-9])"
    r"|(?:of )?(?P<myear>20[0-9]{2}))"
    rf"|(?P<dday>[0-9]{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<dmonth>{_MONTH_EN})(?: (?P<dyear>20[0-9]{{2}}))?"
    r"|(?P<hour>1?[0-9])(?::(?P<minute>[0-5][0-9]))? ?(?P<half>am|pm|a\.m\.|p\.m\.|o'clock)"
    r")(?![A-Za-z0-9])",
    FLAGS,
)


def mentioned(text: str) -> Iterator[Hit]:
    """The times of a text as they were said, in text order."""
    hits = [
        ("time_reference", match[0].strip(), *match.span())
        for pattern in ((_DATE, _EN) if text.isascii() else (_DATE, _ZH, _EN))
        for match in islice(pattern.finditer(text), MOST)
        if len(match[0]) <= LONGEST_CHARS
    ]
    yield from sorted(hits, key=lambda hit: hit[2])


def placed(said: str | None, context: Context) -> str | None:
    """The interval of what was said, on the context's clock.

    Without a clock, and where the words are vague or no date ("31 February"), they are given back as they are.
    """
    if said is None or context.at is None:
        return said
    now = datetime.fromtimestamp(context.at / 1_000, UTC).replace(tzinfo=None) + timedelta(minutes=context.zone)
    try:
        found = _interval(said, now)
    except (ValueError, OverflowError):
        return said
    return said if found is None else f"{_iso(found[0])}/{_iso(found[1])}"


def _iso(moment: datetime | None) -> str:
    if moment is None:
        return ".."
    return moment.date().isoformat() if moment.time() == datetime.min.time() else moment.isoformat(timespec="minutes")


def _interval(said: str, now: datetime) -> Interval | None:
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    date = _DATE.fullmatch(said)
    if date:
        start = day.replace(year=int(date["year"]), month=int(date["month"]), day=int(date["day"]))
        return start, start + DAY
    for pattern, place in ((_ZH, _chinese), (_EN, _english)):
        match = pattern.fullmatch(said)
        if match:
            return place(match, now, day)
    return None


def _side(span: Interval, side: str | None, *, clock: bool = False) -> Interval:
    """What lies before or after it: "by Friday" keeps the Friday, "after 7 pm" begins at seven."""
    if side is None:
        return span
    if "前" in side or side.lower() in ("before", "by", "until"):
        return None, span[1] if side.lower() == "by" and not clock else span[0]
    since = clock or side.lower() == "since"
    return span[0] if since else span[1], None


def _month(day: datetime, months: int) -> Closed:
    """The whole month that lies so many months from the day's."""
    start = _first(day, months)
    return start, _first(start, 1)


def _first(day: datetime, months: int) -> datetime:
    index = day.year * 12 + day.month - 1 + months
    return day.replace(year=index // 12, month=index % 12 + 1, day=1)


def _edge(month: Closed, edge: str) -> Closed:
    start, end = month
    return (start, start + 7 * DAY) if edge == "初" else (end - 7 * DAY, end)


def _part(day: datetime, part: str) -> Closed:
    start, end = _PARTS[part]
    return day + timedelta(hours=start), day + timedelta(hours=end)


def _clock(match: re.Match[str], day: datetime, part: str | None, prefix: str = "") -> Closed:
    hour, minute = int(number(match[f"{prefix}hour"])), match[f"{prefix}minute"]
    quarter = match[f"{prefix}quarter"]
    minutes = 30 if match[f"{prefix}half"] else 15 * int(number(quarter)) if quarter else int(number(minute or "0"))
    if part is None and 0 < hour < _NIGHT:
        hour += 12  # nobody means three in the morning without saying so
    elif hour < 12 and part in ("下午", "傍晚", "晚上", "夜里", "中午") and not (part == "中午" and hour >= 10):
        hour += 12
    if hour > 24 or minutes > 59:
        message = f"{match[0]!r} is no time of day"
        raise ValueError(message)
    start = day + timedelta(hours=hour, minutes=minutes)
    return start, start + timedelta(minutes=1 if minutes else 60)


def _chinese(match: re.Match[str], now: datetime, day: datetime) -> Interval | None:
    if match["count"]:
        return _counted(match["count"], match["unit"], match["way"], now, day)
    if match["short"]:
        offset, part = _SHORT_ZH[match["short"]]
        there = day + offset * DAY
        span = _clock(match, there, part, "s") if match["shour"] else _part(there, part)
        return _side(span, match["sside"], clock=match["shour"] is not None)
    if match["ohour"]:
        span = _clock(match, day, match["only"], "o")
        late = match["oside"] and "前" in match["oside"] and span[0] <= now
        return _side((span[0] + DAY, span[1]) if late else span, match["oside"], clock=True)  # a deadline lies ahead
    if match["daypart"]:
        return _part(day, match["daypart"])
    span = _date_zh(match, day)
    if span[0] and (match["hour"] or match["part"]):
        span = _clock(match, span[0], match["part"]) if match["hour"] else _part(span[0], match["part"])
    return _side(span, match["side"], clock=match["hour"] is not None)


def _date_zh(match: re.Match[str], day: datetime) -> Closed:
    if match["month"]:
        return _dated(match, day)
    if match["week"] or match["this"]:
        return _week(match, day)
    if match["moon"]:
        return _moon(match, day)
    if match["last"]:
        return _edge(_month(day, 12 - day.month if match["last"] == "年底" else 0), match["last"][-1])
    if match["yearonly"]:
        return _year(day, _YEARS[match["yearonly"]])
    if match["named"]:
        start = day + _DAYS_ZH[match["named"]] * DAY
    elif match["feast"]:
        start = _nearest(day, *_FEASTS[match["feast"]])
    else:
        start = day.replace(day=int(number(match["bare"])))
    return start, start + DAY


def _moon(match: re.Match[str], day: datetime) -> Closed:
    span = _month(day, {"上上": -2, "上": -1, "下": 1}.get(match["moon"], 0))
    if match["moonday"]:
        start = span[0].replace(day=int(number(match["moonday"])))
        return start, start + DAY
    return _edge(span, match["moonedge"]) if match["moonedge"] else span


def _nearest(day: datetime, month: int, date: int) -> datetime:
    """The date without a year: in January "11 November" was last year's."""
    years = (day.replace(year=year, month=month, day=date) for year in (day.year - 1, day.year, day.year + 1))
    return min(years, key=lambda start: abs(start - day))


def _year(day: datetime, years: int) -> Closed:
    start = day.replace(year=day.year + years, month=1, day=1)
    return start, start.replace(year=start.year + 1)


def _dated(match: re.Match[str], day: datetime) -> Closed:
    month = int(number(match["month"]))
    if match["year"] or match["past"]:
        year = int(match["year"]) if match["year"] else day.year + _YEARS[match["past"]]
        first = day.replace(year=year, month=month, day=1)
    else:
        first = _nearest(day, month, 1)
    if match["edge"]:
        return _edge(_month(first, 0), match["edge"])
    if not match["day"]:
        return _month(first, 0)
    start = first.replace(day=int(number(match["day"])))
    return start, start + DAY


def _week(match: re.Match[str], day: datetime) -> Closed:
    weeks = {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(match["week"] or "", 0)
    monday = day - day.weekday() * DAY + 7 * weeks * DAY
    name = match["weekday"] or match["this"]
    if name is None:
        return monday, monday + 7 * DAY
    if name == "末":
        return monday + 5 * DAY, monday + 7 * DAY
    start = monday + "一二三四五六日天".index(name.replace("天", "日")) * DAY
    return start, start + DAY


def _counted(count: str, unit: str, way: str, now: datetime, day: datetime) -> Interval | None:
    """So long ago, from now on, or within; days and more are whole days."""
    if count in ("几", "few"):
        return None
    amount = _WORDS_EN.get(count.lower()) or (0 if count == "半" else int(number(count)))
    back = "前" in way or way in ("ago", "before")
    if unit in ("月", "month") and not amount:
        amount, unit = 15, "天"  # half a month
    if unit in ("月", "month", "年", "year"):
        there = _shifted(day, (12 if unit in ("年", "year") else 1) * amount * (-1 if back else 1))
        return (day, there) if "内" in way or way == "within" else (there, there + DAY)
    seconds = _SECONDS[unit] * amount or _SECONDS[unit] // 2
    whole = seconds % 86_400 == 0
    origin = day if whole else now.replace(second=0, microsecond=0)
    there = origin + timedelta(seconds=-seconds if back or way == "past" else seconds)
    if "内" in way or way == "within":
        return origin, there + (DAY if whole else timedelta())
    if way == "past":
        return there, origin + DAY
    return there, there + (DAY if whole else timedelta(minutes=1))


def _shifted(day: datetime, months: int) -> datetime:
    """The same day so many months away, or that month's last."""
    start, end = _month(day, months)
    return min(start + (day.day - 1) * DAY, end - DAY)


def _english(match: re.Match[str], now: datetime, day: datetime) -> Interval | None:
    if match["count"]:
        way = "ago" if match["way"].lower() != "from now" else "from now"
        return _counted(match["count"], match["unit"].lower(), way, now, day)
    if match["within"]:
        way = "within" if match["within"].lower() in ("in", "within") else "past"
        return _counted(match["wcount"], match["wunit"].lower(), way, now, day)
    return _side(_date_en(match, day), match["side"], clock=match["hour"] is not None)


def _date_en(match: re.Match[str], day: datetime) -> Closed:
    if match["short"]:
        words = match["short"].lower().split()
        there = day - DAY if words[0] == "last" else day
        return _part(there, "night" if words[-1] == "tonight" else words[-1])
    if match["which"]:
        return _period(match["which"].lower(), match["period"].lower(), day)
    if match["hour"]:
        hour = int(match["hour"]) % 12 + (12 if match["half"].lower().startswith("p") else 0)
        start = day + timedelta(hours=hour, minutes=int(match["minute"] or 0))
        return start, start + timedelta(hours=1)
    part = match["part"] or match["wpart"]
    if match["named"]:
        name = match["named"].lower().removeprefix("the ")
        start = day + {"day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1}.get(name, 2) * DAY
    elif match["weekday"]:  # the last one, today among them: a customer tells what happened
        start = day - (day.weekday() - _WEEKDAYS_EN.index(match["weekday"].lower())) % 7 * DAY
    else:
        month = _MONTHS_EN.index((match["month"] or match["dmonth"])[:3].lower()) + 1
        year = match["year"] or match["myear"] or match["dyear"]
        first = day.replace(year=int(year), month=month, day=1) if year else _nearest(day, month, 1)
        if match["myear"]:
            return _month(first, 0)
        start = first.replace(day=int(match["day"] or match["dday"]))
    return _part(start, part.lower()) if part else (start, start + DAY)


def _period(which: str, period: str, day: datetime) -> Closed:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if period == "month":
        return _month(day, step)
    if period == "year":
        return _year(day, step)
    monday = day - day.weekday() * DAY
    if period == "week":
        return monday + 7 * step * DAY, monday + 7 * (step + 1) * DAY
    index = _WEEKDAYS_EN.index(period)
    last = day - ((day.weekday() - index - 1) % 7 + 1) * DAY
    start = last if which == "last" else monday + (7 * step + index) * DAY
    return start, start + DAY
