"""What became of one event."""

from __future__ import annotations

from base64 import b64encode
from functools import cache

import pytest

from schemas import codec
from schemas.system import DeadLetter
from streams.commands.trace import text_lines
from streams.replay.find import NotFoundError
from streams.replay.letters import letters, redrive
from streams.replay.trace import Trace, derived_event_id, trace_event
from streams.scenario.memory import MemoryWorld
from tests.streams.replay.recorded import REFUND, Recorded, append, message, record, refund, send


def trace(recorded: Recorded, event: str, conversation: str | None = None) -> list[Trace]:
    """As `interlock trace` has it."""
    return trace_event(recorded.source, event, conversation)


def first_event(recorded: Recorded) -> str:
    """The event id of the customer's first message."""
    event: str = recorded.values("channel.events", REFUND)[0]["event_id"]
    return event


def test_an_answered_event_says_by_what_and_how_far() -> None:
    """Accepted where, decided by which rules, answered by which message, and read or not (R-003-30)."""
    recorded = refund()
    (found,) = trace(recorded, first_event(recorded))
    assert ("handled", ("channel.events", 10, 0)) == (found.outcome, found.event.at)
    assert [("read", False)] == [(answer.state, answer.assumed) for answer in found.answers]
    told = "\n".join(text_lines(found))
    for words in ("accepted: channel.events 10:0", "rules perception.session", "请确认：订单1001", "call get_order"):
        assert words in told


def test_a_producers_own_id_is_enough_with_its_conversation() -> None:
    """Whoever kept only the id it sent finds the event by it (R-003-30, case A15)."""
    recorded = refund()
    sent = recorded.values("channel.events", REFUND)[0]
    assert sent["event_id"] == derived_event_id(REFUND, sent["id"])
    assert ["handled"] == [one.outcome for one in trace(recorded, sent["id"], REFUND)]


def test_an_event_without_a_decision_waits() -> None:
    """Accepted and not handled yet is said, and is no error (promise 10)."""
    recorded = refund().only(lambda one: one.topic == "channel.events")
    (found,) = trace(recorded, first_event(recorded))
    assert "waiting" == found.outcome
    assert "not handled yet" in "\n".join(text_lines(found))


@cache
def sent_twice() -> Recorded:
    """A producer sends the same event again."""

    async def body(world: MemoryWorld) -> None:
        await send(world, message(1, "你好"))
        await send(world, message(1, "你好"))

    return record(body)


def test_an_event_sent_twice_is_handled_once() -> None:
    """Both records are found: the first was handled, the second is a repeat (cases A15, B01)."""
    both = trace(sent_twice(), "p-1", REFUND)
    assert ["handled", "duplicate"] == [one.outcome for one in both]
    assert "sent again: channel.events" in text_lines(both[1], again=True)[0]
    assert not both[1].answers


@cache
def refused() -> Recorded:
    """A record with a usable key that nobody can read, and one on a partition that its key does not belong to."""

    async def body(world: MemoryWorld) -> None:
        home = world.interlock.partition_of(REFUND)
        append(world, "channel.events", REFUND.encode(), b'{"event_id":"ev-bad","x":1}', home)
        append(world, "channel.events", REFUND.encode(), b'{"event_id":"ev-lost"}', (home + 1) % 12)
        await world.interlock.settle()

    return record(body)


@pytest.mark.parametrize(("event", "code"), [("ev-bad", "missing_header"), ("ev-lost", "bad_key")])
def test_a_refused_event_says_why(event: str, code: str) -> None:
    """A dead letter tells reason and place, also when the partition's own conversation decided it (promise 10)."""
    (found,) = trace(refused(), event)
    assert "dead_letter" == found.outcome
    assert found.dead_letter is not None
    assert code == found.dead_letter.get("code")
    told = "\n".join(text_lines(found))
    assert f"why: {code}" in told
    assert f"interlock dlq show channel.events.dlq:{found.event.partition}:0" in told


def test_what_followed_from_a_redrive_is_traced_too() -> None:
    """A dead letter that was driven back in is linked to the new record (promise 10)."""

    async def body(world: MemoryWorld) -> None:
        home = world.interlock.partition_of(REFUND)
        append(world, "channel.events", REFUND.encode(), b'{"event_id":"ev-bad"}', home)
        await world.interlock.settle()
        recorded = Recorded(tuple(world.interlock.log.records("channel.events.dlq")), world.keys)
        (letter,) = letters(recorded.source)
        world.interlock.log.append(redrive(letter, world.keys, 12))
        await world.interlock.settle()

    first, second = trace(record(body), "ev-bad")
    assert second.event.at in {step.at for step in first.chain}
    assert ["dead_letter", "dead_letter"] == [first.outcome, second.outcome]


def test_an_event_that_is_nowhere_is_said() -> None:
    """An unknown event is an error that says where was looked (R-003-30)."""
    with pytest.raises(NotFoundError, match=r"no such event on channel\.events, and none on channel\.raw"):
        trace(refund(), "p-unknown")


def test_a_producers_own_id_alone_finds_every_sender_that_used_it() -> None:
    """Without a conversation the id that the producer gave is enough; each sender's event is told apart (R-003-30)."""

    async def body(world: MemoryWorld) -> None:
        await send(world, message(1, "你好"))
        await send(world, message(1, "你好", "wang"))

    found = trace(record(body), "p-1")
    assert {REFUND, "demo/web/wang"} == {one.event.key for one in found}


RAW = b'{"id":"f-1","shop":"demo","channel":"wechat","sender":7,"body":{"kind":"heartbeat"}}'


def letter(offset: int, *, ce_id: str = "") -> bytes:
    """What intake leaves of a record of channel.raw partition 3."""
    headers = (("ce_id", b64encode(ce_id.encode()).decode()),) if ce_id else ()
    made = DeadLetter(topic="channel.raw", partition=3, offset=offset, time=1_767_578_400_000, reason="missing",
                      code="missing_field", field="sender", key=None, seal=None, headers=headers, size=1)  # fmt: skip
    return codec.encode(made)


@pytest.mark.parametrize("conversation", [None, "demo/wechat/7"])
def test_an_event_that_waits_for_intake_is_found(conversation: str | None) -> None:
    """What a foreign producer wrote is found by its id before intake took it, whatever type its ids have (B05)."""

    async def body(world: MemoryWorld) -> None:
        append(world, "channel.raw", None, RAW, 3)

    with pytest.raises(NotFoundError, match=r"channel\.raw 3:0, and not on channel\.events yet"):
        trace(record(body), "f-1", conversation)


def test_another_senders_event_on_the_way_is_not_this_one() -> None:
    """The same id of another sender is another event (case B01)."""

    async def body(world: MemoryWorld) -> None:
        append(world, "channel.raw", None, RAW, 3)

    with pytest.raises(NotFoundError, match="and none on channel"):
        trace(record(body), "f-1", "demo/wechat/8")


@pytest.mark.parametrize(("kept", "ce_id"), [(True, ""), (False, "f-1")])
def test_an_event_that_intake_refused_says_why(*, kept: bool, ce_id: str) -> None:
    """Found by the raw record while it is kept, afterwards by its CloudEvents id: field and reason (promise 10)."""

    async def body(world: MemoryWorld) -> None:
        if kept:
            append(world, "channel.raw", None, RAW, 3)
        append(world, "channel.raw.dlq", b"~3", letter(0, ce_id=ce_id), 3)

    with pytest.raises(
        NotFoundError, match=r"missing_field, sender missing \(see `interlock dlq show channel\.raw\.dlq:3:0"
    ):
        trace(record(body), "f-1")
