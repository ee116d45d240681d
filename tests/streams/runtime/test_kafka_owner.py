"""Partitions on a real broker: assignment, takeover, rebalances, acknowledgements, dead letters."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from pathlib import Path

import orjson
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from schemas.topics import INPUT_TOPICS
from streams.runtime.commit import KafkaCommitter
from streams.runtime.owner import RefusedError
from tests.streams.runtime.kafka_rig import PARTITIONS, Rig, rejoined, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
ALL = set(range(PARTITIONS))


async def test_two_workers_get_whole_partitions(broker: str, tmp_path: Path) -> None:
    """Each partition of all input topics goes to one worker, and moves as a whole (promise 2)."""
    rig, all_of_them = Rig(broker, tmp_path, partitions=3), {0, 1, 2}  # an odd number: round robin would split them
    rig.reset()
    async with rig.worker() as one:
        await one.until(lambda: one.numbers == all_of_them)
        async with rig.worker() as two:
            await two.until(lambda: {len(one.numbers), len(two.numbers)} == {1, 2})
            for node in (one, two):
                assert {(topic, number) for topic in INPUT_TOPICS for number in node.numbers} == set(
                    node.worker.owner.group.assignment())  # fmt: skip
            assert all_of_them == one.numbers | two.numbers
        await one.until(lambda: one.numbers == all_of_them)


async def test_what_was_handled_is_known_from_the_diffs_not_from_the_group(rig: Rig) -> None:
    """Group offsets ahead of the register, as after a commit that was lost, skip nothing (promise 3)."""
    for number in range(5):
        rig.say(number)
    rig.producer.flush()
    ahead = [TopicPartition("channel.events", number, 5) for number in range(PARTITIONS)]
    for answer in rig.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(rig.settings.group, ahead)]
    ).values():
        answer.result()
    async with rig.worker() as node:
        await node.until(lambda: node.numbers == ALL)
        await node.handled("channel.events", 5)
    assert {"demo/web/u1": [1, 2, 3, 4, 5]} == rig.versions()


async def test_split_partition_is_refused(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that gets a partition of one input topic but not of all ends, and says which (promise 2)."""
    rig.admin.create_partitions([NewPartitions("system.events", PARTITIONS + 1)])["system.events"].result()
    wait_until(lambda: len(rig.admin.list_topics("system.events").topics["system.events"].partitions) > PARTITIONS)
    async with rig.worker(opened=False) as node:
        await asyncio.wait_for(node.task, 60)

    assert node.task.result() == 1
    assert isinstance(node.worker.failure, RefusedError)
    assert "partition 4: system.events were assigned to this worker but not actions.outbound" in caplog.text


async def test_work_finished_before_a_scale_out_is_not_done_again(rig: Rig) -> None:
    """A second worker joins before any offset is committed to the group: each message has one diff (case C11)."""
    async with rig.worker() as one:
        for number in range(40):
            rig.say(number, sender=f"u{number % 8}")
        rig.producer.flush()
        await one.handled("channel.events", 40)
        async with rig.worker() as two:
            await two.until(lambda: len(two.numbers) == 2)
            rig.say(40, sender=rig.sender_on(min(two.numbers)))
            rig.producer.flush()
            await two.until(lambda: len(rig.diffs()) > 40)
    assert len(rig.diffs()) == 41
    assert rig.whole()


async def test_partition_lost_and_regained_goes_on_from_its_diffs(rig: Rig) -> None:
    """After a rejoin, and with the group's offsets gone, every message is still decided once (promise 3)."""
    async with rig.worker() as node:
        for number in range(30):
            if number % 10 == 0:
                await rejoined(node)
            rig.say(number, sender=f"u{number % 5}")
            rig.producer.flush()
        await node.handled("channel.events", 30)
    rig.settings = rig.settings.model_copy(update={"group": f"{rig.settings.group}-other"})
    async with rig.worker() as again:
        await again.handled("channel.events", 30)
    assert len(rig.diffs()) == 30
    assert rig.whole()


async def test_fenced_partition_asks_for_a_new_assignment_and_goes_on(rig: Rig) -> None:
    """A commit that is fenced closes the partition; a rejoin opens it, and nothing is decided twice (promise 2)."""
    sender = rig.sender_on(1)
    async with rig.worker() as node:
        thief = KafkaCommitter(rig.settings, 1)
        await thief.connect()
        assert await thief.fence(lambda: True)
        thief.close()
        for number in range(5):
            rig.say(number, sender=sender)
        rig.producer.flush()
        await node.until(lambda: node.metrics.value("interlock_partition_stops_total", "fenced") == 1)
        await node.handled("channel.events", 5)
    assert {f"demo/web/{sender}": [1, 2, 3, 4, 5]} == rig.versions()


async def test_killed_worker_is_replaced_and_nothing_is_done_twice(rig: Rig) -> None:
    """After kill -9 in mid transaction another worker goes on within 15 s; readers see each diff once (case C13)."""
    victim = rig.process(INTERLOCK_CRASH_AT="transaction.produced:3")
    for number in range(200):
        rig.say(number, sender=f"u{number % 8}")
        rig.producer.flush()
        if victim.poll() is not None:
            break
        await asyncio.sleep(0.05)
    assert await asyncio.to_thread(victim.wait, 60) == -signal.SIGKILL
    said, died = number + 1, time.monotonic()
    async with rig.worker() as node:
        await node.handled("channel.events", said)
        assert time.monotonic() - died < 15
    assert len(rig.diffs()) == said
    assert rig.whole()


async def test_thawed_worker_does_not_take_the_partition_back(rig: Rig) -> None:
    """A worker frozen beyond its session and thawed writes nothing; its successor keeps the partition (promise 2)."""
    frozen = rig.process()
    try:
        rig.say(0)
        await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 1)
        os.kill(frozen.pid, signal.SIGSTOP)
        rig.say(1)
        async with rig.worker() as node:
            await node.until(lambda: node.numbers == ALL)
            rig.say(2)
            os.kill(frozen.pid, signal.SIGCONT)
            rig.say(3)
            await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 4)
            await asyncio.sleep(3)
            rig.say(4)
            await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 5)
    finally:
        frozen.terminate()
        assert await asyncio.to_thread(frozen.wait, 30) == 0
    assert {"demo/web/u1": [1, 2, 3, 4, 5]} == rig.versions()


async def test_gap_stops_its_partition_alone_and_does_not_spin(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """A register with a missing version is refused by name, its partition stays closed, others run (promise 3)."""
    rig.say(0, sender=rig.sender_on(0))
    rig.producer.flush()
    async with rig.worker() as node:
        await node.handled("channel.events", 1)
    forged = {**rig.diffs()[0], "base": 7, "version": 8}
    committer = KafkaCommitter(rig.settings, 0)
    rig.raw("state.diffs", 0, b"k", orjson.dumps(forged))
    rig.producer.flush()
    committer.close()
    caplog.set_level(logging.ERROR)
    async with rig.worker(opened=False) as node:
        await node.until(lambda: node.numbers == ALL - {0})
        await asyncio.sleep(2)
        assert node.metrics.value("interlock_partition_stops_total", "version_conflict") == 1
    assert "goes on from version 7 to 8, but version 1 is what there is" in caplog.text
    assert f"offset 2: demo/web/{rig.sender_on(0)}" in caplog.text


async def test_clean_stop_takes_seconds_and_hands_over_at_once(rig: Rig) -> None:
    """SIGTERM ends a worker within seconds with status 0, and its successor need not wait for the session (C21)."""
    process = rig.process()
    rig.say(0)
    await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 1)
    asked = time.monotonic()
    process.terminate()
    assert await asyncio.to_thread(process.wait, 30) == 0
    assert time.monotonic() - asked < 5
    async with rig.worker() as node:
        await node.until(lambda: node.numbers == ALL)
        assert time.monotonic() - asked < 10
