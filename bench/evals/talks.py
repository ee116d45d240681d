"""Conversations through the whole system in memory, for evaluations: what was said in, what the topics hold out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.events import MessageBody, RawEvent
from streams.intake import intake
from streams.runtime.virtual import run_virtual
from streams.scenario.local import local_world
from streams.scenario.memory import MemoryWorld
from streams.settings import Settings

TURN_MS = 6_000  # virtual; longer than a tool's time-out
AT_ONCE = 200  # conversations of one world: its log is kept whole
Left = dict[str, dict[str, list[dict[str, Any]]]]  # by topic and conversation


@dataclass(frozen=True, slots=True)
class Talk:
    """A customer's messages in order; the shop is the talk's own, so that its conversation is new."""

    shop: str
    sender: str
    says: tuple[str, ...]

    @property
    def conversation(self) -> str:
        """The conversation's key."""
        return f"{self.shop}/web/{self.sender}"


def held(talks: Sequence[Talk], topics: Sequence[str]) -> Left:
    """The topics' values by conversation after all talks; nobody answers a review."""
    left: Left = {topic: {} for topic in topics}
    for start in range(0, len(talks), AT_ONCE):
        for topic, values in run_virtual(_round(talks[start : start + AT_ONCE], topics)).items():
            left[topic] |= values
    return left


async def _round(talks: Sequence[Talk], topics: Sequence[str]) -> Left:
    chosen: dict[str, Any] = {"_env_file": None, "partitions": 4}  # not those of a file that lies about
    async with local_world(Settings(**chosen)) as world:
        for turn in range(max(len(talk.says) for talk in talks)):
            for talk in talks:
                if turn < len(talk.says):
                    await _say(world, talk, turn)
            await world.interlock.advance(TURN_MS)
        return {topic: _values(world, topic) for topic in topics}


async def _say(world: MemoryWorld, talk: Talk, turn: int) -> None:
    body = MessageBody(kind="message", message_id=f"m-{turn}", text=talk.says[turn])
    raw = RawEvent(id=f"e-{turn}", occurred_at=world.clock.now_ms(), body=body, shop=talk.shop, channel="web",
                   sender=talk.sender)  # fmt: skip
    event = intake(raw, world.keys)
    await world.publish("channel.events", raw.conversation, event, event.event_id)


def _values(world: MemoryWorld, topic: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in world.interlock.log.records(topic):
        found.setdefault((record.key or b"").decode(), []).append(orjson.loads(record.value or b"null"))
    return found


def of(left: Mapping[str, Mapping[str, list[dict[str, Any]]]], topic: str, talk: Talk) -> list[dict[str, Any]]:
    """What one conversation left on a topic."""
    return left[topic].get(talk.conversation, [])
