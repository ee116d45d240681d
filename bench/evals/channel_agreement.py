"""The same wish typed, spoken and photographed: 200 seeded wishes must be read alike in all three forms (R-002-02).

Spoken: no punctuation, digits said one by one, filler words. Photographed: broken lines, full-width signs, odd spaces.
Numbers are not torn in two by a line's end, and fillers are no words that mean something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from agents.understanding.port import Reading, Understanding
from bench.evals.data import read, reader
from bench.report import Result

ROWS = {"channel_agreement": "%", "channel_correct": "%"}
SEED, WISHES = 20_260_105, 200

_ZH = (
    ("refund", "我要退款，订单{order}。"), ("refund", "你好，订单{order}我要退款，因为{why}。"),
    ("refund", "订单{order}申请退款，退我{amount}元。"), ("refund", "我要退那个{colour}{thing}。"),
    ("refund_status", "{colour}{thing}退了没？"), ("refund_status", "订单{order}的退款什么时候到账？"),
    ("refund_status", "我的退款到了吗？单号{order}。"), ("logistics", "订单{order}的物流到哪了？"),
    ("logistics", "帮我查一下快递，单号{order}。"), ("logistics", "我买的{colour}{thing}什么时候发货？"),
    ("exchange", "我想换货，订单{order}，{thing}换成{size}码。"), ("exchange", "{thing}{why}，我要换货。"),
    ("change_address", "订单{order}帮我改地址，改成{place}。"), ("change_address", "地址改成{place}，电话{phone}。"),
    ("cancel", "订单{order}我要取消订单。"), ("cancel", "帮我取消订单{order}，谢谢。"),
    ("invoice", "订单{order}帮我开发票。"), ("complaint", "我要投诉，订单{order}的{thing}{why}。"),
    ("human", "转人工。"), ("human", "我要找人工客服，订单{order}。"),
    ("refund", "订单{order}我要退款，{thing}{why}。"), ("change_phone", "帮我改手机号，改成{phone}。"),
    ("coupon_price", "{thing}有没有优惠券？"), ("refund", "我要退款，再查一下订单{other}的物流。"),
    ("refund_status", "钱怎么还没退给我，订单{order}。"), ("refund_amount", "订单{order}能退我多少钱？"),
    ("logistics", "都好几天了，{thing}还没到。"), ("exchange", "{thing}大了，想换{size}码的，单号{order}。"),
    ("cancel", "{thing}别发货了，订单{order}取消吧。"), ("change_address", "我搬家了，订单{order}请寄到{place}。"),
    ("invoice", "发票开好了吗，订单{order}的。"), ("human", "你听不懂，换个人来跟我说。"),
    ("product_question", "这个{thing}有{colour}的吗？"), ("refund", "买的{thing}{why}，钱退给我。"),
    ("complaint", "你们态度太差了，我要投诉！"), ("change_phone", "收货电话换成{phone}，订单{order}。"),
)  # fmt: skip
_EN = (
    ("refund", "I want a refund for order {order}."), ("refund", "Please refund order {order}, because {why}."),
    ("refund", "Refund {amount} yuan for order {order}, please."),
    ("refund", "I want a refund for the {colour} {thing}."),
    ("refund_status", "Where is my refund for order {order}?"),
    ("refund_status", "Has the {colour} {thing} been refunded yet?"), ("logistics", "Where is my order {order}?"),
    ("logistics", "Please track order {order}."), ("logistics", "When will the {colour} {thing} be shipped?"),
    ("exchange", "I want to exchange the {thing} for size {size}, order {order}."),
    ("change_address", "Change the address of order {order} to {place}, please."),
    ("change_address", "My new address is {place}."), ("cancel", "Please cancel my order {order}."),
    ("cancel", "I want to cancel order {order}."), ("invoice", "Please send me the invoice for order {order}."),
    ("complaint", "I want to make a complaint, order {order}, {why}."), ("human", "I want to talk to a person."),
    ("human", "Please connect me to a human agent, order {order}."),
    ("coupon_price", "Is there a coupon for the {thing}?"),
    ("change_phone", "Please change my phone number to {phone}."),
    ("refund", "Refund order {order} and track order {other}."),
    ("cancel", "Don't ship order {order}, cancel it."),
    ("refund_amount", "How much will I get back for order {order}?"),
    ("refund_status", "Still no money back for order {order}."), ("logistics", "My {thing} hasn't arrived yet."),
    ("exchange", "The {thing} is too small, can I swap it for a {size}? Order {order}."),
    ("change_address", "I moved, so send order {order} to {place}."),
    ("invoice", "I need a receipt for order {order}."),
    ("human", "You don't get it. Let me speak to someone."),
    ("refund", "The {thing} came and {why}, I want my money back."),
    ("product_question", "Does the {thing} come in {colour}?"),
    ("complaint", "Your service is awful, I will complain!"),
    ("change_phone", "Use {phone} as the contact phone for order {order}."),
)  # fmt: skip
_VALUES = {
    "zh": {
        "colour": ("蓝色", "红色", "黑色", "白色", "米色", "藏青色"),
        "thing": ("裙子", "跑鞋", "外套", "耳机", "保温杯", "台灯"),
        "why": ("坏了", "质量太差", "尺码不合适", "发错了"), "size": ("M", "XL", "42"),
        "place": ("上海市浦东新区世纪大道100号", "杭州市西湖区文三路8号", "北京市朝阳区建国路88号"),
    },
    "en": {
        "colour": ("blue", "red", "black", "white", "navy"), "thing": ("dress", "shoes", "jacket", "headphones", "mug"),
        "why": ("it is broken", "it arrived damaged", "it does not fit"), "size": ("M", "XL", "42"),
        "place": ("12 Oak Street", "88 Queen Road", "7 Hill Lane"),
    },
}  # fmt: skip
_PAIR = (("refund", "我要退那个蓝色裙子"), ("refund_status", "蓝裙子退了没"))
_SAID_ZH = dict(zip("0123456789", "零一二三四五六七八九", strict=True))
_SAID_EN = {"0": "zero", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "7": "seven",
            "8": "eight", "9": "nine"}  # fmt: skip
_AMOUNTS = {20: ("二十", "twenty"), 55: ("五十五", "fifty five"), 120: ("一百二十", "one hundred and twenty")}
_FILLERS_ZH, _FILLERS_EN = ("嗯", "呃", "那个", "就是", "啊"), ("um", "uh", "well", "so um")
_TOKEN = re.compile(r"[A-Za-z0-9]+|.", re.DOTALL)
_PUNCTUATION = re.compile("[，。？！、；：,.?!;:]")


@dataclass(frozen=True, slots=True)
class Wish:
    """One wish in its three forms."""

    intent: str
    typed: str
    spoken: str
    photographed: str


def wishes(seed: int = SEED, count: int = WISHES) -> list[Wish]:
    """The pair of the issue, then as many wishes of both languages as asked for; the same seed gives the same."""
    random = Random(seed)
    pair = [
        Wish(intent, text, _spoken(text, "zh", random), _photographed(text, "zh", random)) for intent, text in _PAIR
    ]
    return pair + [_wish("zh" if index % 2 else "en", random) for index in range(count - len(pair))]


def _wish(language: str, random: Random) -> Wish:
    intent, template = random.choice(_ZH if language == "zh" else _EN)
    values = {name: random.choice(options) for name, options in _VALUES[language].items()}
    values |= {"order": _order(random), "other": _order(random), "phone": f"138{random.randrange(10**8):08}"}
    amount = random.choice(list(_AMOUNTS))
    typed = template.format(**values, amount=amount)
    said = template.format(**values, amount=_AMOUNTS[amount][language == "en"])
    return Wish(intent, typed, _spoken(said, language, random), _photographed(typed, language, random))


def _order(random: Random) -> str:
    return random.choice((f"OD{random.randrange(10**6):06}", f"W{random.randrange(10**6, 10**7)}",
                          f"2026{random.randrange(10**8):08}", f"{random.randrange(1_000, 2_000)}"))  # fmt: skip


def _spoken(text: str, language: str, random: Random) -> str:
    if language == "en":
        words = _PUNCTUATION.sub(" ", text).lower().split()
        said = [_digits_en(word, random) if word.isalnum() and len(word) >= 4 else word for word in words]
        return " ".join([random.choice(_FILLERS_EN), *said])
    plain = re.sub(r"\d{4,}", lambda run: _digits_zh(run[0], random), text)
    clauses = [clause for clause in _PUNCTUATION.sub("|", plain).split("|") if clause]
    return "".join(random.choice((*_FILLERS_ZH, "", "")) + clause for clause in clauses)


def _digits_zh(run: str, random: Random) -> str:
    said = "".join(_SAID_ZH[digit] for digit in run)
    return said.replace("一", "幺") if random.random() < 0.5 else said


def _digits_en(word: str, random: Random) -> str:
    head = word.rstrip("0123456789")
    digits = word[len(head) :]
    if not digits:
        return word
    zero = random.choice(("zero", "oh"))
    return " ".join([*head, *(zero if digit == "0" else _SAID_EN[digit] for digit in digits)])


def _photographed(text: str, language: str, random: Random) -> str:
    """Lines of about ten signs (English: four words), a third of the numbers in full width, some spaces too many."""
    wide = random.random() < 1 / 3
    tokens = text.split(" ") if language == "en" else _TOKEN.findall(text)
    lines, line, limit = (
        list[str](),
        list[str](),
        random.randrange(3, 6) if language == "en" else random.randrange(6, 12),
    )
    for token in tokens:
        line.append(_wide(token) if wide and token[-1:].isdigit() else token)
        if len(line) >= limit:
            lines, line = [*lines, _line(line, language, random)], []
    return "\n".join([*lines, _line(line, language, random)]).strip()


def _line(tokens: list[str], language: str, random: Random) -> str:
    gap = "" if language == "zh" else " "
    return "".join(token + gap + (" " if random.random() < 0.15 else "") for token in tokens).rstrip()


def _wide(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def read_as(reading: Reading) -> list[tuple[str, str]]:
    """What must agree: the wishes in order, with their slots; nobody speaks in capitals."""
    return [(wish.intent, str(wish.slots).casefold()) for wish in reading.wishes]


def disagreements(understanding: Understanding, spoken: list[Wish]) -> list[Wish]:
    """The wishes that are not read alike in all forms."""
    return [
        wish for wish in spoken
        if not read_as(read(understanding, wish.typed)) == read_as(read(understanding, wish.spoken))
        == read_as(read(understanding, wish.photographed))
    ]  # fmt: skip


def rows() -> list[Result]:
    """The rows of ROWS."""
    understanding, spoken = reader(), wishes()
    apart = disagreements(understanding, spoken)
    right = [wish for wish in spoken if read(understanding, wish.typed).wishes[0].intent == wish.intent]
    note = "typed, spoken and photographed, zh and en: same wishes in order, same slots"
    return [
        Result("channel_agreement", round(100 * (1 - len(apart) / len(spoken)), 2), "%", n=len(spoken), note=note),
        Result("channel_correct", round(100 * len(right) / len(spoken), 2), "%", n=len(spoken),
               note="of the typed form: the main intent is the one that the sentence was written for"),
    ]  # fmt: skip
