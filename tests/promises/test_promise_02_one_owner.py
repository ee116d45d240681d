"""Promise 2, one owner: a state has one writer at a time; whoever was owner before is fenced, also when it thaws."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import orjson
import pytest

from memory.bus import StateBus, VersionConflictError, empty
from schemas.topics import INPUT_TOPICS
from streams.runtime.commit import KafkaCommitter
from streams.runtime.ports import Outgoing, PartitionLostError
from tests.promises.stand import Stand, whole
from tests.streams.runtime.kafka_rig import PARTITIONS, Rig, wait_until

ALL = set(range(PARTITIONS))


def _frozen(process: subprocess.Popen[bytes]) -> bool:
    return "\nState:\tT" in Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")


def _decided_or_frozen(rig: Rig, process: subprocess.Popen[bytes], count: int) -> None:
    wait_until(lambda: _frozen(process) or len(rig.diffs()) == count)


@pytest.mark.kafka
@pytest.mark.timeout(180)
async def test_an_owner_that_froze_in_mid_commit_writes_nothing_when_it_thaws(rig: Rig) -> None:
    """Frozen between produce and commit, replaced and thawed: one history, and the successor keeps it (promise 2)."""
    old = rig.process(INTERLOCK_FREEZE_AT="transaction.produced:3")
    try:
        for number in range(3):
            rig.say(number)
            rig.producer.flush()
            await asyncio.to_thread(_decided_or_frozen, rig, old, number + 1)
        await asyncio.to_thread(wait_until, lambda: _frozen(old))
        async with rig.worker() as node:
            await node.until(lambda: node.numbers == ALL)
            rig.say(3)
            await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 4)
            os.kill(old.pid, signal.SIGCONT)
            rig.say(4)
            await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 5)
            await asyncio.sleep(3)
            rig.say(5)
            await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 6)
    finally:
        os.kill(old.pid, signal.SIGCONT)
        old.kill()
        await asyncio.to_thread(old.wait, 30)
    assert {"demo/web/u1": [1, 2, 3, 4, 5, 6]} == rig.versions()


@pytest.mark.kafka
async def test_the_fence_holds_whatever_is_under_way(rig: Rig) -> None:
    """An owner is fenced by the next one, can't come back, and costs it nothing (promise 2, case C13)."""
    one, two = KafkaCommitter(rig.settings, 1), KafkaCommitter(rig.settings, 1)
    for committer in (one, two):
        await committer.connect()
    assert await one.fence(lambda: True)
    await one.commit([_record(1)])
    assert await two.fence(lambda: True)
    for number in (2, 3):
        with pytest.raises(PartitionLostError):
            await one.commit([_record(number)])
    assert not await one.fence(lambda: False)
    await two.commit([_record(2)])
    assert [1, 2] == [diff["version"] for diff in rig.diffs()]
    for committer in (one, two):
        committer.close()


def _record(version: int) -> Outgoing:
    value = {"conversation": "demo/web/u1", "version": version}
    return Outgoing("state.diffs", 1, b"demo/web/u1", orjson.dumps(value))


def test_a_second_writer_in_the_process_is_a_bug_that_stops() -> None:
    """Version check and write are one step: of two writers of a version one wins, the other is told (J01)."""
    bus = StateBus()
    first = {**empty("demo/web/u1"), "version": 1}
    bus.write(first, 0)
    with pytest.raises(VersionConflictError, match="expected version 0, found 1"):
        bus.write({**first, "now": 7}, 0)
    assert first == bus.read("demo/web/u1")


def test_a_lost_owner_does_nothing_more() -> None:
    """After its partition is lost an owner decides, sends and acknowledges nothing, whatever is offered (promise 2)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("我要退款，订单号1001，衣服太大了")
        number = stand.lock.partition_of(person.conversation)
        lost = stand.lock._partitions[number]
        await lost.close(2.0)
        handled, size = lost.handled(), {topic: stand.lock.log.end(topic, number) for topic in stand.lock.log.topics()}
        await person.write("确认")
        await asyncio.sleep(60)
        now = {topic: stand.lock.log.end(topic, number) for topic in stand.lock.log.topics()}
        assert {**size, "channel.events": size["channel.events"] + 1} == now
        assert all(lost.handled()[topic] == handled[topic] for topic in INPUT_TOPICS if topic != "channel.events")
        assert handled["channel.events"] == lost.handled()["channel.events"]

    whole(body)
