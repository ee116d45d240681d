"""Dead letters for people: shown byte for byte, driven back in, and a paused topic resumed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from schemas.delivery import Receipt
from schemas.system import SystemEvent
from streams.commands.dlq import shown, text_line
from streams.replay.find import NotFoundError
from streams.replay.letters import LetterError, exact_bytes, find_letter, letters, paused, redrive, resumed
from streams.runtime.ports import Record
from streams.runtime.wire import read
from streams.scenario.memory import MemoryWorld
from tests.streams.replay.recorded import REFUND, SETTINGS, Recorded, append, message, record

NOW = 1_767_578_400_000
RUBBISH = b'{"cut\xff\x00'


@cache
def refused() -> Recorded:
    """Rubbish under a good key, a null key, a null value, and on a partition that is not the key's."""

    async def body(world: MemoryWorld) -> None:
        home = world.interlock.partition_of(REFUND)
        append(world, "channel.events", REFUND.encode(), RUBBISH, home)
        append(world, "channel.events", None, b"no key", home)
        append(world, "channel.events", b"\xff\xfe", b"odd key", home)
        append(world, "delivery.receipts", REFUND.encode(), b"{}", (home + 1) % SETTINGS.partitions)
        await world.interlock.settle()

    return record(body)


def test_every_dead_letter_is_listed_with_its_reason() -> None:
    """Topic, partition, offset, key, size and reason of each stand in the list (promise 10)."""
    recorded = refused()
    found = list(letters(recorded.source))
    assert ["channel.events"] * 3 + ["delivery.receipts"] == [one.letter.topic for one in found]
    lines = [text_line(one) for one in found]
    assert "channel.events.dlq:10:0  channel.events 10:0" in lines[0]
    assert f"{len(RUBBISH)} bytes" in lines[0]
    assert "no key" in lines[1]
    assert "bad_key" in lines[3]
    assert ["delivery.receipts"] == [one.letter.topic for one in letters(recorded.source, ["delivery.receipts"])]


def test_the_exact_bytes_come_out_of_the_seal() -> None:
    """Whatever was refused is there byte for byte, for whoever has the keys (promises 9 and 10)."""
    recorded = refused()
    values = [exact_bytes(one, recorded.keys) for one in letters(recorded.source)]
    assert [RUBBISH, b"no key", b"odd key", b"{}"] == values
    assert RUBBISH not in b"".join(one.value or b"" for one in recorded.of("channel.events.dlq"))


def test_a_destroyed_key_is_said() -> None:
    """When the customer's key was destroyed the bytes are gone, and that is what one is told (promise 9)."""

    async def body(world: MemoryWorld) -> None:
        append(world, "channel.events", REFUND.encode(), RUBBISH, world.interlock.partition_of(REFUND))
        await world.interlock.settle()

    recorded = record(body)
    recorded.keys.destroy(REFUND)
    with pytest.raises(LetterError, match=f"the key of {REFUND} was destroyed"):
        exact_bytes(next(letters(recorded.source)), recorded.keys)


@pytest.mark.parametrize("reference", ["channel.events.dlq:10:1", "channel.events:10:1", "channel.events.dlq 10:1"])
def test_a_dead_letter_is_found_by_its_reference(reference: str) -> None:
    """The reference of the list, also without `.dlq`, leads to that one record (promise 10)."""
    assert b"no key" == exact_bytes(find_letter(refused().source, reference), refused().keys)


@pytest.mark.parametrize(
    ("reference", "error", "words"),
    [
        ("nonsense", LetterError, "no reference to a dead letter, such as"),
        ("plans:1:1", NotFoundError, "no topic plans.dlq; dead letters are on channel.raw.dlq"),
        ("channel.events.dlq:10:77", NotFoundError, "there is no such record"),
        ("channel.events.dlq:99:0", NotFoundError, "there is no such record"),
    ],
)
def test_a_wrong_reference_is_explained(reference: str, error: type[Exception], words: str) -> None:
    """A reference that leads nowhere says so (promise 10)."""
    with pytest.raises(error, match=words):
        find_letter(refused().source, reference)


def test_a_record_that_is_no_dead_letter_is_refused() -> None:
    """Rubbish on a dead-letter topic is named by its place (promise 10)."""
    bad = Record("plans.dlq", 0, 0, 0, None, b"{}")
    source = replace(refused(), records=(replace(bad, topic="tools.calls.dlq"),)).source
    with pytest.raises(LetterError, match=r"tools\.calls\.dlq 0:0 is no dead letter that can be read"):
        list(letters(source))


def test_a_redrive_is_the_same_record_as_a_new_input() -> None:
    """Bytes, key and headers are the refused record's; it names its dead letter (promise 10)."""
    recorded = refused()
    first, without, odd, misplaced = (
        redrive(one, recorded.keys, SETTINGS.partitions) for one in letters(recorded.source)
    )
    assert (REFUND.encode(), RUBBISH, 10) == (first.key, first.value, first.partition)
    assert (("interlock-redrive-of", b"channel.events.dlq:10:0"),) == first.headers
    assert (None, 10) == (without.key, without.partition)
    assert (b"\xff\xfe", 10) == (odd.key, odd.partition)
    assert ("delivery.receipts", 10) == (misplaced.topic, misplaced.partition)


def test_a_redriven_record_is_handled_when_the_fault_is_gone() -> None:
    """What was refused for standing on the wrong partition is handled from its own (promise 10)."""

    async def body(world: MemoryWorld) -> None:
        from streams.intake import channel_event_record, intake

        good = channel_event_record(intake(message(1, "我要退款"), world.keys), SETTINGS.partitions, 1_767_578_400_000)
        world.interlock.log.append(replace(good, partition=(good.partition + 1) % SETTINGS.partitions))
        await world.interlock.settle()
        source = Recorded(tuple(world.interlock.log.records("channel.events.dlq")), world.keys).source
        world.interlock.log.append(redrive(next(letters(source)), world.keys, SETTINGS.partitions))
        await world.interlock.settle()

    recorded = record(body)
    assert ["refund"] == [one["intent"] for one in recorded.values("messages.normalized")]


def test_a_redriven_emit_is_no_repeat_of_its_first_time() -> None:
    """The position of an emit is left out, or the new input would be dropped in silence (promise 10)."""
    recorded = refused()
    one = next(letters(recorded.source))
    headers = (("ce_id", "YQ=="), ("ce_position", "YXxifDE="), ("ce_previous", "MHww"),
               ("interlock-redrive-of", "eA=="), ("x-own", None))  # fmt: skip
    again = redrive(replace(one, letter=one.letter.model_copy(update={"headers": headers})), recorded.keys, 12)
    assert (("ce_id", b"a"), ("x-own", None), ("interlock-redrive-of", b"channel.events.dlq:10:0")) == again.headers


def test_a_paused_topic_is_listed_until_it_is_resumed() -> None:
    """The pause and the word that ends it are on system.events, and the runtime can read the word (promise 10)."""

    async def body(world: MemoryWorld) -> None:
        home = world.interlock.partition_of(REFUND)
        for _ in range(SETTINGS.dlq_limit + 1):
            append(world, "channel.events", REFUND.encode(), RUBBISH, home)
        await world.interlock.settle()

    recorded = record(body)
    ((topic, partition, offset),) = paused(recorded.source)
    assert ("channel.events", 10, SETTINGS.dlq_limit) == (topic, partition, offset)
    word = resumed(topic, partition, "op", "resume-1", 1_767_578_400_000)
    after = Record(word.topic, word.partition, 999, 1_767_578_400_000, word.key, word.value, word.headers)
    assert "partition_resumed" == read(after, "~10").value.kind
    assert [] == paused(replace(recorded, records=(*recorded.records, after)).source)


@pytest.mark.parametrize(
    ("lines", "value", "as_hex"),
    [
        (['{"a": "退款"}'], '{"a": "退款"}'.encode(), False),
        (["00000000  61                                               a"], b"a", True),
        (["00000000  7b 00 ff                                         {.."], b"{\x00\xff", False),
        (["the record had no value"], None, False),
        ([""], b"", False),
    ],
)
def test_bytes_are_shown_as_text_or_hex(lines: list[str], value: bytes | None, *, as_hex: bool) -> None:
    """Printable text as it is, anything else as a hex dump that hides no byte (promise 10)."""
    assert lines == shown(value, as_hex=as_hex)


@cache
def orphaned() -> Recorded:
    """Seventeen receipts of messages that nobody sent: one more than are parked."""

    async def body(world: MemoryWorld) -> None:
        for number in range(17):
            receipt = Receipt(receipt_id=f"r-{number}", message_id=f"m-{number}", state="read")
            await world.publish("delivery.receipts", REFUND, receipt, receipt.receipt_id)
        await world.interlock.settle()

    return record(body)


def test_an_orphan_receipt_is_shown_and_comes_back_as_a_receipt() -> None:
    """Its decoded value stands in for the bytes; a redrive is a readable receipt under an id of its own (case A03)."""
    recorded = orphaned()
    orphan = next(letters(recorded.source, ["delivery.receipts"]))
    value = exact_bytes(orphan, recorded.keys)
    assert value is not None
    assert "r-0" == Receipt.model_validate_json(value).receipt_id
    out = redrive(orphan, recorded.keys, SETTINGS.partitions)
    again = read(Record(out.topic, out.partition, 99, 0, out.key, out.value, out.headers), REFUND)
    assert ("r-0", f"redrive-{orphan.reference}") == (again.value.receipt_id, again.id)


def test_rubbish_on_the_system_topic_does_not_hide_what_is_paused() -> None:
    """Unreadable, null, foreign and incomplete system events are passed over, and the list still comes (promise 10)."""

    async def body(world: MemoryWorld) -> None:
        for value in (b"5", b"{}", b'{"subject": [], "kind": 1}', None, b'{"subject": "plans"}'):
            append(world, "system.events", b"~3", value, 3)
        vague = SystemEvent(event_id="e-1", kind="partition_paused", subject="plans", by="x", at=NOW)
        await world.publish("system.events", "~3", vague, "e-1")
        exact = vague.model_copy(update={"event_id": "e-2", "data": {"offset": 7}})
        await world.publish("system.events", "~3", exact, "e-2")
        await world.interlock.settle()

    assert [("plans", 3, 7)] == paused(record(body).source)
