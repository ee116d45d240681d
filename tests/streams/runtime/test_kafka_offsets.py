"""End offsets on a real broker: all input topics of a partition, one request a second for a whole worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Producer

from schemas.topics import INPUT_TOPICS
from streams.broker import EmbeddedKafka
from streams.runtime.offsets import KafkaOffsets
from streams.settings import Settings
from streams.topics import apply_topics
from tests.streams.runtime.kafka_rig import PARTITIONS, Rig

pytestmark = pytest.mark.kafka


async def test_ends_of_all_input_topics(rig: Rig) -> None:
    """Each input topic's end is told, 0 for one that holds nothing (promise 6)."""
    for _ in range(3):
        rig.raw("channel.events", 2, b"k", b"v")
    rig.producer.flush()
    offsets = KafkaOffsets(rig.settings, INPUT_TOPICS)
    assert {**dict.fromkeys(INPUT_TOPICS, 0), "channel.events": 3} == await offsets.ends(2)
    assert dict.fromkeys(INPUT_TOPICS, 0) == await offsets.ends(1)
    offsets.close()


class Timed(KafkaOffsets):
    """Notes when each request began."""

    def __init__(self, settings: Settings, topics: Iterable[str]) -> None:
        super().__init__(settings, topics)
        self.began: list[float] = []

    def _list(self, partitions: tuple[int, ...]) -> dict[int, dict[str, int]]:
        self.began.append(time.monotonic())
        return super()._list(partitions)


async def test_one_request_a_second_answers_all_partitions(rig: Rig) -> None:
    """Partitions that ask together share a request, and the next one waits its second (promise 6)."""
    offsets = Timed(rig.settings, INPUT_TOPICS)
    await offsets.ends(0)
    await asyncio.gather(*(offsets.ends(number) for number in [*range(PARTITIONS)] * 3))
    began = offsets.began
    assert len(began) <= 4  # for thirteen questions, also when a new topic's leader had to be asked for again
    assert all(0.99 < later - earlier for earlier, later in pairwise(began))
    offsets.close()


async def test_records_of_an_open_transaction_count(rig: Rig) -> None:
    """What was appended before the question counts, though it can't be read yet: a deadline waits for it (case D01)."""
    foreign = Producer({"bootstrap.servers": rig.bootstrap, "transactional.id": rig.settings.group})
    foreign.init_transactions(30)
    foreign.begin_transaction()
    foreign.produce("channel.events", partition=0, value=b"v")
    foreign.flush(30)
    offsets = KafkaOffsets(rig.settings, INPUT_TOPICS)
    assert (await offsets.ends(0))["channel.events"] == 1
    foreign.abort_transaction(30)
    offsets.close()


@pytest.mark.slow
async def test_a_broker_that_was_killed_is_asked_again(tmp_path: Path) -> None:
    """Deadlines go on within seconds after a broker came back, though its leader epoch is another one (promise 6)."""
    broker = EmbeddedKafka(tmp_path)
    settings = Settings(bootstrap_servers=broker.start(), partitions=1)
    offsets = KafkaOffsets(settings, ["channel.events"])
    try:
        apply_topics(settings.bootstrap_servers, settings)
        assert {"channel.events": 0} == await offsets.ends(0)
        broker.kill()
        asked = asyncio.create_task(offsets.ends(0))
        await asyncio.to_thread(broker.start)
        assert {"channel.events": 0} == await asyncio.wait_for(asked, 30)
    finally:
        offsets.close()
        broker.stop()
