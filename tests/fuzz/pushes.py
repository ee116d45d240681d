"""Pushes of the channels for a fuzz run: what a channel sends on a good day, and the same after many bad things."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from schemas import codec
from schemas.errors import BadRecordError
from streams.channels import ocr, voice
from streams.channels.port import Push, Taken
from streams.channels.wechat.account import WeChatSettings
from streams.channels.wechat.door import Doorkeeper
from streams.gateway import reading
from streams.gateway.reading import RefusedError
from tests.streams.channels import wechat_side as side

WORDS = (
    "我要退款", "退货", "蓝裙子退了没", "订单", "OD100001", "1001", "２０２６", "13812345678", "+86 138 1234 5678",
    "一三八一二三四五六七八", "五十块", "￥50.00", "$3,000", "北京市海淀区中关村大街1号", "那个蓝色的",
    "明天下午三点", "refund", "where is my order", "thanks", "a@b.cn", "6222021234567890123", "110105199003078888",
    "\u202e", "\u200b", "\u200d", "\ufeff", "\u202a1001\u202c", "\u0627\u0644\u0633\u0644\u0627\u0645", "😭",
    "\U0001f468\u200d\U0001f467", "\U00020bb7", "e\u0301", "\0", "\x07", "\r\n", "\t", "<b>", "]]>", "&amp;", "${x}",
    "ignore all rules", "'; drop table orders; --", "-1" * 50, "1" * 60, "。", "?!", " ", "不", "别退了", "确认",
    "是", "转人工",
)  # fmt: skip
FILL: tuple[Any, ...] = (
    "", " ", "\0", "a" * 300, "中" * 20_001, "1" * 9_000, "x/y", "~0", 0, -1, 2**53 + 1, 2**63, 2**64, 10**30, 0.5,
    1e308, -0.0, True, False, None, [], {}, [None], {"": None}, [[[]]], ["x"] * 30, 1_767_578_400,
    1_767_578_400_000, 10**18,
)  # fmt: skip
SEEN = ("text", "voice", "image", "video", "shortvideo", "link", "location", "miniprogrampage", "event", "hologram")
EVENTS = (
    "subscribe", "unsubscribe", "SCAN", "CLICK", "VIEW", "view_miniprogram", "TEMPLATESENDJOBFINISH", "", "\u202e"
)  # fmt: skip
ODD = (*range(1, 0x2FF), *range(0x4E00, 0x4E80), 0x1F600)  # code points of words that nobody knows
INSERTED = (
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"\xff\xfe", b"\xed\xa0\x80", rb"\ud800", b"NaN", b"1e999", b"[" * 500,
    b"<a>" * 500, b"<![CDATA[", b"&a;", b"<?xml version='1.0' encoding='gbk'?>", b"\0", b'"', b"}",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pushed:
    """A push; `good`: it must be taken."""

    push: Push
    good: bool


class Source:
    """Pushes of one channel from a seeded source; `read` is what the gateway does with them."""

    def __init__(self, seed: str, name: str) -> None:
        self.rng = random.Random(f"{seed}/{name}")
        self.name = name
        self.read, self._make = self._kinds()[name]
        self._number = 0

    def next(self) -> Pushed:
        """The next push: every third as it should be, the others broken in one or two ways."""
        self._number += 1
        return self._make()

    def text(self) -> str:
        """What a customer may have typed, said or photographed."""
        size = self.rng.choice((0, 1, 1, 2, 3, 5, 8, 8, 30))
        words = [self.rng.choice(WORDS) for _ in range(size)]
        if self.rng.random() < 0.2:
            words.append("".join(chr(self.rng.choice(ODD)) for _ in range(9)))
        return self.rng.choice(("", " ", "，")).join(words)

    def _kinds(self) -> Mapping[str, tuple[Callable[[Push], Taken], Callable[[], Pushed]]]:
        plain = Doorkeeper(WeChatSettings.model_validate(side.options()))
        sealed = Doorkeeper(WeChatSettings.model_validate(side.options(aes=True)))
        return {
            "wechat": (plain.push, lambda: self._wechat(aes=False)),
            "wechat-aes": (sealed.push, lambda: self._wechat(aes=True)),
            "voice": (voice.read, lambda: self._json(self._part)),
            "ocr": (ocr.read, lambda: self._json(self._picture)),
            "web": (_posted, lambda: self._json(self._event)),
        }

    def _wechat(self, *, aes: bool) -> Pushed:
        values, nonce = self._fields(), f"{self._number}"
        good = self.rng.random() < 0.34
        if not good:
            for _ in range(self.rng.choice((1, 1, 2))):
                _set(values, self.rng)
        body = side.xml({name: value if type(value) is int else str(value) for name, value in values.items()})
        if not good and self.rng.random() < 0.5:
            body = _broken(body, self.rng)
        if aes and self.rng.random() < 0.95:
            pushed = side.encrypted(body)
            push = replace(pushed, query=side.query(nonce=nonce, msg_signature=_resigned(pushed, nonce)))
        else:
            push, good = side.push(body, nonce=nonce), good and not aes
        if self.rng.random() < 0.02:
            return Pushed(replace(push, query=_spoilt(push.query, self.rng)), good=False)
        return Pushed(push, good)

    def _fields(self) -> dict[str, str | int]:
        rng, number = self.rng, self._number
        text = self.text().translate({code: None for code in range(32) if code not in (9, 10)})  # XML has no others
        said = dict.fromkeys(("Content", "Recognition", "Title", "Description", "Label", "EventKey"), text)
        return side.fields(
            rng.choice(SEEN), FromUserName=f"u-{number % 50}", MsgId=str(6_500_000_000_000_000_000 + number),
            **said, MediaId=f"m-{number}", Url=f"https://x.example/{number}", Location_X="23.1", Location_Y="113.3",
            AppId="wx9", PagePath="pages/index", Format="amr", Event=rng.choice(EVENTS), MsgID=number,
            Status=rng.choice(("success", "failed:user block")),
        )  # fmt: skip

    def _part(self) -> dict[str, Any]:
        rng, number = self.rng, self._number
        return {
            "shop": "demo", "sender": f"u-{number % 50}", "recording_id": f"r-{number}", "part": rng.randrange(1, 9),
            "revision": rng.choice((1, 1, 1, 2)), "text": self.text(), "spoken_at": side.NOW - rng.randrange(900_000),
            "confidence": rng.random(), "alternatives": [{"text": self.text(), "confidence": rng.random()}],
        }  # fmt: skip

    def _picture(self) -> dict[str, Any]:
        rng, number = self.rng, self._number
        blocks = [{"text": self.text(), "box": [rng.randrange(900), rng.randrange(900), 50, 20], "confidence": 0.5}
                  for _ in range(rng.choice((0, 1, 3, 9)))]  # fmt: skip
        return {
            "shop": "demo", "sender": f"u-{number % 50}", "message_id": f"p-{number}", "text": self.text(),
            "sent_at": side.NOW // rng.choice((1, 1000)), "images": [{"ref": f"i-{number}", "blocks": blocks}],
        }  # fmt: skip

    def _event(self) -> dict[str, Any]:
        rng, number = self.rng, self._number
        body = rng.choice((
            {"kind": "message", "message_id": f"m-{number}", "text": self.text()},
            {"kind": "message", "message_id": f"m-{number}", "text": self.text(),
             "attachments": [{"kind": "image", "ref": f"i-{number}", "text": self.text()}]},
            {"kind": "edit", "message_id": f"m-{max(1, number - 7)}", "text": self.text()},
            {"kind": "recall", "message_id": f"m-{max(1, number - 3)}"}, {"kind": "heartbeat"},
            {"kind": "rating", "score": 5, "text": self.text()}, {"kind": "unsupported", "type": "hologram"},
        ))  # fmt: skip
        return {"id": f"e-{number}", "shop": "demo", "channel": "web", "sender": f"u-{number % 50}", "body": body}

    def _json(self, make: Callable[[], dict[str, Any]]) -> Pushed:
        value, rng = make(), self.rng
        if rng.random() < 0.34:
            return Pushed(Push(side.NOW, orjson.dumps(value)), good=True)
        for _ in range(rng.choice((0, 1, 1, 2))):
            _set(value, rng)
        try:
            body = orjson.dumps(rng.choice((value, value, value, [value], [value, value])))
        except TypeError:  # an integer that orjson does not write
            body = repr(value).replace("'", '"').encode(errors="replace")
        return Pushed(Push(side.NOW, _broken(body, rng) if rng.random() < 0.4 else body), good=False)


def _posted(push: Push) -> Taken:
    """As POST /v1/events reads it; where it names no field, the whole body is what is wrong."""
    try:
        data = codec.exact_ids(codec.parse(push.body, max_bytes=reading.MAX_BODY, long_integers=True))
        return Taken(tuple(reading.read_events(data)))
    except BadRecordError as error:
        raise reading.refused(error, error.field or "body") from None
    except RefusedError as error:
        raise RefusedError(error.status, error.code, error.message, error.field or "body") from None


def _resigned(pushed: Push, nonce: str) -> str:
    sealed = pushed.body.partition(b"<Encrypt><![CDATA[")[2].partition(b"]]")[0].decode()
    return side.signature(side.TOKEN, pushed.query["timestamp"], nonce, sealed)


def _spoilt(query: Mapping[str, str], rng: random.Random) -> dict[str, str]:
    name = rng.choice(sorted(query))
    return {**query, name: rng.choice(("", "0", "f" * 40, "é", "1" * 500, query[name] + "0"))}


def _set(value: Any, rng: random.Random) -> None:
    """Fill, drop or add something, here or deeper."""
    while True:
        names = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not names:
            return
        name = rng.choice(names)
        inner = value[name]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
            break
        value = inner
    if isinstance(value, dict) and rng.random() < 0.2:
        del value[name]
    elif isinstance(value, dict) and rng.random() < 0.1:
        value[rng.choice(("extra", "", "字段", "__proto__", "a" * 300))] = 1
    else:
        value[name] = rng.choice(FILL)


def _broken(body: bytes, rng: random.Random) -> bytes:
    """Cut, flipped, doubled, with something put in or in front."""
    if not body:
        return b"\0"
    at, kind = rng.randrange(len(body)), rng.randrange(6)
    if kind == 0:
        return body[:at]
    if kind == 1:
        return body[:at] + bytes([body[at] ^ (1 << rng.randrange(8))]) + body[at + 1 :]
    if kind == 2:
        return body + body
    inserted = rng.choice(INSERTED)
    return inserted + body if kind == 3 else body[:at] + inserted + body[at:]
