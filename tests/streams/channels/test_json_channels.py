"""Voice transcripts and the text of pictures: what they become, and how a wrong body is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from memory.sealing import MemoryKeyStore
from schemas.events import EditBody, MessageBody, RawEvent
from streams.channels import ocr, voice
from streams.channels.port import Push, Taken
from streams.channels.times import millis_of
from streams.gateway.reading import RefusedError
from streams.intake import event_id, intake
from tests.streams.channels.wechat_side import NOW

PART = {"shop": "demo", "sender": "u-1", "recording_id": "r-7", "part": 2, "text": "1001要退", "spoken_at": NOW,
        "confidence": 0.91, "alternatives": [{"text": "1007要退", "confidence": 0.4}]}  # fmt: skip
PICTURE = {
    "shop": "demo",
    "sender": "u-1",
    "message_id": "p-1",
    "text": "退这个",
    "images": [{"ref": "img-1", "blocks": []}],
}


def body_of(value: Any) -> Push:
    """A push of JSON."""
    return Push(NOW, value if isinstance(value, bytes) else orjson.dumps(value))


def one(taken: Taken) -> RawEvent:
    """The one event."""
    (event,) = taken.events
    return event


def spoken(**changes: Any) -> RawEvent:
    """A part of a recording."""
    return one(voice.read(body_of({**PART, **changes})))


def test_a_part_is_a_message_at_the_time_of_its_recording() -> None:
    """A transcript keeps its recording's time, confidence and alternatives; the event counts at that time (B19)."""
    event = spoken()

    assert isinstance(event.body, MessageBody)
    (file,) = event.body.attachments
    assert ("demo/voice/u-1", NOW, "r-7:2", "") == (
        event.conversation, event.occurred_at, event.body.message_id, event.body.text)  # fmt: skip
    assert ("voice", "r-7", "1001要退", 0.91, NOW) == (file.kind, file.ref, file.text, file.confidence, file.spoken_at)
    assert [("1007要退", 0.4)] == [(other.text, other.confidence) for other in file.alternatives]


def test_a_part_that_is_heard_anew_is_an_edit() -> None:
    """A higher revision changes the same message; a repeat of a revision is one event."""
    first, second = spoken(), spoken(revision=2, text="1002要退")

    assert isinstance(second.body, EditBody)
    assert ("r-7:2", "1002要退") == (second.body.message_id, second.body.text)
    assert 2 == len({event_id(first), event_id(second), event_id(spoken(revision=2, text="1002要退"))})


def test_alternatives_are_masked_like_the_text() -> None:
    """A phone number is masked in every way in which it was heard (promise 9)."""
    heard = [{"text": "电话13812345678", "confidence": 0.2}]
    event = intake(spoken(text="电话13912345678", alternatives=heard), MemoryKeyStore())

    shown = event.model_dump_json()
    assert "13812345678" not in shown
    assert "13912345678" not in shown
    assert event.seal is not None


@pytest.mark.parametrize("stamp", [NOW // 1000, NOW, NOW * 1000, NOW * 1_000_000])
def test_d15_a_recordings_time_in_any_unit(stamp: int) -> None:
    """Seconds to nanoseconds give the same time (case D15)."""
    assert NOW // 1000 == (spoken(spoken_at=stamp).occurred_at or 0) // 1000


@pytest.mark.parametrize(("number", "expected"), [
    (946_684_800, 946_684_800_000), (253_402_300_799, 253_402_300_799_000), (946_684_799, None), (0, None), (-1, None),
    (253_402_300_800, None), (946_684_800_000, 946_684_800_000), (10**30, None),
])  # fmt: skip
def test_d15_units_do_not_overlap(number: int, expected: int | None) -> None:
    """Each number has one reading or none, of the years 2000 to 9999 (case D15)."""
    assert expected == millis_of(number)


def block(text: str, *box: float, confidence: float | None = None) -> dict[str, Any]:
    """A block of text."""
    return {"text": text, "box": box, "confidence": confidence}


def test_blocks_are_read_as_a_person_reads() -> None:
    """Lines from top to bottom and blocks from left to right, however they are sent; one text a picture."""
    blocks = [block("1001", 120, 12, 60, 20, confidence=0.9), block("实付", 10, 60, 50, 20, confidence=0.5),
              block("订单号:", 10, 10, 90, 20, confidence=1.0), block("  ", 0, 0, 5, 5),
              block("¥50.00", 80, 64, 60, 18)]  # fmt: skip
    event = one(ocr.read(body_of({**PICTURE, "images": [{"ref": "img-1", "blocks": blocks}, {"ref": "img-2"}]})))

    assert isinstance(event.body, MessageBody)
    first, second = event.body.attachments
    assert ("退这个", "订单号: 1001\n实付 ¥50.00", "") == (event.body.text, first.text, second.text)
    assert (0.86, None) == (first.confidence, second.confidence)
    assert "demo/ocr/u-1" == event.conversation


@pytest.mark.parametrize("read", [voice.read, ocr.read])
def test_the_conversation_is_that_of_the_channel_it_came_by(read: Any) -> None:
    """A recognizer that works for another channel names it, so that the answer goes back there."""
    value = {**(PART if read is voice.read else PICTURE), "channel": "app"}

    assert "demo/app/u-1" == one(read(body_of(value))).conversation


@pytest.mark.parametrize("read", [voice.read, ocr.read])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b"null", b"[{}, 1]", b'{"a":1,"a":2}', b"\xff", b'"\\ud800"',
                                  b"[" * 2_000])  # fmt: skip
def test_a_body_that_is_no_item_is_refused(read: Any, body: bytes) -> None:
    """What is no JSON object or list of them is a 4xx that names its place."""
    with pytest.raises(RefusedError) as caught:
        read(body_of(body))

    assert 400 <= caught.value.status < 500
    assert caught.value.field


@pytest.mark.parametrize(("change", "field"), [
    ({"spoken_at": 5}, "spoken_at"), ({"spoken_at": "now"}, "spoken_at"), ({"text": None}, "text"),
    ({"part": 0}, "part"),
    ({"confidence": 1.5}, "confidence"), ({"sender": "a/b"}, "sender"), ({"extra": 1}, "extra"),
    ({"recording_id": ""}, "recording_id"), ({"alternatives": [{"text": 1}]}, "alternatives.0.text"),
    ({"recording_id": "data:audio/wav;base64,AAAA"}, "body.attachments.0.ref"),
])  # fmt: skip
def test_a_wrong_part_names_its_field(change: dict[str, Any], field: str) -> None:
    """A field that does not fit is 422 with its name, inside a list with its index; none of the list is taken."""
    for value, place in (({**PART, **change}, field), ([PART, {**PART, **change}], f"[1].{field}")):
        with pytest.raises(RefusedError) as caught:
            voice.read(body_of(value))
        assert (422, place) == (caught.value.status, caught.value.field)


def test_ids_that_are_numbers_are_exact() -> None:
    """A recognizer that writes ids as JSON integers loses no digit (case B05)."""
    event = spoken(recording_id=9007199254740993, sender=9223372036854775807)

    assert "9223372036854775807" == event.sender
    assert event.id.startswith("9007199254740993:")
