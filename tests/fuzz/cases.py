"""One record of a fuzz run, what must become of it, and valid ones made from the published examples."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from schemas import cloudevents
from schemas.partition import partition_of, system_conversation
from schemas.published import examples
from schemas.topics import RAW_TOPIC, TOPICS
from streams.runtime.ports import Headers

NOW_MS = 1_767_578_400_000  # of the examples; the broker stamps the records itself
SHOP = "fuzz"


class Expect(StrEnum):
    """What must become of a record."""

    HANDLED = "handled"  # a diff that is no dead letter
    DEAD = "dead"  # a dead letter, byte for byte
    EITHER = "either"  # one of the two: whether it is valid is not known here
    NULL = "null"  # a Kafka null: a diff with rule runtime.null
    DUPLICATE = "duplicate"  # the id came before: a diff with rule runtime.duplicate
    REPEATED = "repeated"  # an emit's position not above the last one: dropped, and counted
    AHEAD = "ahead"  # an emit whose predecessor never came: set aside, and counted


NO_DIFF = frozenset({Expect.REPEATED, Expect.AHEAD})


@dataclass(frozen=True, slots=True)
class Case:
    """A record to send; `codes` are the reasons that a dead letter may give (none: any)."""

    kind: str
    expect: Expect
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    codes: frozenset[str] = frozenset()

    def dead(self, kind: str, *codes: str, **changes: Any) -> Case:
        """The same record with changes that make it bad."""
        return replace(self, kind=kind, expect=Expect.DEAD, codes=frozenset(codes), **changes)

    def but(self, kind: str, expect: Expect, **changes: Any) -> Case:
        """The same record with changes, and another expectation."""
        return replace(self, kind=kind, expect=expect, codes=frozenset(), **changes)

    def header(self, name: str, value: bytes | None) -> Headers:
        """The headers with this one set."""
        return (*self.without(name), (name, value))

    def without(self, name: str) -> Headers:
        """The headers without this one."""
        return tuple(header for header in self.headers if header[0] != name)


# Where a topic's ids stand: each valid record gets its own, so that no two say the same.
_IDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    RAW_TOPIC: (("id",), ("body", "message_id")),
    "channel.events": (("id",), ("event_id",), ("body", "message_id")),
    "messages.normalized": (("ref", "message_id"), ("ref", "event_id")),
    "tools.calls": (("call_id",), ("idempotency_key",)),
    "tools.results": (("result_id",), ("call_id",)),
    "actions.outbound": (("message_id",),),
    "delivery.receipts": (("receipt_id",), ("message_id",)),
    "human.decisions": (("decision_id",),),
    "timers.fired": (("timer_id",),),
    "system.events": (("event_id",),),
}


class Maker:
    """Makes the records of one topic from a seed; everything that it makes is unique."""

    def __init__(self, topic: str, seed: str, partitions: int, conversations: int = 40) -> None:
        self.topic = TOPICS[topic]
        self.name = topic
        self.rng = random.Random(f"{seed}|{topic}")
        self.partitions = partitions
        self._tag = f"{seed}-{topic}"
        self._count = 0
        self._examples = [orjson.loads(text) for text in examples(self.topic, self.topic.version).values()]
        self._pools = _pools(partitions, conversations)

    def fresh(self) -> str:
        """An id that was not there before."""
        self._count += 1
        return f"fz-{self._tag}-{self._count}"

    def key(self, partition: int) -> str:
        """A conversation of the partition; of system.events the partition's own."""
        if self.name == "system.events":
            return system_conversation(partition)
        return self.rng.choice(self._pools[partition])

    def data(self, conversation: str) -> dict[str, Any]:
        """A valid value for the conversation, as plain data."""
        value: dict[str, Any] = orjson.loads(orjson.dumps(self.rng.choice(self._examples)))
        for path in _IDS[self.name]:
            place = value
            for part in path[:-1]:
                place = place[part]
            if place.get(path[-1]) is not None:
                place[path[-1]] = self.fresh()
        if self.name in (RAW_TOPIC, "channel.events"):
            value["shop"], value["channel"], value["sender"] = conversation.split("/")
        return value

    def valid(self, partition: int, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Case:
        """A record that must be handled; `change` may alter its value and keep it valid."""
        conversation = self.key(partition)
        value = self.data(conversation)
        change(value)
        headers = cloudevents.headers_for(
            id=self.fresh(), type=self.topic.type, source="fuzz", time_ms=NOW_MS, subject=conversation,
            traceparent=cloudevents.root(self._tag),
        )  # fmt: skip
        return Case("valid", Expect.HANDLED, self.name, partition, conversation.encode(), orjson.dumps(value), headers)


def _pools(partitions: int, conversations: int) -> list[list[str]]:
    """Conversation ids by the partition that murmur2 gives them, the same number for each."""
    pools: list[list[str]] = [[] for _ in range(partitions)]
    number = 0
    while min(map(len, pools)) < conversations:
        conversation = f"{SHOP}/web/c-{number}"
        pool = pools[partition_of(conversation.encode(), partitions)]
        if len(pool) < conversations:
            pool.append(conversation)
        number += 1
    return pools
