"""A whole system in memory: people who write, the real processor table, the real shop, one virtual clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from schemas.events import Body, ChannelEvent, EditBody, MessageBody, RawEvent, RecallBody
from schemas.topics import TOPICS
from streams.intake import intake
from streams.runtime.ports import Record
from streams.runtime.table import Row
from streams.runtime.virtual import run_virtual
from streams.scenario.format import Scenario, Wait
from streams.scenario.local import local_world
from streams.scenario.memory import MemoryCustomer, MemoryWorld
from streams.settings import Settings

TURN_MS = 4_000  # longer than a tool's time-out and a scripted review together
DIFFS = "state.diffs"


class Person:
    """One customer at their client."""

    def __init__(self, stand: Stand, scenario: Scenario) -> None:
        self.stand, self.scenario, self.conversation = stand, scenario, scenario.conversation
        self.client = MemoryCustomer(scenario, stand.world)
        self._count = 0

    def raw(self, event_id: str, body: Body, **more: Any) -> RawEvent:
        """An event as the channel gets it."""
        who = {name: getattr(self.scenario, name) for name in ("shop", "channel", "sender")}
        return RawEvent(id=event_id, body=body, **{"occurred_at": self.stand.now, **who, **more})

    async def send(self, raw: RawEvent) -> ChannelEvent:
        """Through intake onto the topic, with nothing waited for."""
        event = intake(raw, self.stand.world.keys)
        await self.stand.world.publish("channel.events", raw.conversation, event, event.event_id)
        return event

    async def write(self, text: str, message_id: str = "") -> str:
        """Write a message and wait for nothing; the message's id."""
        self._count += 1
        message_id = message_id or f"m-{self._count}"
        await self.send(self.raw(f"e-{self._count}", MessageBody(kind="message", message_id=message_id, text=text)))
        return message_id

    async def say(self, text: str, *, message_id: str = "", ms: int = TURN_MS) -> str:
        """Write a message and let time pass; the message's id."""
        message_id = await self.write(text, message_id)
        await self.stand.pass_ms(ms)
        return message_id

    async def recall(self, message_id: str, ms: int = TURN_MS) -> None:
        """Take a message back."""
        await self.send(self.raw(f"recall-{message_id}", RecallBody(kind="recall", message_id=message_id)))
        await self.stand.pass_ms(ms)

    async def edit(self, message_id: str, text: str, ms: int = TURN_MS) -> None:
        """Change a message."""
        body = EditBody(kind="edit", message_id=message_id, text=text)
        await self.send(self.raw(f"edit-{message_id}-{len(text)}", body))
        await self.stand.pass_ms(ms)

    @property
    def state(self) -> dict[str, Any]:
        """The committed state."""
        return dict(self.stand.lock.state(self.conversation) or {})

    def values(self, topic: str) -> list[dict[str, Any]]:
        """This conversation's values on a topic, in order, each once."""
        return self.stand.values(topic, self.conversation)

    @property
    def heard(self) -> list[str]:
        """The templates of the messages that were sent to this customer."""
        return [one["template_id"] for one in self.values("actions.outbound") if one["kind"] != "resend"]

    async def ledger(self) -> list[dict[str, Any]]:
        """What the shop did for this customer."""
        answer = await self.stand.world._shop.get("/ledger")
        return [row for row in answer.json()["effects"] if row["customer_id"] == self.scenario.sender]


class Stand:
    """The system, and what it left behind."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world, self.lock = world, world.interlock

    @property
    def now(self) -> int:
        """The virtual time, UTC milliseconds."""
        return self.world.clock.now_ms()

    async def pass_ms(self, ms: int) -> None:
        """Let virtual time pass."""
        await self.lock.advance(ms)

    async def person(
        self,
        sender: str,
        *,
        approver: str = "approve",
        receipts: str = "read",
        channel: str = "web",
        shop: str = "demo",
    ) -> Person:
        """A customer whose reviews get that answer and whose client reports so far."""
        scenario = Scenario.model_validate({
            "name": "stand", "title": "stand", "language": "zh", "sender": sender, "approver": approver,
            "channel": channel, "shop": shop,
            "receipts": receipts, "steps": (Wait(kind="wait"),), "expect": {"outcome": "open"},
        })  # fmt: skip
        self.world.follow(scenario)
        person = Person(self, scenario)
        await person.client.open()
        return person

    def ports(self, **changed: Any) -> None:
        """Other ends for the partitions that open from now on."""
        self.lock.ports = replace(self.lock.ports, **changed)

    def table(self, rows: Sequence[Row]) -> None:
        """Another processor table for the partitions that open from now on."""
        self.lock._rows = rows

    def records(self, topic: str, conversation: str | None = None) -> list[Record]:
        """The topic's records; one that a recovery published again counts once, as its readers count it."""
        once: dict[Any, Record] = {}
        for record in self.lock.log.records(topic):
            if conversation is None or record.key == conversation.encode():
                once.setdefault(dict(record.headers).get("ce_id") or record.offset, record)
        return list(once.values())

    def values(self, topic: str, conversation: str | None = None) -> list[dict[str, Any]]:
        """The same as plain JSON, without what is no record of ours (rubbish that a test put there has no headers)."""
        found = (record for record in self.records(topic, conversation) if record.headers)
        return [orjson.loads(record.value or b"null") for record in found]

    def everything(self) -> list[Record]:
        """Every record of every topic."""
        return [record for topic in TOPICS for record in self.lock.log.records(topic)]


def isolated(**values: Any) -> Settings:
    """Settings of these values alone, whatever files lie about."""
    chosen: dict[str, Any] = {"_env_file": None, **values}
    return Settings(**chosen)


def whole(body: Callable[[Stand], Awaitable[None]], **values: Any) -> None:
    """Run a test's body on a fresh system; what closed a partition fails the test."""

    async def main() -> None:
        async with local_world(isolated(**{"partitions": 4, **values})) as world:
            await body(Stand(world))

    run_virtual(main())
