"""Two hundred customers in a closed loop: ask, read the reply, report three receipts, ask again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from schemas import cloudevents, codec
from schemas.base import Model
from schemas.delivery import Receipt
from schemas.events import ChannelEvent, MessageBody
from schemas.partition import partition_of
from schemas.topics import TOPICS
from streams.runtime.client import consumer_config, producer_config
from streams.settings import Settings

STATES: tuple[Literal["delivered", "displayed", "read"], ...] = ("delivered", "displayed", "read")


@dataclass
class Topics:
    """Where the customers of one contender live."""

    events: str = "channel.events"
    replies: str = "actions.outbound"
    receipts: str = "delivery.receipts"
    states: str = "delivery.states"


@dataclass
class Customers:
    """The load: events and receipts out, replies and states in, on real Kafka."""

    settings: Settings
    count: int
    topics: Topics = field(default_factory=Topics)
    turns: int = 0
    latencies: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Connect."""
        self._producer = Producer(producer_config(self.settings, linger_ms=1))
        self._consumer = Consumer(consumer_config(self.settings, "bench-customers"))
        watched = (self.topics.events, self.topics.replies, self.topics.states)
        numbers = range(self.settings.partitions)
        places = [TopicPartition(topic, number, 0) for topic in watched for number in numbers]
        self._consumer.assign(places)
        self._numbers = itertools.count(1)
        self._asked: dict[str, int] = {}
        self._read: set[str] = set()
        self._run = f"{time.time_ns():x}"

    def ask(self, customer: int) -> None:
        """One more question of a customer, about another order each time."""
        number = next(self._numbers)
        sender = f"bench-{self._run}-{customer}"
        text = f"Where is my order OD{100_000 + number % 900_000}?"
        event = ChannelEvent(
            id=str(number), shop="bench", channel="web", sender=sender, event_id=f"ev-{self._run}-{number}",
            body=MessageBody(kind="message", message_id=f"m-{number}", text=text),
        )  # fmt: skip
        self._send(self.topics.events, "channel.events", event.conversation, event.event_id, event)

    def _send(self, topic: str, contract: str, key: str, record_id: str, value: Model) -> None:
        headers = cloudevents.headers_for(id=record_id, type=TOPICS[contract].type, source="bench",
                                          time_ms=time.time_ns() // 1_000_000, subject=key)  # fmt: skip
        self._producer.produce(topic, codec.encode(value), key.encode(), headers=list(headers),
                               partition=partition_of(key.encode(), self.settings.partitions))  # fmt: skip

    def drive(self, seconds: float, again: Callable[[int], bool]) -> int:
        """Read for so long; `again(customer)` says whether that customer asks at once when a turn is over.

        Gives the turns so far.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self._consumer.consume(500, 0.05):
                if message.error() is None:
                    self._heard(message, again)
            self._producer.poll(0)
        return self.turns

    def _heard(self, message: Any, again: Callable[[int], bool]) -> None:
        key = message.key().decode()
        if self._run not in key:
            return
        topic, appended = message.topic(), message.timestamp()[1]
        if topic == self.topics.events:
            self._asked[key] = appended
        elif topic == self.topics.replies:
            reply = orjson.loads(message.value())
            self.latencies.append(appended - self._asked.pop(key, appended))
            for state in STATES:
                receipt_id = f"{reply['message_id']}:{state}"
                receipt = Receipt(
                    receipt_id=receipt_id, message_id=reply["message_id"], attempt=1, state=state, source="client"
                )
                self._send(self.topics.receipts, "delivery.receipts", key, receipt_id, receipt)
        elif self._first_read(orjson.loads(message.value())):
            self.turns += 1
            customer = int(key.rsplit("-", 1)[1])
            if again(customer):
                self.ask(customer)

    def _first_read(self, status: Any) -> bool:
        """Whether the reply is read now for the first time: a state is told again when a late receipt confirms it."""
        if status["state"] != "read" or status["message_id"] in self._read:
            return False
        self._read.add(status["message_id"])
        return True

    def close(self) -> None:
        """Disconnect."""
        self._producer.flush(5)
        self._consumer.close()
