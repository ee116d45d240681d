"""Every producer puts a key on the same partition (promise 1)."""

from __future__ import annotations

import aiokafka
import pytest
from confluent_kafka import Producer

from schemas.partition import partition_of
from streams.runtime.client import producer_config
from tests.streams.runtime.kafka_rig import PARTITIONS, Rig

pytestmark = pytest.mark.kafka
KEYS = [f"shop/{channel}/{sender}" for channel in ("web", "微信") for sender in ("a", "u1", "客户", "x" * 60)]


async def test_confluent_and_aiokafka_place_keys_as_java_does(rig: Rig) -> None:
    """Our producers' setting, aiokafka's default and our own function agree on each key (promise 1)."""
    producer = Producer(producer_config(rig.settings))
    for key in KEYS:
        producer.produce("plans", key=key.encode(), value=b"confluent")
    producer.flush(30)
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=rig.bootstrap) as other:
        for key in KEYS:
            await other.send_and_wait("plans", key=key.encode(), value=b"aiokafka")

    placed = {(record.key, record.value): record.partition for record in rig.records("plans")}

    for writer in (b"confluent", b"aiokafka"):
        assert {key: partition_of(key.encode(), PARTITIONS) for key in KEYS} == {
            key: placed[key.encode(), writer] for key in KEYS}  # fmt: skip
