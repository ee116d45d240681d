"""Recorded conversations for the read side's tests: scripted customers through the real pipeline, in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import orjson

from memory.sealing import KeyStore
from schemas.events import RawEvent
from schemas.topics import TOPICS
from streams.demo.run import SCENARIOS, SHORT
from streams.intake import intake
from streams.replay.local import LocalSource
from streams.runtime.ports import Outgoing, Record
from streams.runtime.virtual import run_virtual
from streams.runtime.wire import lane_of
from streams.scenario.format import load
from streams.scenario.local import local_world
from streams.scenario.memory import MemoryWorld
from streams.scenario.player import play
from streams.settings import Settings

SETTINGS = Settings().model_copy(update=SHORT)
REFUND = "demo/web/c-zh-refund"
REFUND_FILE = "zh-refund-with-order"
LANES = lane_of  # which conversation a record is decided in


@dataclass(frozen=True, slots=True)
class Recorded:
    """The log that a pipeline left behind, and the keys of its seals."""

    records: tuple[Record, ...]
    keys: KeyStore

    @property
    def source(self) -> LocalSource:
        """The log as the read side is handed it."""
        return LocalSource(self.records, SETTINGS.partitions)

    def of(self, topic: str, key: str | None = None) -> list[Record]:
        """A topic's records, of one key if given."""
        wanted = None if key is None else key.encode()
        return [record for record in self.records if record.topic == topic and wanted in (None, record.key)]

    def values(self, topic: str, key: str | None = None) -> list[dict[str, Any]]:
        """The same as plain JSON."""
        return [orjson.loads(record.value or b"") for record in self.of(topic, key)]

    def only(self, keep: Callable[[Record], bool]) -> Recorded:
        """The log without what retention or compaction took away."""
        return replace(self, records=tuple(record for record in self.records if keep(record)))

    def sessions(self, conversation: str) -> list[str]:
        """The conversation's sessions, in order."""
        return list(dict.fromkeys(diff["session_id"] for diff in self.values("state.diffs", conversation)))


def record(body: Callable[[MemoryWorld], Awaitable[None]]) -> Recorded:
    """Let something happen in a whole system in memory, and keep its log."""

    async def run() -> Recorded:
        async with local_world(SETTINGS) as world:
            await body(world)
            await world.interlock.advance(SETTINGS.window_ms + 5_000)
            log = world.interlock.log
            return Recorded(tuple(item for topic in TOPICS for item in log.records(topic)), world.keys)

    return run_virtual(run())


async def customer(world: MemoryWorld, name: str, **changes: Any) -> None:
    """Play a scenario file of the demo."""
    await play(load(SCENARIOS / f"{name}.yaml").model_copy(update=changes), world)


async def send(world: MemoryWorld, raw: RawEvent) -> None:
    """One event through intake."""
    event = intake(raw, world.keys)
    await world.publish("channel.events", raw.conversation, event, event.event_id)
    await world.interlock.settle()


def append(world: MemoryWorld, topic: str, key: bytes | None, value: bytes | None, partition: int) -> None:
    """A record as any producer may write it."""
    world.interlock.log.append(Outgoing(topic, partition, key, value, ()))


def message(number: int, text: str, sender: str = "c-zh-refund") -> RawEvent:
    """A customer's message; the number is the producer's id."""
    body = {"kind": "message", "message_id": f"m-{number}", "text": text}
    return RawEvent.model_validate(
        {"id": f"p-{number}", "shop": "demo", "channel": "web", "sender": sender, "body": body}
    )


@cache
def refund() -> Recorded:
    """A Chinese refund with its review, and another customer beside it."""

    async def body(world: MemoryWorld) -> None:
        await customer(world, "en-lost-response")
        await customer(world, REFUND_FILE)

    return record(body)


@cache
def two_sessions() -> Recorded:
    """The same customer comes back after 31 minutes with something else."""

    async def body(world: MemoryWorld) -> None:
        await customer(world, REFUND_FILE)
        await world.interlock.advance(31 * 60_000)
        await send(world, message(1, "帮我转人工"))

    return record(body)


def shifted(records: Iterator[Record] | list[Record], by: Callable[[Record], int]) -> list[Record]:
    """The records with other append times, as a broker with a wrong clock gives them."""
    return [replace(one, time=one.time + by(one)) for one in records]
