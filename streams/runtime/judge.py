"""One record and the state it meets: decided, a dead letter, or nothing to decide. Also the ports of a partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import orjson

from memory.sealing import KeyStore
from schemas.base import Model
from schemas.errors import BadRecordError
from schemas.step import Input, State
from schemas.topics import TOPICS
from streams.metrics import MetricName, MetricsPort, RecordedMetrics
from streams.runtime import wire
from streams.runtime.checkpoint import SnapshotPort
from streams.runtime.deadletters import DeadLetterLimit, dead_letter, pause
from streams.runtime.decide import AHEAD, REDELIVERED, REPEAT, Decided, StepFailedError, by_topic, decide, standing
from streams.runtime.lanes import PauseRequest
from streams.runtime.ports import Clock, CommitPort, EffectHandler, OffsetsPort, Record, SendPort
from streams.runtime.table import Row


@dataclass(frozen=True, slots=True)
class Ports:
    """The ends that one partition is given.

    `residue` finds a closed conversation's last state on disk; `open_seal` opens an input's seal for rows
    that may; `answer` answers what a step `needs`, at once and from local data alone; `turns` is entered
    for a batch and its commit.
    """

    commit: CommitPort
    send: SendPort
    offsets: OffsetsPort
    clock: Clock
    keys: KeyStore
    effects: Mapping[str, EffectHandler]
    residue: Callable[[str], bytes | None] = lambda _: None
    snapshots: SnapshotPort | None = None
    metrics: MetricsPort = field(default_factory=RecordedMetrics)
    open_seal: Callable[[Input], Any] = lambda _: None
    answer: Callable[[str, Any], Any] = lambda _, __: None
    turns: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


_DROPPED: Mapping[str, MetricName] = {
    AHEAD: "interlock_emits_set_aside_total",
    REPEAT: "interlock_duplicates_dropped_total",
    REDELIVERED: "interlock_redelivered_total",
}
LARGE = 900_000  # bytes of a diff above which it and its emits are measured against their topics' limits


class Judge:
    """Turns records into decisions, in the order that the lanes give them."""

    def __init__(self, rows: Sequence[Row], ports: Ports, dlq_limit: int, over_limit: Callable[[Record], None]) -> None:
        self._rows = by_topic(rows)
        self._ports = ports
        self._dlq_limit = dlq_limit
        self._limit = DeadLetterLimit(dlq_limit)
        self._over_limit = over_limit

    def read(self, record: Record) -> None:
        """A record was read, in offset order: the dead-letter limit counts in this order."""
        self._limit.read(record)

    def decide(self, state: State, record: Record) -> Decided | None:
        """The decision, or None for a record that must not be decided (a repeat, or one that came too early)."""
        if isinstance(record, PauseRequest):
            return pause(state, record, self._dlq_limit)
        decided, bad = self._judged(state, record)
        # a repeat says nothing of its producer: it neither counts nor ends a row
        over = self._limit.decided(record, bad=bad if decided is not None else None)
        if over is not None:
            self._over_limit(over)
        return decided

    def _judged(self, state: State, record: Record) -> tuple[Decided | None, bool]:
        """The decision, and whether it is a dead letter."""
        cause = None
        try:
            cause = wire.read(record, state["conversation"])
            stands = standing(state, cause)
            if stands is None:
                return self._measured(state, cause), False
        except BadRecordError as error:
            return self._dead(state, record, error), True
        # our bug, on this record alone: the conversation goes on with the next one, and the letter can be redriven
        except StepFailedError as failed:
            bug = BadRecordError(str(failed), topic=record.topic, code="step_failed")
            return self._dead(state, record, bug, None if cause is None else cause.value), True
        self._dropped(record, stands)
        return None, False

    def _measured(self, state: State, cause: Input) -> Decided:
        rows, started = self._rows.get(cause.topic, ()), perf_counter()
        decided = decide(rows, state, self._prepared(rows, state, cause))
        self._ports.metrics.observe("interlock_decide_seconds", perf_counter() - started, topic=cause.topic)
        return decided

    def fitting(self, state: State, record: Record, decided: Decided, encoded: bytes) -> Decided:
        """The decision, or a dead letter in its place when the diff or an emit is larger than its topic takes.

        Found before the commit: afterwards the emit could never be sent, and the partition never go on.
        """
        # the diff holds its emits: below the smallest limit nothing in it can be too large
        if len(encoded) < LARGE:
            return decided
        sizes = [(emit["topic"], len(orjson.dumps(emit["data"]))) for emit in decided.diff["emits"]]
        for topic, size in [(wire.DIFFS, len(encoded)), *sizes]:
            limit = TOPICS[topic].max_bytes
            if size > limit:
                reason = f"the decision on it needs {size} bytes on {topic}, which takes {limit}"
                error = BadRecordError(reason, topic=record.topic, code="too_large")
                return self._dead(state, record, error) or decided
        return decided

    def _dropped(self, record: Record, stands: str) -> None:
        """Nothing is decided, but it is counted: nothing is lost in silence (promise 10)."""
        self._ports.metrics.count(_DROPPED[stands], topic=record.topic)

    def again(self, topic: str) -> None:
        """A paused topic goes on: its dead letters in a row count from 0."""
        self._limit.again(topic)

    def _prepared(self, rows: Sequence[Row], state: State, cause: Input) -> Input:
        """The input with its seal opened and its needs answered, where a row asks for that."""
        gathered: dict[str, Any] = {}
        for row in rows:
            if row.needs is not None:
                gathered |= {name: self._ports.answer(name, query) for name, query in row.needs(state, cause).items()}
        # opened only where a row may: the clear text must not pass through steps that have no need of it
        clear = self._ports.open_seal(cause) if any(row.opens_seal for row in rows) else None
        if not gathered and clear is None:
            return cause
        return Input(
            cause.topic,
            cause.partition,
            cause.offset,
            cause.time,
            cause.key,
            cause.id,
            cause.type,
            cause.value,
            cause.trace,
            cause.position,
            cause.previous,
            clear,
            gathered,
        )

    def _dead(self, state: State, record: Record, error: BadRecordError, value: Model | None = None) -> Decided | None:
        stands = standing(state, wire.bare(record, state["conversation"]))
        if stands in (REPEAT, REDELIVERED):
            self._dropped(record, stands)
            return None
        return dead_letter(self._ports.keys, state, record, error, value)
