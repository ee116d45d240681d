"""The in-memory twin of `streams.reader`: a LogSource over a LocalLog, or any list of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from schemas.topics import TOPICS
from streams.reader import Keep, Place
from streams.runtime.ports import Record


class LocalSource:
    """A LogSource over records in memory, of topics with `count` partitions."""

    def __init__(self, records: Iterable[Record], count: int) -> None:
        self._count = count
        self._parts: dict[tuple[str, int], list[Record]] = {}
        for record in records:
            self._parts.setdefault((record.topic, record.partition), []).append(record)

    def partitions(self, topic: str) -> int:
        """See LogSource."""
        return self._count if topic in TOPICS else 0

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See LogSource."""
        part = self._parts.get((topic, partition))
        return (part[0].offset, part[-1].offset + 1) if part else (0, 0)

    def at_time(self, topic: str, partition: int, time_ms: int) -> int:
        """See LogSource."""
        part = self._parts.get((topic, partition), [])
        found = (record.offset for record in part if record.time >= time_ms)
        return next(found, self.bounds(topic, partition)[1])

    def read(self, places: Sequence[Place], until_ms: int | None = None, keep: Keep | None = None) -> Iterator[Record]:
        """See LogSource."""
        for topic, partition, start in places:
            for record in self._parts.get((topic, partition), []):
                if until_ms is not None and record.time > until_ms:
                    break
                if record.offset >= start and (keep is None or keep(record.key, record.value)):
                    yield record
