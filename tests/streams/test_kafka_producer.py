"""The producer library on a real broker: masked, placed as Java does, and nothing lost however the process ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from memory.key_file import open_key_store
from memory.sealing import MemoryKeyStore, open_seal
from schemas.events import ChannelEvent
from streams.foreign import of_record
from streams.producer import AsyncProducer, NotDeliveredError, Producer
from streams.runtime.ports import Record
from streams.runtime.wire import lane_of
from tests.quality.source import ROOT
from tests.streams.producing import event
from tests.streams.runtime.kafka_rig import Rig

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
COUNT = int(os.environ.get("EVENTS", "10001"))  # case C21 names 100,001: EVENTS=100001


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """Fresh topics."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    return rig


def service(rig: Rig, count: int, ending: str) -> subprocess.Popen[str]:
    """Another team's service, in a process of its own."""
    arguments = [sys.executable, "-m", "tests.streams.producing", rig.bootstrap, str(rig.settings.data_dir)]
    return subprocess.Popen([*arguments, str(count), ending], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.PIPE)  # fmt: skip


def ids(records: list[Record]) -> list[str]:
    """The producer's ids, in the order of their numbers."""
    found = [str(orjson.loads(record.value or b"")["id"]) for record in records]
    return sorted(found, key=lambda name: int(name.removeprefix("p-")))


def test_nothing_is_lost_when_the_process_falls_off_its_end(rig: Rig) -> None:
    """Events and no flush: the exit waits until the broker has every one, once (case C21)."""
    process = service(rig, COUNT, "return")
    _, told = process.communicate(timeout=150)
    assert 0 == process.returncode
    assert "did not reach" not in told
    assert [f"p-{number}" for number in range(COUNT)] == ids(rig.records("channel.events"))


@pytest.mark.parametrize(("ending", "status"), [("wait", 128 + signal.SIGTERM), ("raise", 1)])
def test_nothing_is_lost_at_a_signal_or_an_error(rig: Rig, ending: str, status: int) -> None:
    """SIGTERM, or an error of the service's own, right after the last send: all are there (case C21)."""
    process = service(rig, 2_000, ending)
    if ending == "wait":
        assert process.stdout is not None
        assert "sent\n" == process.stdout.readline()
        process.terminate()
    process.communicate(timeout=60)
    assert status == process.returncode
    assert [f"p-{number}" for number in range(2_000)] == ids(rig.records("channel.events"))


def test_events_leave_masked_and_sealed_on_their_own_partition(rig: Rig) -> None:
    """The phone is readable by the seal alone, and murmur2 places the key where the pipeline looks (promises 1, 9)."""
    keys = open_key_store(rig.settings.data_dir)
    with Producer(rig.bootstrap, keys=keys, at_exit=False) as producer:
        names = [producer.send(event(number)) for number in range(40)]
    records = rig.records("channel.events")
    events = [ChannelEvent.model_validate_json(record.value or b"") for record in records]
    assert sorted(names) == sorted(one.event_id for one in events)
    assert b"13812345678" not in b"".join(record.value or b"" for record in records)
    opened = [open_seal(keys, one.seal, one.conversation) or b"" for one in events if one.seal]
    assert 40 == sum(b"13812345678" in text for text in opened)
    assert all(lane_of(record, rig.settings.partitions).startswith("demo/app/") for record in records)


def test_a_service_without_keys_writes_for_the_intake_app(rig: Rig) -> None:
    """Without a key store events go to channel.raw, in clear, as that topic's readers take them."""
    with Producer(rig.bootstrap, keys=None, name="orders", at_exit=False) as producer:
        producer.send(event(7, "clear"))
    (record,) = rig.records("channel.raw")
    raw, _ = of_record(record.value or b"", record.headers)
    assert ("p-7", "demo/app/u7", b"demo/app/u7") == (raw.id, raw.conversation, record.key)
    assert ("ce_source", b"orders") in record.headers


async def test_async_sends_tell_where_the_event_is(rig: Rig) -> None:
    """Each send returns once the broker has it, and those of one customer keep their order (promise 1)."""
    async with AsyncProducer(rig.bootstrap, keys=MemoryKeyStore(), at_exit=False) as producer:
        placed = await asyncio.gather(*(producer.send(event(40 * number)) for number in range(200)))
    assert 1 == len({one.partition for one in placed})
    assert [one.offset for one in placed] == sorted(one.offset for one in placed)
    assert 200 == len(rig.records("channel.events"))


async def test_what_the_broker_refuses_is_told_to_the_sender(rig: Rig) -> None:
    """A topic that takes no such record: the send raises, and nothing is counted as sent (case C21)."""
    async with AsyncProducer(rig.bootstrap, keys=MemoryKeyStore(), at_exit=False, timeout_s=20,
                             config={"topic.metadata.propagation.max.ms": 10}) as producer:  # fmt: skip
        rig.admin.delete_topics(["channel.events"])["channel.events"].result()
        with pytest.raises(NotDeliveredError, match="1 events did not reach the broker: ev-"):
            await producer.send(event(1))
