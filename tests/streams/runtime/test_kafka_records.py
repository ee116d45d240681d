"""Records on a real broker: acknowledgements, dead letters, backpressure, deadlines, long calls."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from confluent_kafka import Producer

from schemas.partition import place
from schemas.system import SystemEvent
from tests.streams.runtime.kafka_parts import HoleHost, WallTool
from tests.streams.runtime.kafka_rig import PARTITIONS, Rig, now_ms, rejoined

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
ALL = set(range(PARTITIONS))


async def test_cut_json_is_one_dead_letter_and_the_rest_goes_on(rig: Rig) -> None:
    """Of six records the third is cut: five are decided, one is dead with its place, the worker runs on (case C07)."""
    key = b"demo/web/u1"
    async with rig.worker() as node:
        for number in range(6):
            if number == 2:
                rig.raw("channel.events", place(key.decode(), PARTITIONS), key, b'{"amount":"abc')
            else:
                rig.say(number)
        rig.producer.flush()
        await node.handled("channel.events", 6)
        assert not node.task.done()
    dead = [orjson.loads(record.value or b"") for record in rig.records("channel.events.dlq")]
    assert [("channel.events", place(key.decode(), PARTITIONS), 2)] == [
        (letter["topic"], letter["partition"], letter["offset"]) for letter in dead]  # fmt: skip
    assert 5 == sum(diff["reasons"][0]["rule"] == "test.heard" for diff in rig.diffs())


async def test_null_values_are_acknowledged(rig: Rig) -> None:
    """Three nulls and a valid record: the group's offset passes all four, also after a restart (case C09)."""
    partition = place("demo/web/u1", PARTITIONS)
    async with rig.worker() as node:
        for _ in range(3):
            rig.raw("channel.events", partition, b"demo/web/u1", None)
        rig.say(3)
        rig.producer.flush()
        await node.handled("channel.events", 4)
    assert rig.group_offsets()["channel.events", partition] == 4
    async with rig.worker() as again:
        await again.until(lambda: again.numbers == ALL)
        await again.handled("channel.events", 4)
    assert {"demo/web/u1": [1, 2, 3, 4]} == rig.versions()


async def test_paused_topic_stays_paused_across_a_rebalance(rig: Rig) -> None:
    """Over the limit a topic partition stops, also after a rejoin and a restart, until resumed (promise 10)."""
    partition = place("demo/web/u1", PARTITIONS)
    async with rig.worker(dlq_limit=2) as node:
        await node.until(lambda: node.numbers == ALL)
        for _ in range(4):
            rig.raw("channel.events", partition, b"demo/web/u1", b"{cut")
        rig.say(4)
        rig.producer.flush()
        await node.until(lambda: bool(node.worker.owner.running[partition].paused))
        await rejoined(node)
        assert {"channel.events"} == node.worker.owner.running[partition].paused
    async with rig.worker(dlq_limit=2) as again:
        await again.until(lambda: again.numbers == ALL)
        await asyncio.sleep(1)
        assert not [diff for diff in rig.diffs() if diff["reasons"][0]["rule"] == "test.heard"]
        resume(rig, partition)
        await again.handled("channel.events", 5)
    assert ["test.heard"] == [diff["reasons"][0]["rule"] for diff in rig.diffs() if diff["cause"]["id"] == "ev-4"]


def resume(rig: Rig, partition: int) -> None:
    """The operator's command."""
    word = SystemEvent(event_id=f"resume-{now_ms()}", kind="partition_resumed", subject="channel.events", by="op",
                       at=now_ms())  # fmt: skip
    rig.publish("system.events", f"~{partition}", word, word.event_id)
    rig.producer.flush()


async def test_full_partition_is_read_no_further(rig: Rig) -> None:
    """At most `lanes_max` inputs are in flight, and all are handled in the end, in order (promise 3)."""
    seen = 0
    async with rig.worker(lanes_max=10, commit_max=3) as node:
        await node.until(lambda: node.numbers == ALL)
        for number in range(300):
            rig.say(number, text=f"{number}")
        rig.producer.flush()
        runtime = node.worker.owner.running[place("demo/web/u1", PARTITIONS)]
        while runtime.handled()["channel.events"] < 300:
            seen = max(seen, runtime.in_flight)
            await asyncio.sleep(0.001)
    assert 0 < seen <= 10
    assert [f"{number}" for number in range(300)] == [diff["reasons"][0]["text"] for diff in rig.diffs()]


async def test_deadline_passes_a_foreign_transactions_marker(rig: Rig) -> None:
    """A marker at the end of an input topic is no input: the deadline fires when the rest is handled (case D01)."""
    foreign = Producer({"bootstrap.servers": rig.bootstrap, "transactional.id": rig.settings.group + "-foreign"})
    foreign.init_transactions(30)
    plain, rig.producer = rig.producer, foreign
    foreign.begin_transaction()
    rig.say(1, "timer10")
    foreign.commit_transaction()
    rig.producer = plain
    async with rig.worker() as node:
        partition = place("demo/web/u1", PARTITIONS)
        await node.until(lambda: node.numbers == ALL)
        await node.until(lambda: node.worker.owner.running[partition].handled()["channel.events"] == 2)
        await node.handled("timers.fired", 1, 15)
    assert ["test.heard", "test.timer"] == [diff["reasons"][0]["rule"] for diff in rig.diffs()]


async def test_long_call_costs_no_membership_and_happens_once(rig: Rig) -> None:
    """A call longer than the session timeout runs outside the lanes: no rebalance, no second call (case C25)."""
    tool = WallTool(seconds=8.0)
    async with rig.worker({"tool": tool}) as node:
        await node.until(lambda: node.numbers == ALL)
        epoch = node.worker.owner.epoch
        rig.say(0, "call")
        await node.until(lambda: tool.begun == 1)
        rig.say(1, sender="u1")
        rig.producer.flush()
        await node.handled("channel.events", 2, 2)
        await node.handled("tools.results", 1, 20)
        assert epoch == node.worker.owner.epoch
    assert (1, 1) == (tool.begun, tool.ended)


async def test_acknowledged_is_what_is_handled_without_a_hole(rig: Rig) -> None:
    """Records behind one that still runs are handled, not acknowledged; after a restart all are done (case C19)."""
    for number in range(10):
        rig.say(number)
    rig.producer.flush()
    number, host = place("demo/web/u1", PARTITIONS), HoleHost()
    async with rig.worker(host=host) as node:
        await node.until(lambda: number in host.made and host.made[number].done == 9)
        await asyncio.sleep(3)  # longer than the interval of group commits
    assert rig.group_offsets().get(("channel.events", number), 0) <= 0
    async with rig.worker() as again:
        await again.handled("channel.events", 10)
    assert {"demo/web/u1": list(range(1, 11))} == rig.versions()


async def test_a_workers_gauges_say_lag_and_batches(rig: Rig) -> None:
    """Lag and inputs in flight of each partition, the time and size of transactions are shown (R-002-16)."""
    async with rig.worker() as node:
        for number in range(20):
            rig.say(number)
        rig.producer.flush()
        await node.until(lambda: node.numbers == ALL)
        await node.handled("channel.events", 20)
        where = str(place("demo/web/u1", PARTITIONS))
        lag = ("interlock_lag_records", "channel.events", where)
        await node.until(lambda: node.metrics.values.get(lag) == 0, 20)
        assert node.metrics.value("interlock_partitions_owned") == PARTITIONS
        assert sum(node.metrics.observations("interlock_commit_batch_decisions")) == 20
        assert len(node.metrics.observations("interlock_recovery_seconds")) == PARTITIONS
