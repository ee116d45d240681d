"""Cases C in memory: windows, decoding, types and long calls through the whole table; the others need a broker."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from schemas.events import MessageBody
from streams.runtime.ports import Outgoing
from streams.scenario.format import Fault
from tests.promises.stand import Person, Stand, whole

T0 = 1_767_578_400_000  # on an edge of five minutes
WINDOW, GRACE = 300_000, 10_000
SLACK = 1_500  # a deadline fires when the clock has passed it by a second


def _sender_on(stand: Stand, partition: int, skip: int = 0) -> str:
    found = (f"s-{number}" for number in range(1_000)
             if stand.lock.partition_of(f"demo/web/s-{number}") == partition)  # fmt: skip
    for _ in range(skip):
        next(found)
    return next(found)


def _windows(person: Person) -> list[tuple[int, int]]:
    return [(one["window_start"], one["window_end"]) for one in person.values("feedback.health") if not one["revision"]]


@pytest.mark.parametrize(
    "senders", [((0, 0), (1, 0), (0, 1)), ((3, 0), (3, 1), (3, 2)), ((0, 0), (1, 0), (2, 0), (3, 0))]
)
def test_c01_windows_of_all_partitions_are_scored(senders: tuple[tuple[int, int], ...]) -> None:
    """Seven signals each in one window, on one partition or several: as many scores as sessions (case C01)."""

    async def body(stand: Stand) -> None:
        people = [await stand.person(_sender_on(stand, *place)) for place in senders]
        for number in range(7):
            for person in people:
                await person.write(f"你好 {number}")
            await stand.pass_ms(5_000)
        await stand.pass_ms(WINDOW + GRACE + SLACK - 35_000)
        assert [[(T0, T0 + WINDOW)]] * len(people) == [_windows(person) for person in people]

    whole(body)


@pytest.mark.parametrize("at", [0, 10_000, 299_000])
def test_c03_a_window_closes_in_silence(at: int) -> None:
    """One message and then nothing on any topic: the score is there by the window's end and grace (case C03)."""

    async def body(stand: Stand) -> None:
        await stand.pass_ms(at)
        person = await stand.person("c-zh-refund", receipts="none")
        await person.say("谢谢", ms=0)
        await stand.pass_ms(WINDOW - at + GRACE + SLACK)
        assert [(T0, T0 + WINDOW)] == _windows(person)
        await stand.pass_ms(20 * 60_000)
        assert 1 == len([one for one in _windows(person) if one[0] == T0])

    whole(body)


@pytest.mark.parametrize(("said", "arrives", "window"), [
    (299_950, 304_000, 0), (300_000, 300_000, 1), (299_999, 300_001, 0), (300_001, 309_000, 1), (0, 0, 0),
])  # fmt: skip
def test_c05_an_event_on_the_edge_is_in_one_window(said: int, arrives: int, window: int) -> None:
    """The time on the event says the window, up to the edge and from the edge on: no gap, no overlap (case C05)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund", receipts="none")
        await asyncio.sleep(arrives / 1_000)
        spoken = MessageBody(kind="message", message_id="m-1", text="谢谢")
        await person.send(person.raw("e-1", spoken, occurred_at=T0 + said))
        await stand.pass_ms(2 * WINDOW + GRACE + SLACK - arrives)
        answered = arrives // WINDOW  # our reply is an event of its own, when it goes out
        assert [T0 + number * WINDOW for number in sorted({window, answered})] == [
            start for start, _ in _windows(person)
        ]

    whole(body)


@pytest.mark.parametrize("cut", [b'{"amount":"abc', b"", b"\xff", b'{"id":1}'])
@pytest.mark.parametrize("third", [0, 2, 5])
def test_c07_a_cut_record_stops_nobody(cut: bytes, third: int) -> None:
    """Of six records one is cut: five are read, one is a dead letter with its place, all goes on (case C07)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        partition = stand.lock.partition_of(person.conversation)
        for number in range(6):
            if number == third:
                stand.lock.log.append(Outgoing("channel.events", partition, person.conversation.encode(), cut))
            else:
                await person.write(f"你好 {number}")
        await stand.pass_ms(4_000)
        assert 5 == len(person.values("messages.normalized"))
        (letter,) = person.values("channel.events.dlq")
        assert ("channel.events", partition, third) == (letter["topic"], letter["partition"], letter["offset"])

    whole(body)


def test_c17_windows_do_not_drift() -> None:
    """Two hours of messages: 24 windows, each on an edge, each scored once, however long the work takes (case C17)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund", receipts="none")
        for _ in range(29):
            await person.say("谢谢", ms=247_000)
        await stand.pass_ms(WINDOW)
        starts = [start for start, _ in _windows(person)]
        assert len(starts) == len(set(starts)) >= 23
        assert all((start - T0) % WINDOW == 0 for start in starts)
        assert sorted(starts) == starts

    whole(body)


@pytest.mark.parametrize(("field", "value"), [
    ("occurred_at", "1767578400000"), ("occurred_at", 1767578400000.5), ("occurred_at", True), ("shop", 7),
    ("ext", {"a": 1}),
])  # fmt: skip
def test_c23_types_are_as_the_schema_says(field: str, value: object) -> None:
    """A time as text, a true, an unknown field: refused by name, never coerced and never let through (case C23)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        good = await person.send(person.raw("e-1", MessageBody(kind="message", message_id="m-1", text="你好")))
        await stand.pass_ms(2_000)
        record = stand.lock.log.records("channel.events")[-1]
        changed = orjson.dumps({**good.model_dump(mode="json"), "event_id": "ev-2", field: value})
        headers = tuple((name, b"ev-2" if name == "ce_id" else text) for name, text in record.headers)
        stand.lock.log.append(Outgoing("channel.events", record.partition, record.key, changed, headers))
        await stand.pass_ms(2_000)
        (letter,) = person.values("channel.events.dlq")
        assert field in (letter["field"] or "")
        assert 1 == len(person.values("messages.normalized"))

    whole(body)


@pytest.mark.parametrize("seconds", [4, 40, 400])
def test_c25_a_long_call_is_done_once(seconds: int) -> None:
    """A refund that takes up to 400 s: nobody waits beyond the limits, and it is done once at most (case C25)."""

    async def body(stand: Stand) -> None:
        await stand.world.fault(Fault(path_prefix="/refunds", kind="delay", delay_ms=seconds * 1_000, times=9))
        person, other = await stand.person("c-zh-refund"), await stand.person("c-en-logistics")
        await person.say("我要退款，订单号1001，衣服太大了")
        await person.write("确认")
        await other.say("Where is my order OD100008?", ms=2_000)
        assert ["logistics.status"] == other.heard
        await stand.pass_ms(500_000)
        assert len(await person.ledger()) <= 1
        results = [one for one in person.values("tools.results") if one["tool"] == "create_refund"]
        assert 1 == len(results)
        if "refund.success" in person.heard:
            assert 1 == len(await person.ledger())
        else:
            assert "handover" in [one["kind"] for one in person.values("human.requests")]

    whole(body)
