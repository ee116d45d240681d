"""Each kind of WeChat push becomes the event that it is."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.delivery import Receipt
from schemas.events import Attachment, MessageBody, RawEvent, UnsupportedBody
from streams.channels.wechat.messages import read_fields
from streams.gateway.reading import RefusedError
from streams.intake import event_id
from tests.streams.channels import wechat_side as side


def event(kind: str, **more: str | int) -> RawEvent:
    """The one event of a push."""
    values = {name: str(value) for name, value in side.fields(kind, **more).items()}
    (found,), receipts = read_fields(values, side.SHOP)
    assert not receipts
    return found


def message(kind: str, **more: str | int) -> MessageBody:
    """The one message of a push."""
    body = event(kind, MsgId="6500000000000000001", **more).body
    assert isinstance(body, MessageBody)
    return body


def attached(kind: str, **more: str | int) -> tuple[str, str, str]:
    """Kind, reference and text of the one attachment."""
    body = message(kind, **more)
    (file,) = body.attachments
    assert isinstance(file, Attachment)
    assert not body.text
    return file.kind, file.ref, file.text


def test_a_text() -> None:
    """Sender, time in milliseconds and text arrive exactly; the id is the sender's own."""
    found = event("text", Content=" 我要退款 <b>&", MsgId="6500000000000000001")

    assert f"demo/wechat/{side.FOLLOWER}" == found.conversation
    assert side.NOW == found.occurred_at
    assert {"kind": "message", "message_id": "wx-6500000000000000001", "text": " 我要退款 <b>&",
            "attachments": ()} == found.body.model_dump()  # fmt: skip


@pytest.mark.parametrize(("kind", "more", "expected"), [
    ("voice", {"MediaId": "v-1", "Format": "amr", "Recognition": "我要退款。"}, ("voice", "v-1", "我要退款。")),
    ("voice", {"MediaId": "v-1", "Format": "speex", "Recognition": ""}, ("voice", "v-1", "")),
    ("voice", {"MediaId": "v-1", "Format": "amr"}, ("voice", "v-1", "")),
    ("image", {"MediaId": "i-1", "PicUrl": "http://mmbiz.example/1"}, ("image", "i-1", "")),
    ("video", {"MediaId": "d-1", "ThumbMediaId": "t-1"}, ("video", "d-1", "")),
    ("shortvideo", {"MediaId": "d-1", "ThumbMediaId": "t-1"}, ("video", "d-1", "")),
    ("location", {"Location_X": "23.134521", "Location_Y": "113.358803", "Scale": 20, "Label": "中关村大街1号"},
     ("location", "geo:23.134521,113.358803", "中关村大街1号")),
    ("link", {"Title": "蓝色连衣裙", "Description": "M码", "Url": "https://shop.example/p/1001"},
     ("link", "https://shop.example/p/1001", "蓝色连衣裙\nM码\nhttps://shop.example/p/1001")),
    ("miniprogrampage", {"Title": "订单", "AppId": "wx9", "PagePath": "pages/order?id=OD100001"},
     ("link", "miniprogram:wx9/pages/order?id=OD100001", "订单\npages/order?id=OD100001")),
])  # fmt: skip
def test_other_kinds_are_attachments(kind: str, more: dict[str, Any], expected: tuple[str, str, str]) -> None:
    """Voice with or without a transcript (case B09), pictures, places and links travel by reference with their text."""
    assert expected == attached(kind, **more)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "https://x.example/" + "a" * 400, ""])
def test_a_link_that_is_no_reference_leads_nowhere(url: str) -> None:
    """An address that could run, or is too long, is kept as text; the reference only names it."""
    kind, ref, text = attached("link", Title="看这个", Description="", Url=url)

    assert ("link", True) == (kind, ref.startswith("sha256:"))
    assert text.endswith(url)


@pytest.mark.parametrize(("kind", "more", "expected"), [
    ("hologram", {"MsgId": "1"}, "hologram"),
    ("event", {"Event": "view_miniprogram", "EventKey": "pages/index"}, "event.view_miniprogram"),
    ("event", {"Event": "subscribe"}, "event.subscribe"), ("event", {"Event": "unsubscribe"}, "event.unsubscribe"),
    ("event", {"Event": "CLICK", "EventKey": "refund"}, "event.click"), ("event", {"Event": ""}, "event."),
    ("全息 图", {"MsgId": "1"}, "____"), ("x" * 500, {"MsgId": "1"}, "x" * 60),
])  # fmt: skip
def test_b07_unknown_kinds_are_kept_and_are_no_words(kind: str, more: dict[str, Any], expected: str) -> None:
    """A kind or event that is no message is `unsupported` under its own name (case B07)."""
    body = event(kind, **more).body

    assert isinstance(body, UnsupportedBody)
    assert expected == body.type


def test_events_without_an_id_are_told_apart() -> None:
    """They are one by sender, time and kind, as the manual says: a repeat is one event, another kind is another."""
    same, again = (event("event", Event="subscribe") for _ in range(2))
    others = (event("event", Event="unsubscribe"), event("event", Event="subscribe", CreateTime=side.SECOND + 1))

    assert event_id(same) == event_id(again)
    assert event_id(same) not in {event_id(other) for other in others}


def test_b01_a_message_id_counts_for_its_sender() -> None:
    """The same MsgId of two senders is two events, of one sender one (case B01)."""
    voice = {"MsgId": "6500000000000000001", "MediaId": "v"}
    first, repeat, other = (event("voice", FromUserName=who, **voice) for who in ("u-A", "u-A", "u-B"))

    assert event_id(first) == event_id(repeat)
    assert event_id(first) != event_id(other)


@pytest.mark.parametrize(("status", "state", "reason"), [
    ("success", "delivered", ""), ("failed:user block", "failed", "failed:user block"),
    ("failed: system failed", "failed", "failed: system failed"), ("something new", "failed", "something new"),
])  # fmt: skip
def test_a_template_report_is_a_receipt(status: str, state: str, reason: str) -> None:
    """TEMPLATESENDJOBFINISH says what became of a template message, by WeChat's name of it."""
    report = side.fields("event", Event="TEMPLATESENDJOBFINISH", MsgID=200163836, Status=status)
    events, ((where, receipt),) = read_fields({name: str(value) for name, value in report.items()}, side.SHOP)

    assert () == events
    assert f"demo/wechat/{side.FOLLOWER}" == where
    assert isinstance(receipt, Receipt)
    assert ("wechat:200163836", state, reason) == (receipt.message_id, receipt.state, receipt.reason)


@pytest.mark.parametrize(("stamp", "expected"), [
    ("1767578400", 1_767_578_400_000), ("1767578400000", 1_767_578_400_000), ("1767578400000000", 1_767_578_400_000),
])  # fmt: skip
def test_d15_the_unit_of_a_time_is_recognized(stamp: str, expected: int) -> None:
    """Seconds, milliseconds and microseconds are told apart by their size (case D15)."""
    assert expected == event("text", Content="x", MsgId="1", CreateTime=stamp).occurred_at


@pytest.mark.parametrize(("change", "field"), [
    ({"CreateTime": "0"}, "CreateTime"), ({"CreateTime": "-5"}, "CreateTime"), ({"CreateTime": "9" * 30}, "CreateTime"),
    ({"CreateTime": "１７"}, "CreateTime"), ({"FromUserName": ""}, "FromUserName"), ({"FromUserName": "a/b"}, "sender"),
    ({"MsgType": ""}, "MsgType"), ({"MsgId": ""}, "MsgId"), ({"Content": "字" * 20_001}, "body.text"),
    ({"FromUserName": "x" * 65}, "sender"),
])  # fmt: skip
def test_what_can_not_be_an_event_names_its_field(change: dict[str, str], field: str) -> None:
    """A push that is signed and makes no event is 422 with the field (case D15 for times)."""
    with pytest.raises(RefusedError) as caught:
        event("text", **{"Content": "x", "MsgId": "1", **change})

    assert (422, field) == (caught.value.status, caught.value.field)
