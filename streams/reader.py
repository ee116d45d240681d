"""Reading topics as an investigator: assigned partitions, committed records, no group, no commit, no producer.

An end is a position, never a count: transaction markers and compacted records take offsets, too (cases C15, D01).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from schemas.errors import InterlockError
from streams.runtime.client import consumer_config, headers_of, words
from streams.runtime.ports import Record
from streams.settings import Settings

TIMEOUT_S = 15.0  # one question to the broker
SILENCE_S = 30.0  # neither a record nor an end for so long: the broker is away
POLL_S = 0.2
CHUNK = 2_000
Place = tuple[str, int, int]  # topic, partition, offset to begin at


class ReadError(InterlockError):
    """A topic can't be read: the message names topic, partition and what the broker said."""


class LogSource(Protocol):
    """What replay, trace and the other readers are handed: Kafka, or the in-memory log."""

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has; 0 when there is no such topic."""
        ...

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset that is kept, and the end."""
        ...

    def at_time(self, topic: str, partition: int, time_ms: int) -> int:
        """The first offset appended at or after the time; the end when there is none."""
        ...

    def read(self, places: Sequence[Place], until_ms: int | None = None) -> Iterator[Record]:
        """Committed records from each place up to the end that it has now.

        In offset order within a partition; partitions come interleaved. A partition also ends at its first
        record appended after `until_ms`.
        """
        ...


class KafkaSource:
    """A LogSource on a cluster. Not for several threads, and one `read` at a time."""

    def __init__(self, settings: Settings, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._consumer = Consumer(consumer_config(settings, f"{settings.group}-reader"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self._consumer.close()

    def partitions(self, topic: str) -> int:
        """See LogSource."""
        try:
            found = self._consumer.list_topics(topic, timeout=self._timeout_s).topics[topic]
        except KafkaException as error:
            raise ReadError(_said(topic, error)) from error
        return 0 if found.error is not None else len(found.partitions)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See LogSource."""
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=self._timeout_s)
        except KafkaException as error:
            raise ReadError(_said(f"{topic} {partition}", error)) from error
        return int(low), int(high)

    def at_time(self, topic: str, partition: int, time_ms: int) -> int:
        """See LogSource."""
        try:
            found = self._consumer.offsets_for_times(
                [TopicPartition(topic, partition, time_ms)], timeout=self._timeout_s
            )
        except KafkaException as error:
            raise ReadError(_said(f"{topic} {partition}", error)) from error
        offset = found[0].offset
        return int(offset) if offset >= 0 else self.bounds(topic, partition)[1]

    def read(self, places: Sequence[Place], until_ms: int | None = None) -> Iterator[Record]:
        """See LogSource. Raises ReadError when the broker goes away."""
        ends = {(topic, partition): self.bounds(topic, partition) for topic, partition, _ in places}
        starts = {place[:2]: max(place[2], ends[place[:2]][0]) for place in places}
        waiting = {place for place, start in starts.items() if start < ends[place][1]}
        if not waiting:
            return
        places_now = [TopicPartition(*place, starts[place]) for place in sorted(waiting)]
        self._consumer.assign(places_now)
        try:
            for topic, partition, record in self._events():
                place = (topic, partition)
                if place not in waiting:
                    continue
                late = record is None or (until_ms is not None and record.time > until_ms)
                if record is not None and not late and record.offset < ends[place][1]:
                    yield record
                if late or (record is not None and record.offset >= ends[place][1] - 1):
                    self._leave(place, waiting)
                    if not waiting:
                        return
        finally:
            self._consumer.resume(places_now)  # a partition stays paused through another assignment
            self._consumer.unassign()

    def follow(self, places: Sequence[Place]) -> Iterator[Record | None]:
        """Records from each place for ever; None while there is nothing new."""
        self._consumer.assign([TopicPartition(*place) for place in places])
        try:
            while True:
                batch = self._batch()
                yield from (record for item in batch for _, _, record in self._said(item) if record is not None)
                if not batch:
                    yield None
        finally:
            self._consumer.unassign()

    def _events(self) -> Iterator[tuple[str, int, Record | None]]:
        """Records, and None for a partition's end, until the caller has enough."""
        silent = 0.0
        while silent < SILENCE_S:
            batch = self._batch()
            silent = 0.0 if batch else silent + POLL_S
            for item in batch:
                yield from self._said(item)
        message = f"the broker says nothing for {SILENCE_S:.0f} s"
        raise ReadError(message)

    def _batch(self) -> list[Message]:
        """What is there, as soon as anything is: `consume` alone waits until it has as many as it may return."""
        first = self._consumer.poll(POLL_S)
        return [] if first is None else [first, *self._consumer.consume(CHUNK, timeout=0)]

    @staticmethod
    def _said(item: Message) -> Iterable[tuple[str, int, Record | None]]:
        error = item.error()
        topic, partition = item.topic() or "", item.partition() or 0
        if error is None:
            yield topic, partition, to_record(item)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (the library's public constant)
            yield topic, partition, None
        elif not error.retriable():
            message = f"{topic} {partition}: {words(error)}"
            raise ReadError(message)

    def _leave(self, place: tuple[str, int], waiting: set[tuple[str, int]]) -> None:
        waiting.discard(place)
        self._consumer.pause([TopicPartition(*place)])


def to_record(item: Message) -> Record:
    """A client's message as a record; `time` is the append time in milliseconds."""
    return Record(
        item.topic() or "", item.partition() or 0, item.offset() or 0, item.timestamp()[1],
        item.key(), item.value(), headers_of(item),
    )  # fmt: skip


def _said(what: str, error: KafkaException) -> str:
    return f"{what}: {words(error.args[0])}"
