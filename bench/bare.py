"""The bare loops: how many turns' records a plain copy moves, and what five plain hops take."""

from __future__ import annotations

import os
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.report import percentile
from bench.rig import Rig
from streams.runtime.client import consumer_config, producer_config

BYTES = 700  # mean size of a record of a turn
TURNS = 3_000


def _topics(made: Rig, names: list[str], partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": made.settings.bootstrap_servers})
    for done in admin.create_topics([NewTopic(name, partitions, 1, config={"message.timestamp.type": "LogAppendTime"})
                                     for name in names]).values():  # fmt: skip
        done.result(30)


def copies_per_s(made: Rig, records: int) -> float:
    """Turns a second of one loop that copies `records` records a turn from topic to topic."""
    _topics(made, ["bench.copy.from", "bench.copy.to"], made.settings.partitions)
    producer = Producer(producer_config(made.settings))
    payload = os.urandom(BYTES // 2).hex().encode()
    total = TURNS * records
    for number in range(total):
        while True:
            try:
                producer.produce("bench.copy.from", payload, b"k", partition=number % made.settings.partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)
    consumer = Consumer(consumer_config(made.settings, "bench-copy"))
    consumer.assign([TopicPartition("bench.copy.from", number, 0) for number in range(made.settings.partitions)])
    copied, start = 0, None
    while copied < total:
        for message in consumer.consume(500, 1.0):
            if message.error() is None:
                start = start or time.monotonic()
                producer.produce("bench.copy.to", message.value(), message.key(), partition=message.partition() or 0)
                copied += 1
        producer.poll(0)
    producer.flush(60)
    seconds = time.monotonic() - (start or 0)
    consumer.close()
    return TURNS / seconds


def five_hops(made: Rig, per_s: int, seconds: float) -> float:
    """P95 in milliseconds, append time to append time, over five topics copied by one loop each."""
    names = [f"bench.hop.{number}" for number in range(6)]
    _topics(made, names, 1)
    stop = threading.Event()
    hops = [threading.Thread(target=_hop, args=(made, names[n], names[n + 1], stop), daemon=True) for n in range(5)]
    for hop in hops:
        hop.start()
    time.sleep(2)
    producer = Producer(producer_config(made.settings, linger_ms=1))
    payload = os.urandom(BYTES // 2).hex().encode()
    start, sent = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        while sent < (time.monotonic() - start) * per_s:
            producer.produce(names[0], payload, str(sent).encode())
            sent += 1
        producer.poll(0.005)
    producer.flush(10)
    time.sleep(1)
    stop.set()
    for hop in hops:
        hop.join(10)
    first, last = _times(made, names[0]), _times(made, names[5])
    return percentile([last[key] - at for key, at in first.items() if key in last][per_s * 2 :], 0.95)


def _hop(made: Rig, source: str, target: str, stop: threading.Event) -> None:
    consumer = Consumer(consumer_config(made.settings, f"bench-{source}"))
    consumer.assign([TopicPartition(source, 0, 0)])
    producer = Producer(producer_config(made.settings, linger_ms=1))
    while not stop.is_set():
        for message in consumer.consume(100, 0.1):
            if message.error() is None:
                producer.produce(target, message.value(), message.key())
        producer.poll(0)
    producer.flush(5)
    consumer.close()


def _times(made: Rig, topic: str) -> dict[bytes, int]:
    """Append time of each record by key."""
    consumer = Consumer(consumer_config(made.settings, "bench-times"))
    consumer.assign([TopicPartition(topic, 0, 0)])
    times: dict[bytes, int] = {}
    while True:
        batch = consumer.consume(1_000, 2.0)
        for message in batch:
            if message.error() is not None:
                consumer.close()
                return times
            times[message.key() or b""] = message.timestamp()[1]
        if not batch:
            consumer.close()
            return times
