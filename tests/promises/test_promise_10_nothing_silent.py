"""Promise 10, nothing silent: a decision, a dead letter with its exact bytes, or a counted drop; or it stops."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from schemas.system import SystemEvent
from schemas.topics import INPUT_TOPICS
from streams.metrics import RecordedMetrics
from streams.replay.letters import exact_bytes, letters
from streams.replay.local import LocalSource
from streams.runtime.local import LocalCommit
from streams.runtime.ports import Outgoing, PartitionLostError, Record
from tests.promises.stand import DIFFS, Person, Stand, whole

RUBBISH: tuple[bytes | None, ...] = (
    b"", b"{cut", b"\xff\xfe", b"[]", b"null", b'{"kind":"message"}', b'{"a":1,"a":2}', b'"\\ud83d"', b"1e999", None,
    b'{"schema":99}', b"[" * 500,
)  # fmt: skip
KEYS: tuple[bytes | None, ...] = (b"demo/web/c-zh-refund", None, b"\xff", b"no-slash", b"~0", b"a/b/c/d", b"")


def _append(stand: Stand, person: Person, topic: str, key: bytes | None, value: bytes | None,
            headers: Sequence[tuple[str, bytes | None]] = ()) -> None:  # fmt: skip
    partition = stand.lock.partition_of(person.conversation)
    stand.lock.log.append(Outgoing(topic, partition, key, value, tuple(headers)))


async def _flood(stand: Stand) -> Person:
    """Good records, repeats of them, and rubbish on every input topic, mixed; a restart in the middle."""
    person = await stand.person("c-zh-refund")
    await person.say("我要退款，订单号1001，衣服太大了")
    for topic in INPUT_TOPICS:
        for value in RUBBISH:
            _append(stand, person, topic, KEYS[0], value)
        for key in KEYS[1:]:
            _append(stand, person, topic, key, b"{}")
    await stand.lock.settle()
    for topic in INPUT_TOPICS:
        for record in stand.lock.log.records(topic)[:12]:
            stand.lock.log.append(Outgoing(topic, record.partition, record.key, record.value, record.headers))
    await stand.lock.restart()
    await person.say("确认")
    await stand.pass_ms(60_000)
    return person


def test_every_input_is_accounted_for() -> None:
    """Each record of each input topic has its decision or is a counted drop, and nothing else is lost (promise 10)."""

    async def body(stand: Stand) -> None:
        metrics = RecordedMetrics()
        stand.ports(metrics=metrics)
        person = await _flood(stand)
        decided = {(diff["cause"]["topic"], diff["cause"]["partition"], diff["cause"]["offset"])
                   for diff in stand.values(DIFFS)}  # fmt: skip
        for topic in INPUT_TOPICS:
            inputs = stand.lock.log.records(topic)
            silent = [one for one in inputs if (topic, one.partition, one.offset) not in decided]
            drops = metrics.value("interlock_duplicates_dropped_total", topic)
            drops += metrics.value("interlock_emits_set_aside_total", topic)
            assert len(silent) <= drops, topic
        assert "refund.success" in person.heard
        assert [5_000] == [row["amount_fen"] for row in await person.ledger()]

    whole(body)


def test_every_unreadable_record_is_a_dead_letter_with_its_bytes() -> None:
    """Whatever can't be read stands in the dead letters with place, reason and exact bytes (promise 10, R-003-30)."""

    async def body(stand: Stand) -> None:
        person = await _flood(stand)
        placed = {(one.topic, one.partition, one.offset): one for one in stand.everything()}
        found = list(letters(LocalSource(stand.everything(), 4)))
        for one in found:
            at = one.letter
            assert placed[at.topic, at.partition, at.offset].value == exact_bytes(one, stand.world.keys)
            assert at.reason
            assert at.code
        dead = {(one.letter.topic, one.letter.offset) for one in found}
        for topic in INPUT_TOPICS:
            bad = {(topic, one.offset) for one in stand.lock.log.records(topic) if _bad(one)}
            assert bad
            assert bad <= dead
        assert person.state["version"] > 20

    whole(body, dlq_limit=1_000)


def _bad(record: Record) -> bool:
    """What nobody can read: rubbish, which has no headers either, but not a null under a good key."""
    return not record.headers and (record.value is not None or record.key != KEYS[0])


class Broken(LocalCommit):
    """A register that takes nothing from some record on."""

    left = 1_000_000

    async def commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        """Fail for good at the end."""
        self.left -= 1
        if self.left < 0:
            message = "the register can't be written"
            raise PartitionLostError(message)
        return await super().commit(batch)


@pytest.mark.parametrize("left", [0, 1, 2, 5])
def test_a_register_that_can_not_be_written_stops_the_partition(left: int) -> None:
    """Nothing takes effect without its record, and nothing is acknowledged; a successor does it (promise 10)."""

    async def body(stand: Stand) -> None:
        whole_commit, broken = stand.lock.commit, Broken(stand.lock.log)
        stand.ports(commit=broken)
        person = await stand.person("c-zh-refund")
        broken.left = left
        with pytest.raises(PartitionLostError, match="can't be written"):
            await person.say("我要退款，订单号1001，衣服太大了")
        number = stand.lock.partition_of(person.conversation)
        before = len(stand.everything())
        committed = len(stand.lock.log.records(DIFFS))
        await person.write("在吗")
        with pytest.raises(PartitionLostError):
            await stand.pass_ms(1_000)
        assert (before + 1, committed) == (len(stand.everything()), len(stand.lock.log.records(DIFFS)))
        runtime = stand.lock._partitions[number]
        assert runtime.handled()["channel.events"] <= len(stand.lock.log.records("channel.events"))
        stand.ports(commit=whole_commit)
        await stand.lock.restart()
        await stand.pass_ms(30_000)
        assert "refund.confirm" in person.heard

    whole(body)


def test_what_is_assumed_says_so() -> None:
    """A display that nobody reported is marked assumed, in the state and to everybody (promise 10, R-002-30, X5)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund", receipts="none")
        await person.say("你好", ms=20_000)
        (message,) = person.state["actions"]["messages"].values()
        assert ("displayed", True) == (message["state"], message["assumed"])
        last = person.values("delivery.states")[-1]
        assert ("displayed", True) == (last["state"], last["assumed"])

    whole(body)


def test_too_many_dead_letters_pause_aloud_and_lose_nothing() -> None:
    """Over the limit the topic partition pauses and says so; resumed, all behind it is handled (promise 10)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        for _ in range(9):
            _append(stand, person, "channel.events", KEYS[0], b"{cut")
        await person.say("我要退款，订单号1001，衣服太大了", ms=2_000)
        home = f"~{stand.lock.partition_of(person.conversation)}"
        assert ["partition_paused"] == [one["kind"] for one in stand.values("system.events", home)]
        assert [] == person.heard
        word = SystemEvent(event_id="go", kind="partition_resumed", subject="channel.events", by="op", at=stand.now)
        await stand.world.publish("system.events", home, word, "go")
        await stand.pass_ms(4_000)
        assert ["refund.confirm"] == person.heard

    whole(body, dlq_limit=4)
