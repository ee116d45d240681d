"""Dead letters: which keys are a conversation's, the limit in the order of the log, and seals that can't be opened."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import orjson
import pytest

from memory.sealing import MemoryKeyStore, seal
from schemas import cloudevents
from schemas.errors import BadRecordError
from schemas.partition import partition_of
from schemas.step import Draft, Input
from schemas.topics import TOPICS
from streams.runtime import wire
from streams.runtime.deadletters import DeadLetterLimit
from streams.runtime.local import LocalInterlock
from streams.runtime.opening import opener
from streams.runtime.ports import EffectHandler, Outgoing, Record
from streams.runtime.virtual import run_virtual, virtual_clock
from tests.streams.runtime.support import (
    WHO,
    SlowTool,
    event,
    heard,
    reasons,
    rows,
    rubbish,
    run,
    say,
    settings,
    values,
)

EVENTS = "channel.events"


def _record(key: bytes | None, topic: str = EVENTS, partition: int = 0) -> Record:
    headers = cloudevents.headers_for(id="x", type=TOPICS[topic].type, source="test", time_ms=1_767_578_400_000)
    return Record(topic, partition, 0, 0, key, orjson.dumps(event(1).model_dump(mode="json")), headers)


SHAPES = ("//{}", "a{}//c", "/b{}/c", "a/b{}/", "a/b/c{}/d", "a{}/" + "b" * 190 + "/c", "~a/b/{}")


@pytest.mark.parametrize("shape", SHAPES)
def test_key_that_no_contract_takes_is_nobodys_conversation(shape: str) -> None:
    """Empty parts, a part too many and more than 194 characters are no key, also on the right partition (promise 1)."""
    key = next(made for n in itertools.count() if partition_of(made := shape.format(n).encode(), 4) == 0)
    record = _record(key)
    assert "~0" == wire.lane_of(record, 4)
    with pytest.raises(BadRecordError, match="no usable key"):
        wire.read(record, "~0")


def test_system_conversation_takes_no_customers() -> None:
    """A customer's event under the key `~0` is a dead letter; the system's own topic is read there."""
    with pytest.raises(BadRecordError, match="no usable key"):
        wire.read(_record(b"~0"), "~0")
    assert "null" == wire.read(replace(_record(b"~0", "system.events"), value=None), "~0").type


def _bad(limit: DeadLetterLimit, offsets: list[int], *, bad: bool | None = True) -> list[int]:
    over = [limit.decided(replace(_record(None), offset=offset), bad=bad) for offset in offsets]
    return [record.offset for record in over if record is not None]


def test_row_is_counted_in_the_order_of_the_log() -> None:
    """A readable record between them that was decided first still stands between them."""
    limit = DeadLetterLimit(2)
    for offset in range(6):
        limit.read(replace(_record(None), offset=offset))
    assert [] == _bad(limit, [2, 5], bad=False)
    assert [] == _bad(limit, [0, 1, 3, 4])


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_limit_names_the_record_that_goes_over_it(order: tuple[int, ...]) -> None:
    """However they are decided, it is the third of the row; one that was dropped neither counts nor ends the row."""
    limit = DeadLetterLimit(2)
    for offset in range(4):
        limit.read(replace(_record(None), offset=offset))
    over = [found for offset in order for found in _bad(limit, [offset], bad=None if offset == 1 else True)]
    assert [3] == over


def test_lane_of_rubbish_behind_quick_neighbours_does_not_pause() -> None:
    """One lane of 160 keyless records, and every 40th record a customer's: never 100 in a row (promise 10)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 0)
        for number in range(1, 5):
            rubbish(lock, 40, key=None)
            await say(lock, number)
        await lock.settle()

        assert 160 == len(values(lock, "channel.events.dlq"))
        assert [] == values(lock, "system.events")

    run(body)


def test_pause_is_counted_once() -> None:
    """What was decided beside the record over the limit pauses nothing again; operations see one stop."""

    async def body(lock: LocalInterlock) -> None:
        rubbish(lock, 60)
        rubbish(lock, 60, key=None)
        await lock.settle()

        assert ["partition_paused"] == [value["kind"] for value in values(lock, "system.events")]
        assert 1 == lock.metrics.value("interlock_partition_stops_total", "dlq_limit")  # type: ignore[attr-defined]

    run(body)


def test_unreadable_repeat_of_an_emit_is_counted() -> None:
    """An unreadable record whose position was handled is dropped, and a metric says so (promise 10)."""

    async def body(lock: LocalInterlock) -> None:
        place = ("ce_position", b"demo/web/other|3|0")
        for value in (orjson.dumps(event(1).model_dump(mode="json")), b"{bad"):
            headers = (*_record(None).headers, place)
            lock.log.append(Outgoing(EVENTS, lock.partition_of(WHO), WHO.encode(), value, headers))
        await lock.settle()

        assert ["hello"] == heard(lock)
        assert [] == values(lock, "channel.events.dlq")
        assert 1 == lock.metrics.value("interlock_duplicates_dropped_total", EVENTS)  # type: ignore[attr-defined]

    run(body)


def _sealed(keys: MemoryKeyStore, owner: str, clear: bytes, **changes: str) -> Input:
    value = event(1).model_copy(update={"seal": seal(keys, owner, clear).model_copy(update=changes)})
    return Input(EVENTS, 0, 0, 0, WHO, "ev-1", "t", value)


CLEAR = b'{"kind": "message", "message_id": "m-1", "text": "call 13800000000", "attachments": []}'


@pytest.mark.parametrize(("owner", "clear", "changes"), [
    ("demo/web/u2", CLEAR, {}),
    (WHO, CLEAR, {"nonce": "AAAAAAAAAAAAAAAA"}),
    (WHO, CLEAR, {"sealed": "***"}),
    (WHO, b"\xff", {}),
    (WHO, b"[1]", {}),
    (WHO, b'{"kind": "message", "message_id": "m-1", "text": 5}', {}),
    (WHO, b'{"kind": "recall", "message_id": "m-1"}', {}),
])  # fmt: skip
def test_seal_that_cannot_be_right_is_a_bad_record(owner: str, clear: bytes, changes: dict[str, str]) -> None:
    """Altered, another conversation's, or no body of its kind: said with the field, and nothing of the value."""
    keys = MemoryKeyStore()
    with pytest.raises(BadRecordError) as caught:
        opener(keys)(_sealed(keys, owner, clear, **changes))
    assert ("bad_seal", "seal") == (caught.value.code, caught.value.field)


def test_seal_opens_to_the_body_and_to_nothing_once_its_key_is_gone() -> None:
    """The clear body for the rows that may see it; a destroyed key is no fault of the record (promise 9)."""
    keys = MemoryKeyStore()
    cause = _sealed(keys, WHO, CLEAR)
    assert orjson.loads(CLEAR) == opener(keys)(cause)
    keys.destroy(WHO)
    assert opener(keys)(cause) is None


def test_bad_seal_costs_one_record_and_no_partition() -> None:
    """One altered seal is one dead letter; the conversation goes on (promise 10, R-002-49)."""

    async def body() -> None:
        table = [replace(row, opens_seal=True) for row in rows()]
        lock = LocalInterlock(settings(), table, {}, MemoryKeyStore(), virtual_clock())
        bad = _sealed(MemoryKeyStore(), WHO, CLEAR).value
        mine = seal(lock.ports.keys, "demo/web/other", CLEAR)
        await lock.publish(EVENTS, WHO, bad.model_copy(update={"seal": mine}), "ev-bad")
        await say(lock, 2, "fine")
        await lock.settle()

        assert ["bad_seal"] == [letter["code"] for letter in values(lock, "channel.events.dlq")]
        assert ["fine"] == heard(lock)
        await lock.close()

    run_virtual(body())


def test_rubbish_does_not_push_out_the_ids_of_what_was_heard() -> None:
    """After 300 unreadable records under the customer's key, the same event again is still a duplicate (case A15)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1)
        for number in range(2, 5):
            rubbish(lock, 100)
            await say(lock, number)
        await say(lock, 1)
        await lock.settle()

        assert 300 == len(values(lock, "channel.events.dlq"))
        assert 4 == len(heard(lock))
        assert "runtime.duplicate" == reasons(lock)[-1]

    run(body)


def _broken(_draft: Draft, cause: Input) -> None:
    raise LookupError(cause.topic)


def _with_broken_facts(handlers: Mapping[str, EffectHandler] | None = None) -> LocalInterlock:
    """The test table, whose step of timers and results has a bug until somebody puts the right one in."""
    table = [replace(row, step=_broken) if row.name == "facts" else row for row in rows()]
    return LocalInterlock(settings(), table, handlers or {}, MemoryKeyStore(), virtual_clock())


async def _repaired(lock: LocalInterlock, topic: str) -> None:
    """The next version of the step runs, and the letter of `topic` is redriven."""
    await lock.settle()
    lock._rows = rows()
    await lock.restart()
    first = lock.log.records(topic, lock.partition_of(WHO))[0]
    lock.log.append(Outgoing(topic, first.partition, first.key, first.value, first.headers))
    await lock.settle()


def test_deadline_whose_firing_is_a_dead_letter_fires_once() -> None:
    """It does not come back with every restart, and a redrive of its letter is decided (promise 10)."""

    async def body() -> None:
        lock = _with_broken_facts()
        await say(lock, 1, "timer")
        for _ in range(3):
            await lock.advance(20_000)
            await lock.restart()
        assert 1 == len(lock.log.records("timers.fired"))

        await _repaired(lock, "timers.fired")
        assert "test.timer" == reasons(lock)[-1]
        await lock.close()

    run_virtual(body())


def test_effect_whose_outcome_is_a_dead_letter_is_not_asked_again() -> None:
    """The outcome is kept: no second letter at each restart, and its redrive settles the call (promise 10)."""

    async def body() -> None:
        tool = SlowTool()
        lock = _with_broken_facts({"tool": tool})
        await say(lock, 1, "call")
        for _ in range(3):
            await lock.advance(60_000)
            await lock.restart()
        assert 1 == len(lock.log.records("tools.results"))
        assert (["k-1"], []) == (tool.done, tool.asked)

        await _repaired(lock, "tools.results")
        assert "test.settled" == reasons(lock)[-1]
        await lock.close()

    run_virtual(body())
