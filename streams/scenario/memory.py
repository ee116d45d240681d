"""The in-memory side of a scenario: the same pipeline and the real shop on a virtual clock, no socket, no Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from memory.sealing import KeyStore
from schemas.base import Model
from schemas.delivery import OutboundMessage, Receipt
from schemas.events import Body, RawEvent
from schemas.people import HumanDecision, HumanRequest
from streams.effects.send import addressed
from streams.intake import intake, staff_word
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import Clock, Effect, Fact
from streams.scenario.expect import TOPICS, Observation, Row
from streams.scenario.format import Fault, Scenario, setting_of
from streams.scenario.reports import BY, REPORTED
from streams.settings import Settings

CLIENT_MS = 150  # from arrival to each report of the client: delivered, displayed, read
REVIEW_MS = 800  # a scripted reviewer's time to answer
LOOK_MS = 50
REST_MS = 4_000  # after the last step; longer than a tool's time-out


class Inbox:
    """The channel's end: keeps what was sent for clients that are away. An effect handler for "send"."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, dict[str, OutboundMessage]] = {}
        self._open: dict[str, Callable[[OutboundMessage], None]] = {}

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler: it never fails, and a repeat is the same message (promise 6)."""
        post = addressed(effect)
        message = OutboundMessage.model_validate_json(orjson.dumps(post.request))
        self._kept.setdefault(post.conversation, {})[message.message_id] = message
        show = self._open.get(post.conversation)
        if show:
            show(message)
        receipt = Receipt(
            receipt_id=f"{message.message_id}:{message.attempt}:sent", message_id=message.message_id,
            attempt=message.attempt, state="sent", occurred_at=self._clock.now_ms(), source="sender",
        )  # fmt: skip
        return [Fact("delivery.receipts", effect.conversation, receipt.receipt_id, receipt)]

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler."""
        # The inbox is idempotent by message id, so in doubt it is simply sent again.
        return await self.run(effect)

    def open(self, conversation: str, show: Callable[[OutboundMessage], None]) -> None:
        """A client reads from now on, beginning with all that was kept."""
        self._open[conversation] = show
        for message in list(self._kept.get(conversation, {}).values()):
            show(message)

    def close(self, conversation: str) -> None:
        """The client went away."""
        self._open.pop(conversation, None)


class MemoryCustomer:
    """See `Customer`."""

    def __init__(self, scenario: Scenario, world: MemoryWorld) -> None:
        self._scenario, self._world = scenario, world
        self._who = {"shop": scenario.shop, "channel": scenario.channel, "sender": scenario.sender}
        self._unheard: list[OutboundMessage] = []
        self._seen: set[tuple[str, int]] = set()
        self._reports: set[asyncio.Task[None]] = set()

    async def send(self, event_id: str, body: Body) -> None:
        """See Customer."""
        raw = RawEvent(id=event_id, occurred_at=self._world.clock.now_ms(), body=body, **self._who)
        event = intake(raw, self._world.keys)
        await self._world.publish("channel.events", raw.conversation, event, event.event_id)

    async def open(self) -> None:
        """See Customer."""
        self._world.inbox.open(self._scenario.conversation, self._show)

    async def close(self) -> None:
        """See Customer."""
        self._world.inbox.close(self._scenario.conversation)

    async def wait(self, ms: int) -> None:
        """See Customer."""
        await self._world.interlock.advance(ms)

    async def hear(self, wanted: Callable[[OutboundMessage], bool], within_ms: int) -> OutboundMessage | None:
        """See Customer."""
        end = self._world.clock.now_ms() + within_ms
        while not any(map(wanted, self._unheard)):
            if self._world.clock.now_ms() >= end:
                return None
            await asyncio.sleep(LOOK_MS / 1000)
        found = next(filter(wanted, self._unheard))
        self._unheard.remove(found)
        return found

    async def staff(self, does: str, text: str) -> None:
        """See Customer."""
        await self._world.decide(self._scenario.conversation, {"kind": does, "text": text})

    def _show(self, message: OutboundMessage) -> None:
        if (message.message_id, message.attempt) in self._seen:
            return
        # A resend is shown once more and heard once: the script waits for messages, not for attempts.
        if message.message_id not in {known for known, _ in self._seen}:
            self._unheard.append(message)
        self._seen.add((message.message_id, message.attempt))
        report = asyncio.create_task(self._report(message))
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)

    async def _report(self, message: OutboundMessage) -> None:
        for state in REPORTED[self._scenario.receipts]:
            await asyncio.sleep(CLIENT_MS / 1000)
            receipt = Receipt(
                receipt_id=f"{message.message_id}:{message.attempt}:{state}", message_id=message.message_id,
                state=state, occurred_at=self._world.clock.now_ms(), source="client",
            )  # fmt: skip
            await self._world.publish("delivery.receipts", self._scenario.conversation, receipt, receipt.receipt_id)


class MemoryWorld:
    """See `World`. `shop` speaks to the shop's API as an HTTP client would."""

    def __init__(self, interlock: LocalInterlock, inbox: Inbox, keys: KeyStore, clock: Clock, settings: Settings,
                 shop: Any) -> None:  # fmt: skip
        self.interlock, self.inbox, self.keys, self.clock = interlock, inbox, keys, clock
        self._settings, self._shop = settings, shop
        self._rules: dict[str, str] = {}
        self._asked = asyncio.Event()  # somebody wants reviews: until then days pass without a look
        self._decided: set[str] = set()
        self._numbers = 0

    async def publish(self, topic: str, conversation: str, value: Model, record_id: str) -> None:
        """A producer's record."""
        await self.interlock.publish(topic, conversation, value, record_id)

    async def customer(self, scenario: Scenario) -> MemoryCustomer:
        """See World."""
        self.follow(scenario)
        return MemoryCustomer(scenario, self)

    def follow(self, scenario: Scenario) -> None:
        """Reviews of this conversation are answered from now on as the scenario says."""
        if scenario.approver != "none":
            self._rules[scenario.conversation] = scenario.approver
            self._asked.set()

    async def fault(self, fault: Fault) -> None:
        """See World."""
        answer = await self._shop.post("/faults", json=fault.model_dump(mode="json"))
        answer.raise_for_status()

    def deadline(self, name: str) -> int:
        """See World."""
        return int(getattr(self._settings, setting_of(name)))

    async def decide(self, conversation: str, fields: dict[str, Any]) -> None:
        """A person's word; its id counts up, so that a run is the same every time."""
        self._numbers += 1
        decision = HumanDecision(decision_id=f"dec-{self._numbers}", by=BY, decided_at=self.clock.now_ms(), **fields)
        masked = staff_word(decision, conversation, self.keys)
        await self.publish("human.decisions", conversation, masked, decision.decision_id)

    def rows(self, conversation: str, topic: str) -> list[Row]:
        """The conversation's records of a topic, decoded."""
        key = conversation.encode()
        found = self.interlock.log.records(topic, self.interlock.partition_of(conversation))
        return [orjson.loads(record.value or b"null") for record in found if record.key == key]

    async def observe(self, scenario: Scenario) -> Observation:
        """See World."""
        rest = self._settings.window_ms + self._settings.window_grace_ms if scenario.expect.health else 0
        await self.interlock.advance(REST_MS + rest)
        answer = await self._shop.get("/ledger")
        mine = [row for row in answer.json()["effects"] if row["customer_id"] == scenario.sender]
        return Observation({topic: self.rows(scenario.conversation, topic) for topic in TOPICS}, mine)

    async def review(self) -> None:
        """Answer open reviews as each conversation's scenario says, until cancelled."""
        await self._asked.wait()
        while True:
            await asyncio.sleep(REVIEW_MS / 1000)
            for conversation, rule in self._rules.items():
                for row in self.rows(conversation, "human.requests"):
                    await self._answer(conversation, rule, HumanRequest.model_validate_json(orjson.dumps(row)))

    async def _answer(self, conversation: str, rule: str, request: HumanRequest) -> None:
        if request.kind == "review" and request.status == "open" and request.request_id not in self._decided:
            self._decided.add(request.request_id)
            fields = {"kind": rule, "request_id": request.request_id, "call_hash": request.call_hash}
            await self.decide(conversation, fields)
