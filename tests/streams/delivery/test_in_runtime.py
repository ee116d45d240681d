"""Perception, delivery and feedback in the real runtime, on virtual time: its deadlines, its effects, its restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from memory.sealing import MemoryKeyStore
from schemas.codec import decode
from schemas.delivery import OutboundMessage, Receipt
from schemas.events import ChannelEvent, MessageBody, RatingBody
from streams.metrics import RecordedMetrics
from streams.processors import delivery, feedback, perception
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import Effect, Fact
from streams.runtime.virtual import run_virtual, virtual_clock
from tests.streams.runtime.support import settings

SHOP, CHANNEL = "demo", "web"
WINDOW, GRACE = 300_000, 10_000


class Channel:
    """A channel that shows each message id once; `lost` answers get lost after it took the message."""

    def __init__(self, lost: int = 0) -> None:
        self.shown: list[str] = []
        self.posts: list[tuple[str, int]] = []
        self._lost = lost

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """Take it; answer, or not."""
        await asyncio.sleep(0.05)
        attempt = int(effect.request["attempt"])
        self.posts.append((effect.key, attempt))
        if effect.key not in self.shown:
            self.shown.append(effect.key)
        if len(self.posts) <= self._lost:
            await asyncio.sleep(5)
            return [self._fact(effect, attempt, "failed", reason="outcome unknown", retryable=True)]
        return [self._fact(effect, attempt, "sent")]

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """A repeat is safe."""
        return await self.run(effect)

    def _fact(self, effect: Effect, attempt: int, state: Any, **fields: Any) -> Fact:
        receipt = Receipt(receipt_id=f"{effect.id}:{state}", message_id=effect.key, attempt=attempt, state=state,
                          source="sender", **fields)  # fmt: skip
        return Fact("delivery.receipts", effect.conversation, receipt.receipt_id, receipt)


class Line(LocalInterlock):
    """The pipeline, and short ways to talk over it."""

    def __init__(self, channel: Channel) -> None:
        chosen, keys = settings(), MemoryKeyStore()
        rows = (perception.row(chosen, keys), delivery.row(chosen), feedback.row(chosen))
        super().__init__(chosen, rows, {"send": channel}, keys, virtual_clock(), RecordedMetrics())

    async def customer(self, number: int, body: Any, sender: str = "li") -> None:
        """The customer does something."""
        event = ChannelEvent(id=f"e-{number}", event_id=f"ev-{number}", shop=SHOP, channel=CHANNEL, sender=sender,
                             occurred_at=virtual_clock().now_ms(), body=body)  # fmt: skip
        await self.publish("channel.events", event.conversation, event, event.event_id)
        await self.settle()

    async def reply(self, record_id: str, message_id: str = "m-1") -> None:
        """Planning publishes a reply."""
        message = OutboundMessage(message_id=message_id, session_id="s-1", kind="reply", template_id="x.y",
                                  language="en", text="Which order?")  # fmt: skip
        await self.publish("actions.outbound", f"{SHOP}/{CHANNEL}/li", message, record_id)
        await self.settle()

    def of(self, topic: str) -> list[Any]:
        """What is on the topic, partition after partition; a recovery may have published it again, as readers know."""
        records = [record for partition in range(4) for record in self.log.records(topic, partition)]
        once = {dict(record.headers)["ce_id"]: record for record in records}
        return [decode(topic, record.value) for record in once.values()]


def _run(test: Callable[[Line, Channel], Awaitable[None]], channel: Channel | None = None) -> None:
    async def main() -> None:
        used = channel or Channel()
        line = Line(used)
        await test(line, used)
        await line.close()

    run_virtual(main())


def _hello(number: int) -> MessageBody:
    return MessageBody(kind="message", message_id=f"c-{number}", text="where is my refund")


def test_a_lost_answer_shows_one_message() -> None:
    """The channel took it, its answer got lost: repeated under the same id, shown once, and then sent (case A13)."""

    async def body(line: Line, channel: Channel) -> None:
        await line.reply("r-1")
        await line.advance(10_000)

        assert ([("m-1", 1), ("m-1", 2)], ["m-1"]) == (channel.posts, channel.shown)
        assert ["queued", "queued", "sent"] == [status.state for status in line.of("delivery.states")]

    _run(body, Channel(lost=1))


def test_two_writers_one_message() -> None:
    """The same message put on the topic twice goes to the channel once (case A15)."""

    async def body(line: Line, channel: Channel) -> None:
        await line.reply("r-1")
        await line.reply("r-2")
        await line.advance(1_000)
        assert [("m-1", 1)] == channel.posts

    _run(body)


def test_deadlines_survive_a_restart() -> None:
    """Owner lost after the send: the next one assumes at 15 s and resends at 30 s, once (R-002-30, R-002-31)."""

    async def body(line: Line, channel: Channel) -> None:
        await line.reply("r-1")
        await line.advance(5_000)
        await line.restart()
        await line.advance(30_000)

        assert [("m-1", 1), ("m-1", 2)] == channel.posts
        assert ["queued", "sent", "displayed"] == [status.state for status in line.of("delivery.states")]
        assert [2] == [message.attempt for message in line.of("actions.outbound") if message.kind == "resend"]

    _run(body)


def test_a_silent_partition_closes_its_windows() -> None:
    """Four sessions on several partitions, one event each and then silence: four scores in time (cases C01, C03)."""

    async def body(line: Line, _: Channel) -> None:
        for number, sender in enumerate(("a", "b", "c", "d")):
            await line.customer(number, _hello(number), sender)
        assert 2 <= len({line.partition_of(f"{SHOP}/{CHANNEL}/{sender}") for sender in "abcd"})
        await line.advance(WINDOW + GRACE + 5_000)

        scores = line.of("feedback.health")
        assert [(100, 0)] * 4 == [(score.score, score.revision) for score in scores]
        assert 4 == len({score.session_id for score in scores})

    _run(body)


def test_a_conversation_is_heard_from_end_to_end() -> None:
    """Message, reply and rating: latency and rating are signals, counted by shop and channel (R-002-35, R-002-40)."""

    async def body(line: Line, _: Channel) -> None:
        await line.customer(1, _hello(1))
        await line.advance(2_000)
        await line.reply("r-1")
        await line.customer(2, RatingBody(kind="rating", score=1))
        await line.advance(WINDOW + GRACE + 5_000)

        latency, rating = line.of("feedback.signals")
        assert ("reply_latency", "rating", 1.0) == (latency.kind, rating.kind, rating.value)
        assert 2_000 <= latency.value < 2_100
        metrics = line.metrics
        assert isinstance(metrics, RecordedMetrics)
        assert 1 == metrics.value("interlock_signals_total", SHOP, CHANNEL, "rating")
        assert 1 == metrics.value("interlock_messages_by_state_total", SHOP, CHANNEL, "sent")

    _run(body)
