"""One contract for the send port: the in-memory log and the real producer (C21)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from schemas.partition import partition_of
from streams.runtime.local import LocalLog, LocalSend
from streams.runtime.ports import Outgoing, Record, SendPort
from streams.runtime.sender import KafkaSender
from tests.streams.gateway.local import FixedClock
from tests.streams.runtime.kafka_rig import Rig

TOPIC = "delivery.receipts"
Ends = tuple[SendPort, Callable[[], list[Record]]]


@contextlib.asynccontextmanager
async def port(kind: str, request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Ends]:
    """A port and a reader of what arrived."""
    if kind == "memory":
        log = LocalLog(FixedClock())
        yield LocalSend(log), lambda: log.records(TOPIC)
        return
    rig = Rig(request.getfixturevalue("broker"), folder)
    rig.reset()
    sender = KafkaSender(rig.settings, pytest.fail)
    yield sender, lambda: rig.records(TOPIC)
    assert 0 == await sender.close(10)


def record(number: int, partition: int = 0) -> Outgoing:
    """A record of any bytes."""
    return Outgoing(TOPIC, partition, b"a/b/c", b"%d" % number, (("ce_id", b"%d" % number), ("empty", None)))


@pytest.mark.parametrize("kind", ["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
class TestSendPort:
    """What the gateway relies on."""

    async def test_records_keep_their_order(self, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        """Handed over in call order, they stand in that order, and each awaitable is its own offset."""
        async with port(kind, request, tmp_path) as (sender, arrived):
            sent = [sender.send(record(number)) for number in range(500)]
            offsets = await asyncio.gather(*sent)

            assert list(range(500)) == offsets
            assert [b"%d" % number for number in range(500)] == [one.value for one in arrived()]

    async def test_a_record_arrives_as_it_was(self, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        """Key, value, headers and the chosen partition are kept; the time is the log's."""
        partition = partition_of(b"a/b/c", 4)
        async with port(kind, request, tmp_path) as (sender, arrived):
            await sender.send(record(7, partition))
            (one,) = arrived()

            assert (TOPIC, partition, b"a/b/c", b"7") == (one.topic, one.partition, one.key, one.value)
            assert (("ce_id", b"7"), ("empty", None)) == one.headers
            assert one.time > 1_600_000_000_000

    async def test_acknowledged_is_there(self, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        """Once the awaitable is done, a reader finds the record."""
        async with port(kind, request, tmp_path) as (sender, arrived):
            await sender.send(record(1))

            assert 1 == len(arrived())
