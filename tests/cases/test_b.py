"""Cases B: what channels send, from the producer's bytes through the whole table to the shop."""

from __future__ import annotations

import asyncio
from collections import Counter

import orjson
import pytest

from memory.sealing import open_seal
from schemas import codec
from schemas.events import MessageBody, RawEvent, Seal
from streams.scenario.format import Fault
from tests.promises.stand import Person, Stand, whole

WISH = {"zh": "我要退款，订单{order}，太大了", "en": "refund order {order} please, it is too large"}


async def _from_bytes(person: Person, event: bytes, ms: int = 4_000) -> None:
    """A producer's JSON as it stands on the wire."""
    plain = codec.exact_ids(codec.parse(event, topic="channel.raw", long_integers=True))
    await person.send(codec.validate(RawEvent, plain, "channel.raw"))
    await person.stand.pass_ms(ms)


def _bytes(person: Person, event_id: str, message_id: str, text: str) -> bytes:
    """The ids and the text are JSON as given: numbers stay numbers, escapes stay escapes."""
    who = f'"shop":"demo","channel":"web","sender":"{person.scenario.sender}"'
    body = f'{{"kind":"message","message_id":{message_id},"text":{text}}}'
    return f'{{"id":{event_id},{who},"occurred_at":{person.stand.now},"body":{body}}}'.encode()


@pytest.mark.parametrize("message_id", ["6500000000000000001", "1", "same/id:1"])
def test_b01_the_same_message_id_of_two_senders(message_id: str) -> None:
    """Equal message and event ids at the same moment from two senders: two messages, two answers (case B01)."""

    async def body(stand: Stand) -> None:
        people = [await stand.person("c-zh-refund"), await stand.person("c-zh-noorder")]
        for person, order in zip(people, ("1001", "1002"), strict=True):
            spoken = MessageBody(kind="message", message_id=message_id, text=WISH["zh"].format(order=order))
            await person.send(person.raw(message_id, spoken))
        await stand.pass_ms(4_000)
        for person, order in zip(people, ("1001", "1002"), strict=True):
            assert ["refund.confirm"] == person.heard
            (call,) = person.values("tools.calls")
            assert order == call["args"]["order_id"]

    whole(body)


@pytest.mark.parametrize(("one", "two"), [
    (9007199254740992, 9007199254740993), (9223372036854775806, 9223372036854775807),
    (6500000000000000001, 6500000000000000003),
])  # fmt: skip
def test_b05_long_ids_stay_exact(one: int, two: int) -> None:
    """JSON numbers that a float can't tell apart: two messages, exact decimal text on every topic (case B05)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        for number in (one, two):
            await _from_bytes(person, _bytes(person, str(number), str(number), '"你好"'))
        ids = [str(one), str(two)]
        assert ids == [event["body"]["message_id"] for event in person.values("channel.events")]
        assert ids == [message["ref"]["message_id"] for message in person.values("messages.normalized")]
        assert ids == list(person.state["perception"]["messages"])
        assert len(person.heard) == 2

    whole(body)


@pytest.mark.parametrize(("first", "second", "final"), [
    ("地址改成A路1号", "地址改成B路2号", "B路2号"),
    ("订单1006地址改成北京市海淀区中关村大街1号", "地址改成上海市浦东新区世纪大道2号", "世纪大道2号"),
])  # fmt: skip
@pytest.mark.parametrize("late", [0, 20_000])
def test_b11_a_recall_cancels_what_it_asked_for(first: str, second: str, final: str, late: int) -> None:
    """Recalled, then said anew: the first change never happens, the second does, one correction signal (case B11)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-address")
        await person.say(first, message_id="m-211", ms=late)
        await person.recall("m-211", ms=20_000)
        await person.say(second, message_id="m-212")
        if person.heard[-1] == "address.ask_order_id":
            await person.say("1006")
        assert "address.confirm" == person.heard[-1]
        await person.say("确认")
        assert "address.success" == person.heard[-1]
        order = await stand.world._shop.get("/orders/1006?customer_id=c-zh-address")
        assert final in order.json()["address"]
        assert 1 == len(await person.ledger())
        assert person.state["perception"]["messages"]["m-211"]["recalled"]
        corrections = [one for one in person.values("feedback.signals") if one["kind"] == "correction"]
        assert 1 == len(corrections)
        assert "m-211" not in [one["ref"]["message_id"] for one in person.values("messages.normalized")[1:]]

    whole(body)


@pytest.mark.parametrize("emoji", ["\U0001f62d", "\U0001f600\U0001f44d", "\U00020bb7"])
def test_b15_an_escaped_pair_is_one_character(emoji: str) -> None:
    """Two escapes are one character, valid UTF-8 on every topic, and the words beside it are read (case B15)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        text = orjson.dumps(emoji + "退款").decode()
        escaped = "".join(char if ord(char) < 0x80 else _escape(char) for char in text)
        assert "\\ud8" in escaped
        await _from_bytes(person, _bytes(person, '"p-1"', '"m-1"', escaped))
        (message,) = person.values("messages.normalized")
        assert (emoji + "退款", "refund") == (message["text"], message["intent"])
        for record in stand.everything():
            (record.value or b"").decode("utf-8")
        assert ["refund.ask_order_id"] == person.heard

    whole(body)


def _escape(char: str) -> str:
    """As JSON's escape, outside the basic plane as a pair."""
    units = char.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))


@pytest.mark.parametrize("text", [
    "订单\u00001001退款", "订\u200b单1001退\u200b款", "退\u200d款 订单\ufeff1001", "\u2060退款\u2060订单10\u200b01",
    "退\u0000款订单1001",
])  # fmt: skip
def test_b17_invisible_characters_hide_nothing(text: str) -> None:
    """NUL and zero-width characters: order and wish are found, no NUL on a topic, the raw form is kept (case B17)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await _from_bytes(person, _bytes(person, '"p-1"', '"m-1"', orjson.dumps(text).decode()))
        (message,) = person.values("messages.normalized")
        assert ("refund", "1001") == (message["intent"], message["target_item"]["order_id"])
        for record in stand.everything():
            assert b"\\u0000" not in (record.value or b"")
            assert b"\x00" not in (record.value or b"")
        (event,) = person.values("channel.events")
        raw = event["body"]["text"]
        if event["seal"]:
            sealed = Seal.model_validate_json(orjson.dumps(event["seal"]))
            raw = orjson.loads(open_seal(stand.world.keys, sealed, person.conversation) or b"")["text"]
        assert text == raw

    whole(body)


@pytest.mark.parametrize("again_ms", [500, 4_000, 20_000])
def test_b23_a_message_that_had_to_wait_is_handled_once(again_ms: int) -> None:
    """While the first one's call takes its time a second comes, and comes again: both once, in order (case B23)."""

    async def body(stand: Stand) -> None:
        await stand.world.fault(Fault(path_prefix="/orders/1009", method="GET", kind="delay", delay_ms=2_500))
        person = await stand.person("c-zh-two")
        await person.write("退1009，坏了", "m-223a")
        await asyncio.sleep(1)
        spoken = person.raw("p-b", MessageBody(kind="message", message_id="m-223b", text="再查1010的物流"))
        await person.send(spoken)
        await asyncio.sleep(again_ms / 1_000)
        await person.send(spoken)
        await stand.pass_ms(15_000)
        heard = [one["ref"]["message_id"] for one in person.values("messages.normalized")]
        assert ["m-223a", "m-223b"] == heard
        tools = [call["tool"] for call in person.values("tools.calls")]
        assert ["get_order", "get_logistics"] == tools
        heard_of = Counter(person.heard)
        assert (1, {"logistics.status", "refund.confirm"}) == (heard_of["logistics.status"], set(heard_of))
        assert [] == await person.ledger(), "the open question is asked again, and answered by nobody"

    whole(body)


@pytest.mark.parametrize("gap", [0, 1, 300, 3_000])
@pytest.mark.parametrize(("sender", "start", "yes", "number"), [
    ("c-zh-refund", "退……", "是", "1001"), ("c-zh-refund", "我要退款", "1001", "太大了"),
    ("c-en-refund", "I want a refund", "OD100001", "it is too large"),
])  # fmt: skip
def test_b25_a_fast_second_answer_fills_the_slot(sender: str, start: str, yes: str, number: str, gap: int) -> None:
    """Two answers within moments are read one after the other, and nothing is asked a second time (case B25)."""

    async def body(stand: Stand) -> None:
        person = await stand.person(sender)
        await person.say(start)
        await person.write(yes)
        await stand.pass_ms(gap)
        await person.write(number)
        await stand.pass_ms(6_000)
        asked = person.heard
        assert len(asked) == len(set(asked)), asked
        (flow,) = person.state["planning"]["flows"]
        assert flow["slots"]["order_id"] in {"1001", "OD100001"}

    whole(body)


def test_b03_a_channel_that_pushes_again() -> None:
    """No answer in 5 s, pushed at 0, 5 and 10 s while the call takes its time: one plan, one call, one reply (B03)."""

    async def body(stand: Stand) -> None:
        await stand.world.fault(Fault(path_prefix="/orders", method="GET", kind="delay", delay_ms=2_900))
        person = await stand.person("c-zh-logistics")
        for _ in range(3):
            pushed = MessageBody(kind="message", message_id="6500000000000000003", text="查一下订单1008")
            await person.send(person.raw("6500000000000000003", pushed))
            await asyncio.sleep(5)
        await stand.pass_ms(10_000)
        assert 1 == len(person.values("messages.normalized")) == len(person.heard)
        assert 1 >= len(person.values("tools.calls"))

    whole(body)
