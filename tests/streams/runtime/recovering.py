"""What recovery reads in tests: the log in memory."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import Message

from streams.runtime import wire
from streams.runtime.local import LocalLog


class Reader:
    """What recovery needs of a reader, on the log in memory; diffs below `kept` are gone."""

    def __init__(self, log: LocalLog, kept: int = 0) -> None:
        self._log, self._kept = log, kept

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Only state.diffs has a past that is gone."""
        return self._kept if topic == wire.DIFFS else 0, self._log.end(topic, partition)

    def read(self, topic: str, partition: int, offset: int) -> Iterator[Message]:
        """From the offset to the end."""
        for record in self._log.records(topic, partition)[offset:]:
            yield Message(topic=topic, partition=partition, offset=record.offset, key=record.key, value=record.value)
