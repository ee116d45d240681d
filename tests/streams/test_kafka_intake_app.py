"""Foreign producers' events on a real broker: masked, sealed, acknowledged after the broker has them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from memory.sealing import MemoryKeyStore, open_seal
from schemas.events import ChannelEvent, Seal
from streams.intake_app import IntakeApp
from streams.metrics import RecordedMetrics
from tests.streams.runtime.kafka_rig import Rig, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """Fresh topics, and a group of this test's own."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    return rig


@contextlib.asynccontextmanager
async def intake(rig: Rig, keys: MemoryKeyStore, metrics: RecordedMetrics) -> AsyncIterator[IntakeApp]:
    """The app, in a thread."""
    app = IntakeApp(rig.settings, keys, metrics)
    running = asyncio.create_task(asyncio.to_thread(app.run))
    try:
        yield app
    finally:
        app.stop()
        await running


def raw(number: int, text: str = "hello") -> bytes:
    """A foreign producer's event."""
    body = {"kind": "message", "message_id": f"m-{number}", "text": text}
    sender = f"u{number % 3}"
    return orjson.dumps({"id": f"p-{number}", "shop": "demo", "channel": "app", "sender": sender, "body": body})


def acknowledged(rig: Rig) -> int:
    """How many raw records the group has acknowledged."""
    group = f"{rig.settings.group}-intake"
    found = rig.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    return sum(place.offset for place in found.topic_partitions if place.offset > 0)


async def test_foreign_events_arrive_masked_and_sealed(rig: Rig) -> None:
    """A phone number is masked in clear and whole in the seal, under the conversation's key (R-000-12, promise 9)."""
    keys = MemoryKeyStore()
    rig.raw("channel.raw", 0, b"any key", raw(1, "call 13812345678"))
    rig.producer.flush()
    async with intake(rig, keys, RecordedMetrics()):
        await asyncio.to_thread(wait_until, lambda: len(rig.records("channel.events")) == 1)
    record = rig.records("channel.events")[0]
    event = ChannelEvent.model_validate_json(record.value or b"")
    assert (b"demo/app/u1", "call 138****5678") == (record.key, getattr(event.body, "text", None))
    assert event.seal is not None
    assert b"13812345678" in (open_seal(keys, event.seal, event.conversation) or b"")


async def test_cloudevents_in_structured_mode_are_read_too(rig: Rig) -> None:
    """The envelope as the value, as many tools write it: id, conversation and trace come from it (R-003-05)."""
    body = {"kind": "message", "message_id": "m-1", "text": "hello"}
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    envelope = {"specversion": "1.0", "id": "A-1", "source": "/crm", "type": "com.example.chat", "data": body,
                "subject": "demo/crm/u1", "traceparent": trace}  # fmt: skip
    mode = (("content-type", b"application/cloudevents+json"),)
    rig.raw("channel.raw", 0, None, orjson.dumps(envelope), mode)
    rig.raw("channel.raw", 0, None, orjson.dumps({**envelope, "source": ""}), mode)
    rig.producer.flush()
    async with intake(rig, MemoryKeyStore(), RecordedMetrics()):
        await asyncio.to_thread(wait_until, lambda: acknowledged(rig) == 2)
    (record,) = rig.records("channel.events")
    assert (b"demo/crm/u1", ("traceparent", trace.encode())) == (record.key, record.headers[-1])
    (dead,) = [orjson.loads(one.value or b"") for one in rig.records("channel.raw.dlq")]
    assert ("missing_field", "source") == (dead["code"], dead["field"])


async def test_bad_raw_records_are_dead_letters_with_their_exact_bytes(rig: Rig) -> None:
    """Cut JSON and a null between good events: both dead with place and bytes, the rest goes on (cases C07, C09)."""
    keys, metrics = MemoryKeyStore(), RecordedMetrics()
    for number, value in enumerate([raw(0), b'{"id": "p-1', None, raw(3)]):
        rig.raw("channel.raw", 2, None, value, (("x", None), ("x", b"\xff")) if number == 1 else ())
    rig.producer.flush()
    async with intake(rig, keys, metrics):
        await asyncio.to_thread(wait_until, lambda: acknowledged(rig) == 4)
    dead = [orjson.loads(record.value or b"") for record in rig.records("channel.raw.dlq")]
    assert [(2, 1, "not_json"), (2, 2, "empty")] == [(one["partition"], one["offset"], one["code"]) for one in dead]
    sealed = Seal.model_validate_json(orjson.dumps(dead[0]["seal"]))
    assert b'{"id": "p-1' == open_seal(keys, sealed, dead[0]["sealed_for"])
    assert [["x", None], ["x", base64.b64encode(b"\xff").decode()]] == dead[0]["headers"]
    assert metrics.value("interlock_dead_letters_total", "channel.raw", "not_json") == 1
    assert len(rig.records("channel.events")) == 2


async def test_repeat_after_a_lost_acknowledgement_is_the_same_event(rig: Rig) -> None:
    """Raw records read again have the same event ids, so that they are one event downstream (cases A15, B01, C21)."""
    for number in range(500):
        rig.raw("channel.raw", number % 4, None, raw(number))
    rig.producer.flush()
    async with intake(rig, MemoryKeyStore(), RecordedMetrics()):
        await asyncio.to_thread(wait_until, lambda: acknowledged(rig) == 500)
    rig.settings = rig.settings.model_copy(update={"group": f"{rig.settings.group}2"})
    async with intake(rig, MemoryKeyStore(), RecordedMetrics()):
        await asyncio.to_thread(wait_until, lambda: acknowledged(rig) == 500)
    ids = [orjson.loads(record.value or b"")["event_id"] for record in rig.records("channel.events")]
    assert (1000, 500) == (len(ids), len(set(ids)))


async def test_event_that_sealing_makes_too_large_stops_nobody(rig: Rig) -> None:
    """A raw event that fits its topic, and not channel.events once it is sealed: a dead letter; the app goes on."""
    text = "13812345678 " + "退" * 19_900
    wide = orjson.loads(raw(0))
    wide["body"]["attachments"] = [{"kind": "voice", "ref": f"f-{number}", "text": text} for number in range(15)]
    for value in (orjson.dumps(wide), raw(1)):
        rig.raw("channel.raw", 1, None, value)
    rig.producer.flush()
    async with intake(rig, MemoryKeyStore(), RecordedMetrics()):
        await asyncio.to_thread(wait_until, lambda: acknowledged(rig) == 2)
    assert ["too_large"] == [orjson.loads(record.value or b"")["code"] for record in rig.records("channel.raw.dlq")]
    assert 1 == len(rig.records("channel.events"))
