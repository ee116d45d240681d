"""What a new owner finds on a real broker: snapshot, checkpoint, diffs to the end, gaps, emits to publish again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import TopicPartition

from memory.snapshots import SnapshotStore
from schemas.partition import place
from streams.runtime.commit import KafkaCommitter
from streams.runtime.ports import Outgoing, PartitionLostError, Recovered
from streams.runtime.recovery import GapError, recover
from streams.runtime.snapshotting import LocalSnapshots
from tests.streams.runtime.kafka_rig import PARTITIONS, Node, Rig, now_ms

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
HOME = place("demo/web/u1", PARTITIONS)


def never() -> bool:
    """Nobody cancels."""
    return False


def snapshots(folder: Path) -> LocalSnapshots:
    """A snapshot folder of a test's own."""
    store = SnapshotStore.claim(folder, "cluster", "topic", lambda *_, **__: None, logging.getLogger("test"))
    return LocalSnapshots(store, now_ms)


async def snapshot_taken(node: Node) -> None:
    """A snapshot was begun and ended after this was called."""
    runtime: Any = node.worker.owner.running[HOME]
    first = runtime.snapshot_at
    await node.until(lambda: runtime.snapshot_at != first)
    second = runtime.snapshot_at
    await node.until(lambda: runtime.snapshot_at != second)


def states(node: Node, recovered: Recovered) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recovered states, and what the running owner has of the same conversations."""
    runtime: Any = node.worker.owner.running[HOME]
    found = {name: orjson.loads(body) for name, body in recovered.states.items()}
    return found, {name: runtime.read(name) for name in found}


async def talk(rig: Rig, node: Node, first: int, last: int, conversations: int = 5) -> None:
    """Messages of a few conversations on one partition, handled."""
    names = [name for name in map("u{}".format, range(1, 400)) if place(f"demo/web/{name}", PARTITIONS) == HOME]
    for number in range(first, last):
        rig.say(number, "plan" if number % 4 == 0 else "hello", sender=names[number % conversations])
    rig.producer.flush()
    await node.until(lambda: node.numbers == set(range(PARTITIONS)))
    await node.handled("channel.events", last)


def diff(version: int, conversation: str = "demo/web/u1", **values: Any) -> Outgoing:
    """A hand-made diff."""
    body: Mapping[str, Any] = {
        "conversation": conversation, "base": version - 1, "version": version, "session_id": None, "now": version,
        "cause": {"topic": "channel.events", "partition": HOME, "offset": version, "time": 1, "id": f"e-{version}",
                  "type": "t", "trace": "", "position": None},
        "gathered": {}, "changes": [], "reasons": [{"rule": "test"}], "emits": [],
        "handled": {"channel.events": version},
        "unsent": 0, "whole": None, **values,
    }  # fmt: skip
    return Outgoing("state.diffs", HOME, conversation.encode(), orjson.dumps(body))


async def written(rig: Rig, *records: Outgoing) -> list[int]:
    """Committed as the owner would; their offsets."""
    committer = KafkaCommitter(rig.settings, HOME)
    await committer.connect()
    assert await committer.fence(never_gone)
    placed = await committer.commit(records)
    committer.close()
    return [offset for offset, _ in placed]


def never_gone() -> bool:
    """The assignment holds."""
    return True


async def test_diffs_alone_give_the_live_state(rig: Rig) -> None:
    """Without checkpoint or snapshot the register alone gives the state that the owner had (promise 4)."""
    async with rig.worker(checkpoint_ms=10**9) as node:
        await talk(rig, node, 0, 50)
        recovered = recover(rig.settings, HOME, never)
        found, live = states(node, recovered)
        assert live == found
        assert len(found) == 5
        assert node.worker.owner.running[HOME].handled()["channel.events"] == 50
    assert not rig.records("state.updates")


async def test_checkpoint_and_the_diffs_after_it_give_the_live_state(rig: Rig) -> None:
    """A checkpoint in mid stream, then diffs above its mark: the same state, and what it lacks is named (promise 4)."""
    async with rig.worker(checkpoint_ms=10) as node:
        await talk(rig, node, 0, 40)
        await talk(rig, node, 40, 60)
        recovered = recover(rig.settings, HOME, never)
        found, live = states(node, recovered)
    assert live == found
    marks = [record for record in rig.records("state.updates") if record.key == f"~mark/{HOME}".encode()]
    assert marks
    mark = orjson.loads(marks[-1].value or b"")
    after = {orjson.loads(record.value or b"")["conversation"] for record in rig.records("state.diffs")
             if record.offset > mark["diff_offset"]}  # fmt: skip
    assert after <= set(recovered.changed)


async def test_snapshot_and_the_diffs_after_it_give_the_live_state(rig: Rig, tmp_path: Path) -> None:
    """A worker that restarts with its own snapshot folder is where it was, also after a second restart (R-002-13)."""
    kept = snapshots(tmp_path / "kept")
    for first in (0, 40, 80):
        async with rig.worker(snapshots=kept, snapshot_ms=100, checkpoint_ms=10) as node:
            await talk(rig, node, first, first + 40)
            await snapshot_taken(node)
            from_disk = recover(rig.settings, HOME, never)
            found, live = states(node, from_disk)
            assert live == found
    again = recover(rig.settings, HOME, never, kept)
    bare = recover(rig.settings, HOME, never)
    assert {name: orjson.loads(body) for name, body in bare.states.items()} == {
        name: orjson.loads(body) for name, body in again.states.items()}  # fmt: skip
    assert bare.diff_offset == again.diff_offset
    assert all(below <= again.handled[topic] for topic, below in bare.handled.items())


async def test_gap_is_refused_and_named(rig: Rig) -> None:
    """A missing version is never jumped: conversation, versions and offset are in the message (promise 3)."""
    offsets = await written(rig, diff(1), diff(2), diff(4))

    with pytest.raises(GapError, match=f"offset {offsets[2]}: demo/web/u1 goes on from version 3 to 4, but version 2"):
        recover(rig.settings, HOME, never)


async def test_end_is_a_position_not_a_count(rig: Rig) -> None:
    """Markers of committed and aborted transactions at the end do not keep recovery waiting (cases C15, D01)."""
    await written(rig, diff(1))
    open_ended = KafkaCommitter(rig.settings, HOME)
    await open_ended.connect()
    assert await open_ended.fence(never_gone)
    with pytest.raises(Exception, match="MSG_SIZE"):
        await open_ended.commit([diff(2), Outgoing("state.diffs", HOME, b"k", b"x" * 9_000_000)])
    open_ended.close()

    recovered = recover(rig.settings, HOME, never)

    assert 1 == orjson.loads(recovered.states["demo/web/u1"])["version"]
    assert {"channel.events": 1} == recovered.handled


async def test_head_of_the_register_may_be_gone_below_the_checkpoint(rig: Rig) -> None:
    """With old diffs deleted, the checkpoint and what follows it are enough, in bounded time (case C15)."""
    async with rig.worker(checkpoint_ms=10) as node:
        await talk(rig, node, 0, 40)
        await talk(rig, node, 40, 44)
        whole = recover(rig.settings, HOME, never)
    marks = [record for record in rig.records("state.updates") if record.key == f"~mark/{HOME}".encode()]
    below = orjson.loads(marks[-1].value or b"")["diff_offset"]
    rig.admin.delete_records([TopicPartition("state.diffs", HOME, below + 1)])
    cut = recover(rig.settings, HOME, never)
    assert whole.states.keys() == cut.states.keys()
    assert {name: orjson.loads(body) for name, body in whole.states.items()} == {
        name: orjson.loads(body) for name, body in cut.states.items()}  # fmt: skip


async def test_emits_from_the_lowest_unacknowledged_diff_come_back(rig: Rig) -> None:
    """Diffs below `unsent` are left alone, those from it on are published again, in order (promise 4)."""
    emit = {"topic": "plans", "key": "demo/web/u1", "id": "e", "type": "t", "data": {}, "previous": [0, 0]}
    offsets = await written(rig, diff(1, emits=[emit]), diff(2, emits=[emit]), diff(3), diff(4, emits=[emit]))
    assert offsets[:3] == [offset for offset, _ in recover(rig.settings, HOME, never).resend][:1] + offsets[1:3]

    more = await written(rig, diff(5, unsent=offsets[1]))

    recovered = recover(rig.settings, HOME, never)
    assert [offsets[1], offsets[3]] == [offset for offset, _ in recovered.resend]
    assert (offsets[1], more[0]) == (recovered.unsent, recovered.diff_offset)


async def test_cancelled_recovery_ends_at_once(rig: Rig) -> None:
    """A revoke during a recovery ends it; nothing of the partition starts (promise 2)."""
    await written(rig, diff(1))

    with pytest.raises(PartitionLostError, match="cancelled"):
        recover(rig.settings, HOME, lambda: True)
