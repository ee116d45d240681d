"""The committer on a real broker: one transaction, one owner, known outcomes."""

from __future__ import annotations

import pytest

from streams.runtime.commit import KafkaCommitter, RecordRefusedError
from streams.runtime.ports import Outgoing, PartitionLostError
from tests.streams.runtime.kafka_rig import Rig

pytestmark = pytest.mark.kafka


def record(text: str, topic: str = "state.diffs", partition: int = 1) -> Outgoing:
    """One small record."""
    return Outgoing(topic, partition, b"demo/web/u1", text.encode(), (("h", b"1"), ("n", None)))


async def fenced(rig: Rig, partition: int = 1) -> KafkaCommitter:
    """A committer that owns the partition."""
    committer = KafkaCommitter(rig.settings, partition)
    await committer.connect()
    assert await committer.fence(lambda: True)
    return committer


async def test_offsets_and_append_times_come_back_in_order(rig: Rig) -> None:
    """A batch is one transaction; each record's offset and append time come back in order (promise 4)."""
    committer = await fenced(rig)

    first = await committer.commit([record("a"), record("b"), record("c", "state.updates")])
    second = await committer.commit([record("d")])

    assert [0, 1, 0, 3] == [offset for offset, _ in [*first, *second]]  # 2 is the first transaction's marker
    written = rig.records("state.diffs")
    assert [b"a", b"b", b"d"] == [one.value for one in written]
    assert [time for _, time in (*first[:2], *second)] == [one.time for one in written]
    assert (("h", b"1"), ("n", None)) == written[0].headers
    committer.close()


async def test_zombie_is_fenced_and_the_rightful_owner_keeps_the_partition(rig: Rig) -> None:
    """Whoever was owner before can't commit any more, and the successor still can (promise 2, case C13)."""
    zombie = await fenced(rig)
    await zombie.commit([record("before")])
    owner = await fenced(rig)

    with pytest.raises(PartitionLostError):
        await zombie.commit([record("too late")])

    await owner.commit([record("after")])
    assert [b"before", b"after"] == [one.value for one in rig.records("state.diffs")]
    owner.close()
    zombie.close()


async def test_fence_asks_whether_the_assignment_still_holds(rig: Rig) -> None:
    """A worker that thaws before its fence is asked first, so it steals nothing (promise 2)."""
    owner = await fenced(rig)
    thawed = KafkaCommitter(rig.settings, 1)
    await thawed.connect()

    assert not await thawed.fence(lambda: False)

    await owner.commit([record("still here")])
    with pytest.raises(PartitionLostError, match="no fence"):
        await thawed.commit([record("never")])
    assert [b"still here"] == [one.value for one in rig.records("state.diffs")]
    owner.close()
    thawed.close()


async def test_record_that_the_broker_refuses_commits_nothing_of_its_batch(rig: Rig) -> None:
    """A record above every limit is refused as such, its transaction is aborted, the next one commits (promise 4)."""
    committer = await fenced(rig)

    with pytest.raises(RecordRefusedError, match="MSG_SIZE"):
        await committer.commit([record("good"), record("x" * 9_000_000)])

    await committer.commit([record("next")])
    assert [b"next"] == [one.value for one in rig.records("state.diffs")]
    committer.close()


async def test_partitions_do_not_fence_each_other(rig: Rig) -> None:
    """Each partition has a fence of its own (promise 2)."""
    one, two = await fenced(rig, 1), await fenced(rig, 2)

    await one.commit([record("one")])
    await two.commit([record("two", partition=2)])

    assert {b"one", b"two"} == {each.value for each in rig.records("state.diffs")}
    one.close()
    two.close()
