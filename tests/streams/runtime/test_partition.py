"""The partition runtime on its in-memory twins: order, dedupe, dead letters, pause and resume."""

from __future__ import annotations

import asyncio
import base64

import orjson
import pytest

from memory.sealing import open_seal
from schemas.events import Seal
from schemas.state import ConversationState
from streams.metrics import RecordedMetrics
from streams.runtime import wire
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import Outgoing, PartitionLostError
from tests.streams.runtime.support import WHO, SlowTool, heard, reasons, resume, rubbish, run, say, values


def test_conversation_is_handled_in_order() -> None:
    """Twenty messages at once are heard once each, in the order of their offsets (promise 1, case B23)."""

    async def body(lock: LocalInterlock) -> None:
        for number in range(20):
            await say(lock, number, f"word {number}")
        await lock.settle()

        assert [f"word {number}" for number in range(20)] == heard(lock)
        assert list(range(1, 21)) == [diff["version"] for diff in lock.diffs(WHO)]

    run(body)


def test_same_event_twice_is_heard_once() -> None:
    """Two producers send the same event: one message, and the second is recorded as a duplicate (case A15)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1)
        await say(lock, 1)
        await lock.settle()

        assert ["hello"] == heard(lock)
        assert ["test.heard", "runtime.duplicate"] == reasons(lock)

    run(body)


def test_slow_call_delays_nobody() -> None:
    """While a call takes 3 s, its own conversation and others are answered at once (R-003-21)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "call")
        await say(lock, 2, "again")
        await say(lock, 3, "other", "u2")
        await asyncio.sleep(0.5)  # virtual; the call goes on

        assert ["call", "again"] == heard(lock)
        assert ["other"] == heard(lock, "demo/web/u2")
        await lock.settle()
        assert ["call", "again", "success"] == heard(lock)

    run(body, {"tool": SlowTool()})


def test_unreadable_record_is_a_dead_letter_with_its_bytes() -> None:
    """Coordinates, reason and the exact bytes, sealed, are on the dead-letter topic (promise 10, R-002-04)."""
    bad = b'{"id": \xff'

    async def body(lock: LocalInterlock) -> None:
        rubbish(lock, 1, bad)
        await say(lock, 1)
        await lock.settle()

        (letter,) = values(lock, "channel.events.dlq")
        clear = open_seal(lock.ports.keys, Seal(**letter["seal"]), WHO)
        assert (bad, WHO.encode(), 0) == (clear, base64.b64decode(letter["key"]), letter["offset"])
        assert letter["reason"]
        assert ["hello"] == heard(lock)

    run(body)


@pytest.mark.parametrize("key", [None, b"\xff\xfe", b"no-slashes", b"demo/web/somebody-else-entirely"])
def test_record_without_usable_key_goes_to_the_system_conversation(key: bytes | None) -> None:
    """No key, an undecodable one, or one that murmur2 places elsewhere: a dead letter of `~<partition>`."""

    async def body(lock: LocalInterlock) -> None:
        home = lock.partition_of(WHO)
        if key is not None and key.count(b"/") == 2 and lock.partition_of(key.decode()) == home:
            pytest.skip("the key lies on this partition by chance")
        rubbish(lock, 1, b"{}", key)
        await lock.settle()

        assert "bad_key" == values(lock, "channel.events.dlq")[0]["code"]
        assert ["runtime.dead_letter"] == reasons(lock, f"~{home}")

    run(body)


def test_step_that_raises_costs_one_record() -> None:
    """Our bug on one record is a dead letter with the step's name; the conversation goes on (R-002-49)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "boom")
        await say(lock, 2, "fine")
        await lock.settle()

        assert ["step_failed"] == [letter["code"] for letter in values(lock, "channel.events.dlq")]
        assert ["fine"] == heard(lock)

    run(body)


def test_hundred_dead_letters_in_a_row_do_not_pause() -> None:
    """The limit is 100 in a row; a readable record starts the count again."""

    async def body(lock: LocalInterlock) -> None:
        for _ in range(2):
            rubbish(lock, 100)
            await say(lock, len(lock.log.records("channel.events")))
        await lock.settle()

        assert 200 == len(values(lock, "channel.events.dlq"))
        assert 2 == len(heard(lock))

    run(body)


def test_one_more_pauses_until_resumed_also_across_a_restart() -> None:
    """Over the limit the topic partition stands still, keeps its records, and goes on by command (promise 10)."""

    async def body(lock: LocalInterlock) -> None:
        rubbish(lock, 101)
        await lock.settle()
        await say(lock, 1, "later")
        await lock.settle()
        assert [] == heard(lock)
        await lock.restart()
        await lock.settle()
        assert [] == heard(lock)
        assert ["partition_paused"] == [value["kind"] for value in values(lock, "system.events")]

        await resume(lock, "channel.events")
        assert ["later"] == heard(lock)

    run(body)


def test_paused_topic_leaves_the_others_running() -> None:
    """Timers and results of the same partition go on while channel.events is paused."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "timer")
        await lock.settle()
        rubbish(lock, 101)
        await lock.advance(10_000)

        state = lock.state(WHO)
        assert state is not None
        assert 1 == state["planning"]["turns"]

    run(body)


def test_restart_from_the_log_gives_the_same_state() -> None:
    """What was acknowledged is there after a restart, nothing is done again (R-002-15, case C11)."""

    async def body(lock: LocalInterlock) -> None:
        for number, text in enumerate(["one", "plan", "call", "two"]):
            await say(lock, number, text)
        await lock.settle()
        before, diffs, plans = lock.state(WHO), len(list(lock.diffs(WHO))), len(values(lock, "plans"))
        await lock.restart()
        await lock.settle()

        assert orjson.dumps(before) == orjson.dumps(lock.state(WHO))
        assert diffs == len(list(lock.diffs(WHO)))
        assert plans == len(values(lock, "plans"))

    run(body, {"tool": SlowTool()})


def test_unknown_outcome_of_a_commit_closes_the_partition_and_loses_nothing() -> None:
    """The commit was written and its answer lost: the next owner finds it, and publishes its emits (promise 4)."""

    async def body(lock: LocalInterlock) -> None:
        lock.commit.lose_next = True
        await say(lock, 1, "plan")
        with pytest.raises(PartitionLostError):
            await lock.settle()
        assert [] == values(lock, "plans")
        await lock.restart()
        await lock.settle()

        assert ["plan"] == heard(lock)
        assert 1 == len(values(lock, "plans"))
        assert [1] == [diff["version"] for diff in lock.diffs(WHO)]

    run(body)


def test_checkpoint_rides_along_at_most_once_a_second() -> None:
    """state.updates holds the latest committed states and a mark, in transactions that carry diffs (R-002-14)."""

    async def body(lock: LocalInterlock) -> None:
        for number in range(5):
            await say(lock, number)
            await lock.advance(400)

        updates = values(lock, "state.updates")
        marks = [update for update in updates if update["kind"] == "mark"]
        states = [
            ConversationState.model_validate_json(orjson.dumps(update))
            for update in updates
            if update["kind"] == "state"
        ]
        assert 1 <= len(marks) <= 2
        assert states[-1].version <= 5
        assert marks[-1]["diff_offset"] < len(lock.log.records(wire.DIFFS))

    run(body, checkpoint_ms=1_000)


def test_too_large_a_transaction_is_split() -> None:
    """At most `commit_max` decisions share a transaction, and all are done (section 3a, commit)."""

    async def body(lock: LocalInterlock) -> None:
        for number in range(50):
            await say(lock, number, sender=f"u{number}")
        await lock.settle()

        assert 50 == len(lock.log.records(wire.DIFFS))

    run(body, commit_max=8)


def test_foreign_header_and_null_are_kept_out_of_the_way() -> None:
    """A null value is acknowledged and recorded; it is no dead letter (case C09)."""

    async def body(lock: LocalInterlock) -> None:
        lock.log.append(Outgoing("channel.events", lock.partition_of(WHO), WHO.encode(), None, (("x", None),)))
        await say(lock, 1)
        await lock.settle()

        assert ["runtime.null", "test.heard"] == reasons(lock)
        assert [] == values(lock, "channel.events.dlq")

    run(body)


def test_decision_that_no_topic_takes_is_a_dead_letter() -> None:
    """An emit larger than its topic takes is found before the commit: one dead letter, and the partition goes on."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "huge")
        await say(lock, 2, "plan")
        await lock.settle()

        assert ["too_large"] == [letter["code"] for letter in values(lock, "channel.events.dlq")]
        assert ["plan"] == heard(lock)
        assert 1 == len(values(lock, "plans"))

    run(body)


def test_redelivered_record_is_counted_apart_from_a_repeated_emit() -> None:
    """A record that is read again after a restart is dropped and counted (case C11)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1)
        await say(lock, 2)
        await lock.settle()
        await lock.restart()
        await lock.settle()

        assert isinstance(lock.metrics, RecordedMetrics)
        assert 1 <= lock.metrics.value("interlock_redelivered_total", "channel.events")
        assert 0 == lock.metrics.value("interlock_duplicates_dropped_total", "channel.events")
        assert 2 == len(heard(lock))

    run(body)
