"""Reads the observed topics of a running system from now on, on a thread of its own, sorted by conversation."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Self

import orjson
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from streams.runtime.client import consumer_config
from streams.scenario.expect import TOPICS, Row
from streams.settings import Settings

log = logging.getLogger(__name__)

POLL_S = 0.1
METADATA_S = 10


class TopicTail:
    """What the pipeline wrote since `start`; takes no part in any group and commits nothing."""

    def __init__(self, settings: Settings, topics: Sequence[str] = TOPICS) -> None:
        self._consumer = Consumer(consumer_config(settings, f"{settings.group}-scenarios"))
        self._topics = topics
        self._rows: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        self._counts: dict[str, int] = defaultdict(int)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topic-tail", daemon=True)

    def __enter__(self) -> Self:
        """Stand at the ends of all topics. Raises KafkaException when the broker does not answer."""
        self._consumer.assign(self._ends())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join(timeout=METADATA_S)
        self._consumer.close()

    def _ends(self) -> list[TopicPartition]:
        places = []
        for topic in self._topics:
            found = self._consumer.list_topics(topic, METADATA_S).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)
            for number in found.partitions:
                _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, number), METADATA_S)
                places.append(TopicPartition(topic, number, end))
        return places

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                self._take(message)

    def _take(self, message: Message) -> None:
        key, value, topic = message.key(), message.value(), message.topic()
        if key is None or value is None or topic is None:
            return
        conversation = key if isinstance(key, str) else key.decode(errors="replace")
        row: Any = orjson.loads(value)
        self._rows[conversation][topic].append(row)
        self._counts[conversation] += 1

    def of(self, conversation: str) -> dict[str, list[Row]]:
        """The conversation's records so far, by topic, in the order of their partition."""
        return {topic: list(rows) for topic, rows in self._rows[conversation].items()}

    def count(self, conversation: str) -> int:
        """How many records so far: unchanged means quiet."""
        return self._counts[conversation]
