"""Intake: derived ids, masks, seals and the record that goes to channel.events."""

from __future__ import annotations

import orjson
import pytest
from pydantic import TypeAdapter

from memory.sealing import MemoryKeyStore, open_seal
from schemas import cloudevents, codec
from schemas.events import ChannelEvent, RawEvent
from schemas.partition import partition_of
from streams.intake import channel_event_record, event_id, intake

NOW = 1_790_000_000_000


def raw(**changes: object) -> RawEvent:
    """A text message, with changes."""
    base = {"id": "c-1", "shop": "acme", "channel": "web", "sender": "u-1",
            "body": {"kind": "message", "message_id": "m-1", "text": "请尽快退款"}}  # fmt: skip
    return TypeAdapter(RawEvent).validate_json(orjson.dumps({**base, **changes}))


def message(text: str, **more: object) -> dict[str, object]:
    """A message body."""
    return {"kind": "message", "message_id": "m-1", "text": text, **more}


def test_the_same_event_has_the_same_id() -> None:
    """Produced twice by two producers, an event has one id (A15); its text does not matter."""
    assert event_id(raw()) == event_id(raw(body=message("again")))


@pytest.mark.parametrize("other", [{"sender": "u-2"}, {"channel": "app"}, {"shop": "other"}, {"id": "c-2"}])
def test_another_sender_with_the_same_producer_id_is_another_event(other: dict[str, str]) -> None:
    """The id holds shop, channel and sender beside the producer's id (B01)."""
    assert event_id(raw()) != event_id(raw(**other))


def test_no_sender_can_be_spelled_into_another_ones_id() -> None:
    """Sender and producer id can't flow into each other (B01)."""
    assert event_id(raw(sender="u|1", id="x")) != event_id(raw(sender="u", id="1|x"))


def test_a_phone_is_masked_and_sealed() -> None:
    """On channel.events a phone lacks its middle four digits; the clear body is in the seal (R-000-12)."""
    keys = MemoryKeyStore()
    event = intake(raw(body=message("我的电话是13912345678,请回电")), keys)

    assert event.body.kind == "message"
    assert event.body.text == "我的电话是139****5678,请回电"
    assert event.seal is not None
    assert b"13912345678" not in codec.encode(event)
    clear = open_seal(keys, event.seal, event.conversation)
    assert clear is not None
    assert orjson.loads(clear)["text"] == "我的电话是13912345678,请回电"


def test_the_text_of_a_picture_is_masked_too() -> None:
    """A number that OCR read is as sensitive as one that was typed."""
    picture = {"kind": "image", "ref": "img-1", "text": "收件人 13912345678"}
    event = intake(raw(body=message("看图", attachments=[picture])), MemoryKeyStore())

    assert event.body.kind == "message"
    assert event.body.attachments[0].text == "收件人 139****5678"
    assert event.seal is not None


@pytest.mark.parametrize("body", [
    {"kind": "edit", "message_id": "m-1", "text": "call 13912345678"},
    {"kind": "rating", "score": 2, "text": "call 13912345678"},
])  # fmt: skip
def test_edits_and_ratings_are_masked(body: dict[str, object]) -> None:
    """Every kind with a text is masked."""
    event = intake(raw(body=body), MemoryKeyStore())

    assert event.body.kind in {"edit", "rating"}
    assert getattr(event.body, "text", "") == "call 139****5678"
    assert event.seal is not None


@pytest.mark.parametrize("body", [
    message("订单 1001 要退款"),
    {"kind": "recall", "message_id": "m-1"},
    {"kind": "heartbeat"},
    {"kind": "presence", "status": "offline"},
])  # fmt: skip
def test_nothing_masked_is_nothing_sealed(body: dict[str, object]) -> None:
    """Without a sensitive value the body travels as it is and no key is made."""
    event = intake(raw(body=body), MemoryKeyStore())

    assert event.seal is None
    assert event.body == raw(body=body).body


def test_an_escaped_surrogate_pair_is_one_emoji() -> None:
    """JSON escapes of an emoji become one code point, and valid UTF-8 on the topic (B15)."""
    text = rb'"\ud83d\ude2d\u9000\u6b3e"'
    given = orjson.dumps(message("TEXT")).replace(b'"TEXT"', text)
    event = intake(raw(body=orjson.loads(given)), MemoryKeyStore())

    assert event.body.kind == "message"
    assert event.body.text == "\U0001f62d退款"
    assert "\U0001f62d退款".encode() in codec.encode(event)


def test_the_record_is_keyed_and_placed_by_its_conversation() -> None:
    """The record's key is the conversation, its partition Java's murmur2 of it, its CloudEvents id the event's."""
    event = intake(raw(), MemoryKeyStore())
    record = channel_event_record(event, 12, NOW)

    assert (record.topic, record.key) == ("channel.events", b"acme/web/u-1")
    assert record.partition == partition_of(b"acme/web/u-1", 12)
    envelope = cloudevents.parse_headers(record.topic, record.headers)
    assert envelope.id == event.event_id
    assert codec.decode(record.topic, record.value or b"", envelope.type) == event
    assert isinstance(event, ChannelEvent)


def test_b17_nul_is_hidden_and_kept() -> None:
    """Case B17: readable text has no NUL, so a phone around one is masked; the seal keeps every character."""
    keys = MemoryKeyStore()
    text = "订单\x001001 电话139\x0012345678 订\u200b单"
    event = intake(raw(body=message(text)), keys)

    assert event.body.kind == "message"
    assert event.body.text == "订单1001 电话139****5678 订\u200b单"
    assert event.seal is not None
    clear = open_seal(keys, event.seal, event.conversation)
    assert clear is not None
    assert orjson.loads(clear)["text"] == text
