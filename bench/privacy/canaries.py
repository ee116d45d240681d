"""Made-up sensitive values, each unlike all others, and what a customer would say around them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

KINDS = ("phone", "id_card", "bank_card", "email", "address", "name")
LANGUAGES = ("zh", "en")
CARRIERS = ("message", "edit", "ocr", "voice", "heard_as", "rating", "staff", "rubbish", "unkeyed")
_SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余杜叶程苏魏吕丁任沈姚卢"
_GIVEN = "伟芳娜敏静丽强磊洋艳勇军杰娟涛超霞秀平刚桂健俊帆辉玲鹏雪琳晨宁欣博宇轩梓涵怡萱睿哲瑶璐昊凯"
_FIRST = ("Amelia", "Oliver", "Harriet", "Jasper", "Imogen", "Felix", "Clara", "Hugo", "Beatrix", "Otis", "Freya",
          "Silas", "Maeve", "Edgar", "Nora", "Wilfred", "Greta", "Lionel", "Petra", "Dorian")  # fmt: skip
_LAST = ("Ashdown", "Birchall", "Coldwell", "Dunmore", "Eastham", "Fairclough", "Garswood", "Hollins", "Inskip",
         "Jessop", "Kettering", "Larkhill", "Merrow", "Northcote", "Oakden", "Penhall",
         "Quickfall", "Redfearn",
         "Stanmore", "Thornley")  # fmt: skip
_REGIONS = (
    "上海市浦东新区",
    "北京市朝阳区",
    "广东省深圳市南山区",
    "浙江省杭州市西湖区",
    "江苏省南京市鼓楼区",
    "四川省成都市武侯区",
    "",
)
_ROADS = (
    "世纪大道",
    "长青路",
    "文三西路",
    "中山北路",
    "人民大街",
    "解放路",
    "建设巷",
    "学院路",
    "滨江大道",
    "湖滨南路",
    "桂花街",
    "新华路",
)
_ESTATES = ("阳光花园", "幸福小区", "金色家园", "绿苑新村", "望江公寓", "")
_STREETS = (
    "Maple",
    "Elm",
    "Cedar Hill",
    "Old Mill",
    "Station",
    "Victoria",
    "Lake View",
    "Harbour",
    "North Park",
    "Abbey",
)
_WAYS = ("Street", "Road", "Avenue", "Lane", "Drive")
_TOWNS = (", Springfield, IL 62704", ", Leeds", ", Portland", "")
_SAID = {
    ("phone", "zh"): ("我的电话{v}打不通", "手机号{v}", "有事打{v}找我，订单1001"),
    ("phone", "en"): ("call me at {v} please", "my number is {v}, order 1001"),
    ("id_card", "zh"): ("身份证{v}请核对", "证件号是{v}，帮我查一下"),
    ("id_card", "en"): ("my id card is {v}, please check",),
    ("bank_card", "zh"): ("退到银行卡{v}", "卡号{v}转账"),
    ("bank_card", "en"): ("refund it to card {v} please",),
    ("email", "zh"): ("邮箱{v}收不到", "发票发到{v}吧"),
    ("email", "en"): ("mail me at {v}.", "my e-mail {v} is wrong"),
    ("address", "zh"): ("订单1006改地址，改成{v}", "请送到{v}，谢谢", "我家地址是{v}"),
    ("address", "en"): ("please ship it to {v}.", "my address is {v}, order 1006"),
    ("name", "zh"): ("我叫{v}，要退款", "收件人：{v}，", "我的名字是{v}"),
    ("name", "en"): ("my name is {v}.", "Recipient: {v}, order 1001"),
}


@dataclass(frozen=True, slots=True)
class Canary:
    """One value, how it is said and by which way; `needle` is what nobody may read (of an address all but its town)."""

    number: int
    kind: str
    language: str
    value: str
    needle: str
    text: str
    carrier: str


def canaries(count: int, seed: int = 1) -> list[Canary]:
    """The first `count`: kinds, languages and ways in turn, every value once."""
    dice, seen, found = random.Random(seed), set[str](), list[Canary]()
    while len(found) < count:
        number = len(found)
        kind, language = KINDS[number % 6], LANGUAGES[number // 6 % 2]
        value, needle = _value(dice, kind, language)
        if needle in seen:
            continue
        seen.add(needle)
        said = dice.choice(_SAID[kind, language]).format(v=value)
        # half of all are plain messages, as in life
        carrier = "message" if dice.random() < 0.5 else CARRIERS[number // 12 % len(CARRIERS)]
        found.append(Canary(number, kind, language, value, needle, said, carrier))
    return found


def _value(dice: random.Random, kind: str, language: str) -> tuple[str, str]:
    if kind == "address":
        return _address_zh(dice) if language == "zh" else _address_en(dice)
    value = {"phone": _phone, "id_card": _id_card, "bank_card": _card, "email": _email, "name": _name}[kind](
        dice, language
    )
    return value, value


def _digits(dice: random.Random, count: int) -> str:
    return "".join(dice.choice("0123456789") for _ in range(count))


def _phone(dice: random.Random, language: str) -> str:
    if language == "en":
        return (
            f"+44 20 {_digits(dice, 4)} {_digits(dice, 4)}" if dice.random() < 0.5 else f"(415) 555-{_digits(dice, 4)}"
        )
    plain = f"1{dice.choice('3578')}{_digits(dice, 9)}"
    shapes = (plain, f"{plain[:3]} {plain[3:7]} {plain[7:]}", f"{plain[:3]}-{plain[3:7]}-{plain[7:]}", f"+86 {plain}")
    return dice.choice(shapes)


def _id_card(dice: random.Random, _: str) -> str:
    born = date(1950, 1, 1) + timedelta(days=dice.randrange(20_000))
    head = f"{dice.choice(('110105', '310115', '440305', '330106'))}{born:%Y%m%d}{_digits(dice, 3)}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return head + "10X98765432"[sum(int(digit) * weight for digit, weight in zip(head, weights, strict=True)) % 11]


def _card(dice: random.Random, _: str) -> str:
    head = dice.choice(("4", "51", "6222", "6217")) + _digits(dice, 14)
    head = head[:15] if head[0] in "45" else head + _digits(dice, 18 - len(head))
    doubled = (int(digit) * 2 for digit in head[::-2])
    total = sum(value - 9 if value > 9 else value for value in doubled) + sum(map(int, head[-2::-2]))
    card = head + str(-total % 10)
    return card if dice.random() < 0.5 else " ".join(card[start : start + 4] for start in range(0, len(card), 4))


def _email(dice: random.Random, _: str) -> str:
    name = f"{dice.choice(_FIRST)}.{dice.choice(_LAST)}{_digits(dice, 3)}".lower()
    return f"{name}@{dice.choice(('example.com', 'mail.example.org', 'example.net'))}"


def _name(dice: random.Random, language: str) -> str:
    if language == "en":
        return f"{dice.choice(_FIRST)} {dice.choice(_LAST)}"
    return dice.choice(_SURNAMES) + dice.choice(_GIVEN) + dice.choice(_GIVEN)


def _address_zh(dice: random.Random) -> tuple[str, str]:
    detail = f"{dice.choice(_ROADS)}{dice.randrange(1, 999)}号"
    detail += f"{dice.choice(_ESTATES)}{dice.randrange(1, 60)}栋{dice.randrange(1, 9)}单元{dice.randrange(101, 2999)}室"
    return dice.choice(_REGIONS) + detail, detail


def _address_en(dice: random.Random) -> tuple[str, str]:
    street = f"{dice.randrange(10, 9999)} {dice.choice(_STREETS)} {dice.choice(_WAYS)}"
    street += dice.choice((f", Apt {dice.randrange(1, 99)}", ""))
    return street + dice.choice(_TOWNS), street


def by_customer(found: list[Canary], each: int) -> Iterator[tuple[str, list[Canary]]]:
    """Customers' ids with their canaries."""
    for start in range(0, len(found), each):
        yield f"p-{start // each:04d}", found[start : start + each]
