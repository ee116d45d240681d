"""Promise 4, the diff is the commit: one record holds all of a decision; nothing is visible before, all follows it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from streams.replay.rebuild import history_of, state_at
from streams.runtime.local import LocalCommit
from streams.runtime.ports import Outgoing
from tests.promises.stand import DIFFS, Person, Stand, whole
from tests.streams.runtime.kafka_rig import Rig, wait_until


class Gate(LocalCommit):
    """A register whose answer is held back until the gate opens."""

    opened: asyncio.Event

    async def commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        """Wait, then write."""
        await self.opened.wait()
        return await super().commit(batch)


def test_nothing_of_a_decision_is_visible_before_its_commit() -> None:
    """While the commit is awaited: no state, no emit, no effect, no acknowledgement; then all at once (promise 4)."""

    async def body(stand: Stand) -> None:
        gate = Gate(stand.lock.log)
        gate.opened = asyncio.Event()
        stand.ports(commit=gate)
        person = await stand.person("c-zh-refund")
        await person.write("我要退款，订单号1001，衣服太大了")
        await asyncio.sleep(60)
        assert ["channel.events"] == stand.lock.log.topics()
        assert stand.lock.state(person.conversation) is None
        runtime = stand.lock._partitions[stand.lock.partition_of(person.conversation)]
        assert (0, 1) == (runtime.handled()["channel.events"], runtime.in_flight)
        gate.opened.set()
        await stand.pass_ms(4_000)
        assert ["refund.confirm"] == person.heard

    whole(body)


async def _refunded(stand: Stand) -> Person:
    person = await stand.person("c-zh-refund")
    await person.say("我要退款，订单号1001，衣服太大了")
    await stand.lock.restart()
    await person.say("确认")
    await stand.pass_ms(330_000)
    return person


def test_everything_else_is_derived_from_the_diffs() -> None:
    """Every record that a step wrote is one diff's emit, equal to the byte, and none is missing (promise 4)."""

    async def body(stand: Stand) -> None:
        person = await _refunded(stand)
        wanted = {(diff["conversation"], diff["version"], index): (emit["topic"], orjson.dumps(emit["data"]))
                  for diff in stand.values(DIFFS) for index, emit in enumerate(diff["emits"])}  # fmt: skip
        found = {}
        for record in stand.everything():
            position = (dict(record.headers).get("ce_position") or b"").decode()
            if position:
                conversation, version, index = position.rsplit("|", 2)
                found[conversation, int(version), int(index)] = (record.topic, record.value)
        assert wanted == found
        state = state_at(history_of(person.conversation, stand.records(DIFFS, person.conversation)))
        assert orjson.dumps(person.state) == orjson.dumps(state)

    whole(body)


def _uncommitted(rig: Rig, topic: str) -> int:
    """How many records a reader sees that does not care for commits."""
    reader = Consumer({"bootstrap.servers": rig.bootstrap, "group.id": "dirty", "isolation.level": "read_uncommitted"})
    reader.assign([TopicPartition(topic, number, 0) for number in range(rig.settings.partitions)])
    try:
        return len([item for item in reader.consume(1_000, 3) if item.error() is None])
    finally:
        reader.close()


def _ids(rig: Rig) -> list[str]:
    """The plans as a reader takes them: one that the recovery published again is no second one."""
    return list(dict.fromkeys((dict(one.headers)["ce_id"] or b"").decode() for one in rig.records("plans")))


@pytest.mark.kafka
@pytest.mark.timeout(180)
async def test_a_decision_is_wholly_there_or_not_at_all(rig: Rig) -> None:
    """Killed between produce and commit: nobody sees any of it, and its successor does all of it once (promise 4)."""
    old = rig.process(INTERLOCK_FREEZE_AT="transaction.produced:2")
    rig.say(0, "plan")
    rig.producer.flush()
    await asyncio.to_thread(wait_until, lambda: len(rig.diffs()) == 1)
    rig.say(1, "plan")
    rig.producer.flush()
    status = Path(f"/proc/{old.pid}/status")
    await asyncio.to_thread(wait_until, lambda: "\nState:\tT" in status.read_text(encoding="utf-8"))

    assert (1, 1) == (len(rig.diffs()), len(rig.records("plans")))
    assert _uncommitted(rig, DIFFS) > 1, "it was written, and nobody may see it"
    os.kill(old.pid, signal.SIGKILL)
    await asyncio.to_thread(old.wait, 30)
    async with rig.worker() as node:
        await node.handled("channel.events", 2)
        await asyncio.to_thread(wait_until, lambda: len(_ids(rig)) == 2)
    assert [1, 2] == [diff["version"] for diff in rig.diffs()]
    emitted = [emit["id"] for diff in rig.diffs() for emit in diff["emits"]]
    assert emitted == _ids(rig)
