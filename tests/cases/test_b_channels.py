"""Cases B of the channels: from the bytes that they push, through the whole table, to what the customer hears."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from streams.channels import voice
from streams.channels.port import Push
from streams.channels.wechat.account import WeChatSettings
from streams.channels.wechat.door import Doorkeeper
from streams.scenario.format import Fault, Scenario, Wait
from tests.promises.stand import Person, Stand, whole
from tests.streams.channels import wechat_side as side


async def follower(stand: Stand, sender: str, channel: str = "wechat") -> Person:
    """A customer of the shop who writes by another channel."""
    scenario = Scenario.model_validate({
        "name": "stand", "title": "stand", "language": "zh", "sender": sender, "channel": channel, "receipts": "read",
        "approver": "approve", "steps": (Wait(kind="wait"),), "expect": {"outcome": "open"},
    })  # fmt: skip
    stand.world.follow(scenario)
    person = Person(stand, scenario)
    await person.client.open()
    return person


class WeChat:
    """The account's door, and the pipeline behind it."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.keeper = Doorkeeper(WeChatSettings.model_validate(side.options()))
        self._nonce = 0

    async def push(self, person: Person, kind: str, ms: int = 4_000, **more: str | int) -> None:
        """Push one message or event now, signed; then let time pass."""
        self._nonce += 1
        second = self.stand.now // 1000
        body = side.xml(side.fields(kind, **{"FromUserName": person.scenario.sender, "CreateTime": second, **more}))
        query = side.query(second, f"n-{self._nonce}")
        for event in self.keeper.push(Push(self.stand.now, body, query, {"shop": side.SHOP})).events:
            await person.send(event)
        await self.stand.pass_ms(ms)


def test_b01_one_message_id_of_two_followers() -> None:
    """Two voice messages with one MsgId and CreateTime from two senders are two messages, two answers (case B01)."""

    async def body(stand: Stand) -> None:
        wechat = WeChat(stand)
        people = [await follower(stand, one) for one in ("c-zh-refund", "c-zh-noorder")]
        for person in people:
            await wechat.push(person, "voice", ms=0, MsgId="6500000000000000001", MediaId="v", Recognition="我要退款。",
                              CreateTime=1_790_000_000)  # fmt: skip
        await stand.pass_ms(4_000)
        for person in people:
            assert 1 == len(person.values("messages.normalized"))
            assert ["refund.ask_order_id"] == person.heard

    whole(body)


def test_b03_wechat_pushes_three_times() -> None:
    """Pushed at 0, 5 and 10 s, signed anew each time: one plan, at most one call, one reply (case B03)."""

    async def body(stand: Stand) -> None:
        await stand.world.fault(Fault(path_prefix="/orders", method="GET", kind="delay", delay_ms=2_900))
        wechat, person = WeChat(stand), await follower(stand, "c-zh-logistics")
        for _ in range(3):
            await wechat.push(person, "text", ms=0, MsgId="6500000000000000003", Content="查一下订单1008")
            await asyncio.sleep(5)
        await stand.pass_ms(10_000)
        assert 1 == len(person.values("messages.normalized")) == len(person.heard)
        assert 1 >= len(person.values("tools.calls"))

    whole(body)


@pytest.mark.parametrize(("kind", "more"), [
    ("hologram", {"MsgId": "9"}), ("event", {"Event": "view_miniprogram", "EventKey": "pages/index"}),
    ("event", {"Event": "subscribe"}), ("device_event", {"MsgId": "10", "Event": "bind"}),
])  # fmt: skip
def test_b07_an_unknown_kind_is_no_turn(kind: str, more: dict[str, Any]) -> None:
    """It is on the topic under its own name; nothing is read, answered, scored or put aside (case B07)."""

    async def body(stand: Stand) -> None:
        wechat, person = WeChat(stand), await follower(stand, "c-zh-refund")
        await wechat.push(person, kind, **more)
        await stand.pass_ms(600_000)
        assert ["unsupported"] == [event["body"]["kind"] for event in person.values("channel.events")]
        for topic in ("messages.normalized", "actions.outbound", "feedback.signals", "feedback.health"):
            assert [] == person.values(topic), topic
        assert not [topic for topic in stand.lock.log.topics() if topic.endswith(".dlq")]

    whole(body)


def test_b09_an_empty_transcript_asks_to_repeat() -> None:
    """Without a transcript the customer is asked to say it again; "我要退款。" is a refund (case B09)."""

    async def body(stand: Stand) -> None:
        wechat, person = WeChat(stand), await follower(stand, "c-zh-refund")
        await wechat.push(person, "voice", MsgId="1", MediaId="v-1", Format="speex", Recognition="")
        assert ["common.say_again"] == person.heard
        await wechat.push(person, "voice", MsgId="2", MediaId="v-2", Format="amr", Recognition="我要退款。")
        assert "refund" == person.values("messages.normalized")[-1]["intent"]
        assert "refund.ask_order_id" == person.heard[-1]
        assert [] == [one for one in person.values("feedback.signals") if one["kind"] == "interruption"]

    whole(body)


def test_b19_transcripts_are_heard_in_the_order_of_speaking() -> None:
    """Spoken first and transcribed last: planning sees v1, then v2, and the order is 1002 (case B19)."""

    async def body(stand: Stand) -> None:
        person, start = await follower(stand, "c-zh-refund", "voice"), stand.now

        async def part(number: int, text: str, spoken_at: int, at: int) -> None:
            await stand.pass_ms(start + at - stand.now)
            value = {"shop": "demo", "sender": "c-zh-refund", "recording_id": f"v{number}", "text": text,
                     "spoken_at": start + spoken_at}  # fmt: skip
            for event in voice.read(Push(stand.now, orjson.dumps(value))).events:
                await person.send(event)

        await part(2, "不对，是1002", 3_000, 5_000)
        await part(1, "1001要退", 0, 8_000)
        await stand.pass_ms(8_000)
        heard = [(one["ref"]["message_id"], one["ref"]["at"] - start) for one in person.values("messages.normalized")]
        assert [("v1:1", 0), ("v2:1", 3_000)] == heard[-2:], "what was said later is read after it once more"
        (flow,) = person.state["planning"]["flows"]
        assert "1002" == flow["slots"]["order_id"]

    whole(body)
