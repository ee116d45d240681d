"""What a new owner starts from: snapshot or checkpoint, then the committed diffs after it, to the end by position.

A gap is refused and named; emits that were not all acknowledged come back to be published again.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from memory.bus import VersionConflictError, apply, empty
from streams.runtime.checkpoint import row_of
from streams.runtime.client import consumer_config, words
from streams.runtime.crashpoints import crash
from streams.runtime.ports import PartitionLostError, Recovered
from streams.runtime.snapshotting import CheckpointImport, Loaded, LocalSnapshots
from streams.runtime.wire import DIFFS, UPDATES
from streams.settings import Settings

log = logging.getLogger("interlock.recovery")

CHUNK = 5_000
DAY_MS = 86_400_000
SILENCE_S = 30.0  # no record and no end for so long: the broker is away
ASK_S = 5.0  # one question: a recovery that was cancelled ends after this, and a stop waits for its thread


class GapError(Exception):
    """The register has a gap: the partition stops until a person looks (promise 3)."""


def recover(settings: Settings, partition: int, cancelled: Callable[[], bool],
            snapshots: LocalSnapshots | None = None) -> Recovered:  # fmt: skip
    """Rebuild a partition; blocks, for a thread. Call it after the fence: only then is the end the end.

    Raises GapError when a conversation's versions do not join, PartitionLostError when `cancelled` turns true
    or the broker goes silent.
    """
    reader = LogReader(settings, cancelled)
    try:
        recovered = rebuild(reader, partition, snapshots, settings.retention_days)
    finally:
        reader.close()
    crash("recover.done")
    return recovered


class Reads(Protocol):
    """What a rebuild needs of the log."""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The lowest offset that is still kept, and the end of what is committed."""
        ...

    def read(self, topic: str, partition: int, offset: int) -> Iterator[Message]:
        """Committed records from `offset` to the end."""
        ...


def rebuild(reader: Reads, partition: int, snapshots: LocalSnapshots | None, kept_days: int = 180) -> Recovered:
    """Base and diffs, read through `reader`; diffs are kept for `kept_days`. Raises GapError."""
    loaded, written = _base(reader, partition, snapshots)
    crash("recover.diffs")
    return _Rebuild(partition, loaded, written, snapshots, kept_days * DAY_MS).through(reader)


class LogReader:
    """Reads one topic partition of committed records from an offset to its end."""

    def __init__(self, settings: Settings, cancelled: Callable[[], bool]) -> None:
        self._consumer = Consumer(consumer_config(settings, f"{settings.group}-recovery"))
        self._cancelled = cancelled

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The lowest offset that is still kept, and the end of what is committed."""
        until = time.monotonic() + SILENCE_S
        while True:
            try:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ASK_S)
            except KafkaException as error:
                if self._cancelled() or time.monotonic() > until:
                    message = f"{topic} {partition}: {words(error.args[0])}"
                    raise PartitionLostError(message) from error
                time.sleep(0.1)
            else:
                return int(low), int(high)

    def read(self, topic: str, partition: int, offset: int) -> Iterator[Message]:
        """Records from `offset` on. The end is a position, so that markers there do no harm (cases C15, D01)."""
        # there is nothing to wait for; beyond the end the client would begin again at the start
        if offset >= self.bounds(topic, partition)[1]:
            return
        place = TopicPartition(topic, partition, offset)
        self._consumer.assign([place])
        heard, trouble = time.monotonic(), "no answer"
        try:
            while True:
                if self._cancelled():
                    message = f"{topic} {partition}: recovery was cancelled"
                    raise PartitionLostError(message)
                for item in self._consumer.consume(CHUNK, timeout=0.2):
                    error = item.error()
                    if error is None:
                        heard = time.monotonic()
                        yield item
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                        # the end of an earlier assignment may still be queued
                        if item.topic() == topic:
                            return
                    else:
                        trouble = words(error)  # the client goes on by itself, or time runs out
                if time.monotonic() - heard > SILENCE_S:
                    message = f"{topic} {partition}: nothing to read for {SILENCE_S:.0f} s: {trouble}"
                    raise PartitionLostError(message)
        finally:
            self._consumer.unassign()

    def close(self) -> None:
        """Give the connection back."""
        self._consumer.close()


def _base(reader: Reads, partition: int, snapshots: LocalSnapshots | None) -> tuple[Loaded, int]:
    """What to start from, and the diff up to which state.updates itself is whole."""
    if snapshots is not None:
        loaded = snapshots.load(partition, *reader.bounds(DIFFS, partition))
        if loaded is not None:
            return loaded, _last_mark(reader, partition)
    loaded = _checkpoint(reader, partition, snapshots)
    _joins(loaded, partition, reader.bounds(DIFFS, partition)[0])
    return loaded, -1 if loaded.mark is None else loaded.mark["diff_offset"]


def _last_mark(reader: Reads, partition: int) -> int:
    """The diff offset of the last mark on state.updates, looked for from its end; -1 when there is none."""
    first, end = reader.bounds(UPDATES, partition)
    marker, window, found = f"~mark/{partition}".encode(), 2_000, -1
    while True:
        # marks come once a second while there is work, so one is near the end; each further look is eight times longer
        start = max(first, end - window)
        for item in reader.read(UPDATES, partition, start):
            if item.key() == marker:
                found = orjson.loads(item.value() or b"")["diff_offset"]
        if found >= 0 or start == first:
            return found
        window *= 8


def _joins(loaded: Loaded, partition: int, log_start: int) -> None:
    """Raises GapError when diffs that follow the checkpoint are gone: what they changed would be lost in silence."""
    last = -1 if loaded.mark is None else loaded.mark["diff_offset"]
    # the offset after the last diff of a transaction is its marker, which may go with it; a log without a mark
    # may begin anywhere: then conversations whose diffs do not join are refused one by one
    if loaded.mark is not None and log_start > last + 2:
        message = (
            f"{DIFFS} {partition} begins at offset {log_start}, and the last mark on {UPDATES} ends at {last}:"
            f" the diffs in between are gone. Start a worker that has a snapshot of this partition, or"
            f" restore the topic"
        )
        raise GapError(message)


def _checkpoint(reader: Reads, partition: int, snapshots: LocalSnapshots | None) -> Loaded:
    """The latest state of each conversation on state.updates, and the last mark.

    States behind the last mark are newer than it says, which does no harm: diffs at or below a loaded
    version are skipped.
    """
    crash("recover.checkpoint")
    loaded, mark = Loaded(), None
    marker = f"~mark/{partition}".encode()
    file = None if snapshots is None else snapshots.begin_import(partition)
    taken = CheckpointImport(loaded, file)
    try:
        for item in reader.read(UPDATES, partition, 0):
            key, value = item.key() or b"", item.value()
            if key == marker:
                mark = None if value is None else orjson.loads(value)
            else:
                taken.add(key.decode(), value)
        if mark is not None:
            taken.finish(mark)
            return loaded
    except BaseException:
        if file is not None:
            file.abandon()
        raise
    if file is not None:
        file.abandon()
    return Loaded()  # without a mark nothing says that they are all there: the diffs are


class _Rebuild:
    """Diffs over a loaded base. States that no diff touches stay encoded."""

    def __init__(
        self, partition: int, loaded: Loaded, written: int, snapshots: LocalSnapshots | None, kept_ms: int
    ) -> None:
        self._partition = partition
        self._kept_ms = kept_ms
        self._snapshots = snapshots
        self._states = loaded.states
        self._dues = loaded.dues
        self._touched: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, None] = {}
        self._open: deque[tuple[int, Mapping[str, Any]]] = deque()
        mark = loaded.mark or {"diff_offset": -1, "handled": {}, "unsent": 0}
        self._last: int = mark["diff_offset"]
        self._handled: dict[str, int] = dict(mark["handled"])
        self._unsent: int = mark["unsent"]
        # what changed since the checkpoint is written by the next one, so those diffs are read too
        self._start = min(self._last + 1, written + 1, self._unsent)

    def through(self, reader: Reads) -> Recovered:
        """Read to the end and hand over."""
        start = max(self._start, reader.bounds(DIFFS, self._partition)[0])
        for item in reader.read(DIFFS, self._partition, start):
            self._add(item.offset() or 0, orjson.loads(item.value() or b""))
        states, dues = self._states, self._dues
        for conversation, state in self._touched.items():
            row = row_of(state, orjson.dumps(state))
            states[conversation] = row.body
            dues.pop(conversation, None)
            if row.kind == "state" and row.next_due is not None:
                dues[conversation] = row.next_due
        return Recovered(states=states, handled=self._handled, diff_offset=self._last, unsent=self._unsent,
                         resend=list(self._open), changed=list(self._changed), dues=dues)  # fmt: skip

    def _add(self, offset: int, diff: Mapping[str, Any]) -> None:
        self._last = max(self._last, offset)
        # these only grow, but the diffs of one batch carry what held when the batch was begun
        for topic, below in diff["handled"].items():
            if below > self._handled.get(topic, 0):
                self._handled[topic] = below
        self._unsent = max(self._unsent, diff["unsent"])
        # candidates only: each later diff says from where on emits were still open
        if diff["emits"]:
            self._open.append((offset, diff))
        while self._open and self._open[0][0] < self._unsent:
            self._open.popleft()
        self._apply(offset, diff)

    def _apply(self, offset: int, diff: Mapping[str, Any]) -> None:
        conversation: str = diff["conversation"]
        state = self._touched.get(conversation)
        if state is None:
            encoded = self._states.get(conversation)
            if encoded is None and self._snapshots is not None:
                encoded = self._snapshots.find(self._partition, conversation)
                if encoded is not None:
                    # a residue comes back into memory: what is in `changed` is written from there by the
                    # next checkpoint, and leaves again once both files have it
                    self._states[conversation] = encoded
            state = empty(conversation) if encoded is None else orjson.loads(encoded)
            state = self._forgotten(state, diff)
        self._changed[conversation] = None
        if diff["version"] <= state["version"]:
            return
        try:
            self._touched[conversation] = apply(state, diff)
        except VersionConflictError as error:
            message = (
                f"{DIFFS} {self._partition} offset {offset}: {conversation} goes on from version {diff['base']}"
                f" to {diff['version']}, but version {error.found} is what there is: a diff in between is missing"
            )
            raise GapError(message) from error

    def _forgotten(self, state: dict[str, Any], diff: Mapping[str, Any]) -> dict[str, Any]:
        """The state that the diff goes on from, where the conversation was forgotten, or is no more known here.

        An old file may have a residue that another owner has forgotten since: its versions began again. And of
        one that only this file had, the first diff of a new session has the whole state.
        """
        if diff["version"] == 1 and state["kind"] == "residue" and diff["now"] - state["now"] >= self._kept_ms:
            return empty(state["conversation"])
        whole = diff["whole"]
        if state["version"] == 0 and whole and whole["version"] == diff["base"]:
            return dict(whole)
        return state
