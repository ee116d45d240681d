"""Reading topics as an investigator: assigned partitions, committed records, no group, no commit, no producer.

An end is a position, never a count: transaction markers and compacted records take offsets, too (cases C15, D01).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
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
Keep = Callable[[bytes | None, bytes | None], bool]  # key and value, before anything else is done with a record


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

    def read(self, places: Sequence[Place], until_ms: int | None = None, keep: Keep | None = None) -> Iterator[Record]:
        """Committed records from each place up to the end that it has now; only those that `keep` says yes to.

        In offset order within a partition; partitions come interleaved. A partition also ends at its first
        record appended after `until_ms`.
        """
        ...


class KafkaSource:
    """A LogSource on a cluster. Not for several threads, and one `read` at a time."""

    def __init__(self, settings: Settings, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._counts: dict[str, int] | None = None
        self._where = settings.bootstrap_servers
        # a command says once what is wrong; the client's own lines would come several a second
        self._consumer = Consumer({**consumer_config(settings, f"{settings.group}-reader"), "log_level": 0})

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
        """See LogSource. All topics are asked for once."""
        if self._counts is None:
            try:
                found = self._consumer.list_topics(timeout=self._timeout_s).topics
            except KafkaException as error:
                message = (f"no broker answers at {self._where} ({words(error.args[0])}):"
                           f" start one with `interlock up`, or set INTERLOCK_BOOTSTRAP_SERVERS")  # fmt: skip
                raise ReadError(message) from error
            self._counts = {name: len(one.partitions) for name, one in found.items() if one.error is None}
        return self._counts.get(topic, 0)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See LogSource."""
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                part = TopicPartition(topic, partition)
                low, high = self._consumer.get_watermark_offsets(part, timeout=self._timeout_s)
            except KafkaException as error:
                # a topic that was just made has no leader yet, or another one than a moment ago
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise ReadError(_said(f"{topic} {partition}", error)) from error
                time.sleep(POLL_S)
            else:
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

    def read(self, places: Sequence[Place], until_ms: int | None = None, keep: Keep | None = None) -> Iterator[Record]:
        """See LogSource. Raises ReadError when the broker goes away."""
        bounds = {place[:2]: self.bounds(*place[:2]) for place in places}
        # below the first kept offset the client would jump by its own rule, in silence
        starts = {place[:2]: max(place[2], bounds[place[:2]][0]) for place in places}
        ends = {place: bounds[place][1] for place, start in starts.items() if start < bounds[place][1]}
        if not ends:
            return
        assigned = [TopicPartition(*place, starts[place]) for place in sorted(ends)]
        self._consumer.assign(assigned)
        try:
            for item in self._messages():
                yield from self._one(item, ends, until_ms, keep)
                if not ends:
                    return
        finally:
            self._consumer.resume(assigned)  # a partition stays paused through another assignment
            self._consumer.unassign()

    def _one(
        self, item: Message, ends: dict[tuple[str, int], int], until_ms: int | None, keep: Keep | None
    ) -> Iterator[Record]:
        """The record, if it is wanted; a partition that is at its end leaves `ends`. Hot: cheap checks go first."""
        place = (item.topic() or "", item.partition() or 0)
        end = ends.get(place)
        if end is None:
            return
        offset = item.offset() or 0
        if _at_end(item) or (until_ms is not None and item.timestamp()[1] > until_ms):
            self._leave(place, ends)
            return
        if offset < end and (keep is None or keep(item.key(), item.value())):
            yield to_record(item)
        # the end is what it was when the reading began: a busy topic would never end
        if offset >= end - 1:
            self._leave(place, ends)

    def follow(self, places: Sequence[Place]) -> Iterator[Record | None]:
        """Records from each place for ever; None while there is nothing new."""
        self._consumer.assign([TopicPartition(*place) for place in places])
        try:
            while True:
                batch = self._batch()
                yield from (to_record(item) for item in batch if not _at_end(item))
                if not batch:
                    yield None
        finally:
            self._consumer.unassign()

    def _messages(self) -> Iterator[Message]:
        """Records and ends of partitions, until the caller has enough."""
        silent = 0.0
        while silent < SILENCE_S:
            batch = self._batch()
            silent = 0.0 if batch else silent + POLL_S
            yield from batch
        message = f"the broker says nothing for {SILENCE_S:.0f} s"
        raise ReadError(message)

    def _batch(self) -> list[Message]:
        """What is there, as soon as anything is: `consume` alone waits until it has as many as it may return."""
        first = self._consumer.poll(POLL_S)
        return [] if first is None else [first, *self._consumer.consume(CHUNK, timeout=0)]

    def _leave(self, place: tuple[str, int], ends: dict[tuple[str, int], int]) -> None:
        del ends[place]
        self._consumer.pause([TopicPartition(*place)])


def _at_end(item: Message) -> bool:
    """Whether it says that the partition's end was reached, or something passing. Raises ReadError for a real error."""
    error = item.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (the library's public constant)
        return True
    if error.retriable():
        return False
    message = f"{item.topic()} {item.partition()}: {words(error)}"
    raise ReadError(message)


def to_record(item: Message) -> Record:
    """A client's message as a record; `time` is the append time in milliseconds."""
    return Record(
        item.topic() or "", item.partition() or 0, item.offset() or 0, item.timestamp()[1],
        item.key(), item.value(), headers_of(item),
    )  # fmt: skip


def _said(what: str, error: KafkaException) -> str:
    return f"{what}: {words(error.args[0])}"
