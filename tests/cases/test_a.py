"""Cases A: receipts late, early, repeated, timeless and missing, through the whole table on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import httpx
import pytest

from schemas.delivery import OutboundMessage, Receipt
from schemas.events import MessageBody
from streams.effects.send import SendHandler
from streams.metrics import RecordedMetrics
from streams.runtime.ports import Effect, Fact
from tests.promises.stand import Person, Stand, whole

T0 = 1_767_578_400_000
MESSAGE = "m-101"


class Vendor:
    """A channel that answers our send after `seconds`, or never, and reports by itself."""

    def __init__(self, seconds: float | None = None, *, reason: str = "") -> None:
        self.seconds, self.reason = seconds, reason

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """Take it."""
        if self.seconds is None:
            return []
        await asyncio.sleep(self.seconds)
        state: Any = "failed" if self.reason else "sent"
        receipt = Receipt(receipt_id=f"{effect.id}:{state}", message_id=effect.key, state=state, source="sender",
                          attempt=int(effect.request["attempt"]), reason=self.reason)  # fmt: skip
        return [Fact("delivery.receipts", effect.conversation, receipt.receipt_id, receipt)]

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """A repeat is safe."""
        return await self.run(effect)


class Line:
    """One conversation whose reply and receipts the test writes itself."""

    def __init__(self, stand: Stand, person: Person) -> None:
        self.stand, self.person = stand, person
        self._count = 0

    async def reply(self, message_id: str = MESSAGE, attempt: int = 1) -> None:
        """The reply comes onto its topic."""
        message = OutboundMessage(message_id=message_id, session_id="s-1", attempt=attempt, kind="reply", text="好的",
                                  template_id="common.staff", language="zh")  # fmt: skip
        await self.stand.world.publish("actions.outbound", self.person.conversation, message, f"{message_id}-{attempt}")
        await self.stand.lock.settle()

    async def receipt(self, state: Any, at: int | None = None, message_id: str = MESSAGE, **more: Any) -> None:
        """The vendor reports."""
        self._count += 1
        receipt = Receipt(receipt_id=f"r-{self._count}", message_id=message_id, state=state, occurred_at=at, **more)
        await self.stand.world.publish("delivery.receipts", self.person.conversation, receipt, receipt.receipt_id)
        await self.stand.lock.settle()

    def held(self, message_id: str = MESSAGE) -> dict[str, Any]:
        """The message as the state has it."""
        return dict(self.person.state["actions"]["messages"][message_id])

    @property
    def last(self) -> dict[str, Any]:
        """The newest word on delivery.states."""
        return self.person.values("delivery.states")[-1]


async def _line(stand: Stand, vendor: Vendor, sender: str = "c-zh-refund") -> Line:
    stand.ports(effects={**stand.lock.ports.effects, "send": vendor}, metrics=RecordedMetrics())
    return Line(stand, await stand.person(sender))


@pytest.mark.parametrize("message_id", ["m-101", "9007199254740993"])
@pytest.mark.parametrize("gap", [0, 1, 900, 9_000])
def test_a01_a_late_sent_does_not_lower_delivered(message_id: str, gap: int) -> None:
    """Delivered at T0+2 s, then sent of T0+1 s: it stays delivered, and the sent time is filled in (case A01)."""

    async def body(stand: Stand) -> None:
        line = await _line(stand, Vendor())
        await line.reply(message_id)
        await line.receipt("delivered", T0 + 2_000, message_id)
        await stand.pass_ms(gap)
        await line.receipt("sent", T0 + 1_000, message_id)
        held = line.held(message_id)
        assert ("delivered", {"sent": T0 + 1_000, "delivered": T0 + 2_000}) == (held["state"], held["at"])
        assert (True, "delivered") == (line.last["out_of_order"], line.last["state"])

    whole(body)


@pytest.mark.parametrize("early", [("delivered",), ("sent", "delivered"), ("read", "displayed", "delivered")])
@pytest.mark.parametrize("ahead_ms", [300, 60_000, 590_000])
def test_a03_a_receipt_before_our_record_is_joined(early: tuple[str, ...], ahead_ms: int) -> None:
    """Receipts 0.3 s to ten minutes before our own record are parked and joined: the highest counts (case A03)."""

    async def body(stand: Stand) -> None:
        line = await _line(stand, Vendor(0.1))
        for state in early:
            await line.receipt(state, stand.now)
        await stand.pass_ms(ahead_ms)
        await line.reply()
        await stand.pass_ms(1_000)
        wanted = max(early, key=("sent", "delivered", "displayed", "read").index)
        assert wanted == line.held()["state"]
        assert [] == line.person.values("delivery.receipts.dlq")

    whole(body)


def test_a03_a_receipt_of_no_send_is_an_orphan() -> None:
    """With no send record inside the parking time: a dead letter with the reason, and the counter (case A03)."""

    async def body(stand: Stand) -> None:
        line = await _line(stand, Vendor())
        await line.receipt("delivered", T0)
        await stand.pass_ms(605_000)
        (letter,) = line.person.values("delivery.receipts.dlq")
        assert ("orphan", MESSAGE) == (letter["code"], letter["record"]["message_id"])
        assert "no send record" in letter["reason"]
        metrics = stand.lock.ports.metrics
        assert isinstance(metrics, RecordedMetrics)
        assert 1 == metrics.value("interlock_receipts_orphaned_total", "demo", "web")

    whole(body)


@pytest.mark.parametrize("late", ["sent", "queued"])
@pytest.mark.parametrize("reason", ["window_closed", "45047 too many"])
def test_a05_a_delayed_sent_does_not_revive_a_failed_message(late: str, reason: str) -> None:
    """Failed stays, and why; only an explicit new attempt leaves it (case A05)."""

    async def body(stand: Stand) -> None:
        line = await _line(stand, Vendor())
        await line.reply()
        await line.receipt("failed", T0 + 3_000, reason=reason)
        await line.receipt(late, T0 + 1_000)
        await stand.pass_ms(40_000)
        assert ("failed", reason) == (line.held()["state"], line.held()["reason"])
        await line.reply(attempt=2)
        await line.receipt("delivered", stand.now, attempt=2)
        assert ("delivered", "", 2) == tuple(line.held()[name] for name in ("state", "reason", "attempt"))

    whole(body)


@pytest.mark.parametrize("order", list(permutations(("delivered", "queued", "sent", "read"))))
def test_a07_receipts_without_a_time_are_ranked(order: tuple[str, ...]) -> None:
    """No time, any order: read in the end, no time is invented, latency leaves the message out (case A07)."""

    async def body(stand: Stand) -> None:
        line = await _line(stand, Vendor())
        await line.reply()
        for state in order:
            await line.receipt(state)
        assert "read" == line.held()["state"]
        assert {None} == set(line.held()["at"].values())
        assert all(one["provider_at"] is None and one["latency_ms"] is None
                   for one in line.person.values("delivery.states"))  # fmt: skip
        metrics = stand.lock.ports.metrics
        assert isinstance(metrics, RecordedMetrics)
        assert not [key for key in metrics.observed if key[0] == "interlock_delivery_seconds"]

    whole(body)


@pytest.mark.parametrize(("reported", "missing"), [
    (("queued", "delivered"), ["sent"]), (("delivered",), ["sent"]), (("read",), ["sent", "delivered", "displayed"]),
    (("displayed", "sent"), ["delivered"]),
])  # fmt: skip
def test_a09_delivered_without_sent_is_accepted(reported: tuple[str, ...], missing: list[str]) -> None:
    """What was reported counts, what was not is said to be unseen, and no time is made up (case A09)."""

    async def body(stand: Stand) -> None:
        line = await _line(stand, Vendor())
        await line.reply()
        for number, state in enumerate(reported):
            await line.receipt(state, T0 + number)
        assert missing == line.last["unseen"]
        assert set(reported) - {"queued"} == set(line.held()["at"]) - {"queued"}
        assert not set(missing) & set(line.held()["at"])

    whole(body)


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_a13_a_lost_answer_shows_one_message(lost: int) -> None:
    """The platform took it and its answer is lost, up to four times: one visible message, and not failed (case A13)."""
    posts: list[str] = []

    async def platform(request: httpx.Request) -> httpx.Response:
        posts.append(httpx.Response(200, content=request.content).json()["message_id"])
        if len(posts) <= lost:
            await asyncio.sleep(60)
        return httpx.Response(202, json={"message_id": posts[-1]})

    async def body(stand: Stand) -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(platform)) as client:
            stand.ports(
                effects={**stand.lock.ports.effects, "send": SendHandler(client, "http://p", stand.world.clock)}
            )
            person = await stand.person("c-zh-refund", receipts="none")
            await person.say("你好", ms=40_000)
        (message_id,) = set(posts)
        assert len(posts) > lost
        states = [one["state"] for one in person.values("delivery.states")]
        assert "failed" not in states
        assert message_id == person.values("actions.outbound")[0]["message_id"]
        assert "sent" in states

    whole(body)


@pytest.mark.parametrize("gap", [0, 1, 5, 5_000])
@pytest.mark.parametrize(
    ("text", "answer"), [("我要退款，订单1001，太大了", "refund.confirm"), ("你好", "common.greeting")]
)
def test_a15_the_same_message_from_two_producers(gap: int, text: str, answer: str) -> None:
    """Produced twice, at once or seconds apart: one normalised message, one plan, one reply (cases A15, B03)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        spoken = MessageBody(kind="message", message_id="m-115", text=text)
        for event_id in ("p-115", "p-115", "other-producers-115"):
            await person.send(person.raw(event_id, spoken))
            await stand.pass_ms(gap)
        await stand.pass_ms(10_000)
        assert 1 == len(person.values("messages.normalized"))
        assert [answer] == person.heard
        assert 1 >= len({one["plan_id"] for one in person.values("plans")})
        assert 1 >= len(person.values("tools.calls"))

    whole(body)
