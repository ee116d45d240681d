"""From the records of a conversation to the chain of what followed from what: pure, for replay and trace.

A step never comes before its cause, and records of one topic partition keep their offset order, whatever
their times say (case D05). The diff is the commit, so it links a decision's cause to all that it emitted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from schemas.tools import READINGS
from schemas.topics import INPUT_TOPICS
from streams.runtime.ports import Record
from streams.runtime.wire import DIFFS, UPDATES

REDRIVE_HEADER = "interlock-redrive-of"  # `topic:partition:offset` of the dead letter that a record came back from
CHAIN_TOPICS = (
    "channel.events", DIFFS, "messages.normalized", "plans", "tools.calls", "tools.results", "human.requests",
    "human.decisions", "actions.outbound", "delivery.receipts", "delivery.states", "timers.fired", "memory.writes",
    "feedback.signals", "feedback.health", "system.events", *(f"{topic}.dlq" for topic in INPUT_TOPICS),
)  # fmt: skip
_RANK = {topic: rank for rank, topic in enumerate(CHAIN_TOPICS)}
Coordinates = tuple[str, int, int]  # topic, partition, offset


@dataclass(slots=True)
class Step:
    """One record of the chain. `value` is its plain JSON, or None when it can't be read."""

    topic: str
    partition: int
    offset: int
    time: int
    key: str
    id: str
    value: Mapping[str, Any] | None
    position: tuple[str, int, int] | None = None
    redrive_of: str | None = None
    repeat_of: int | None = None  # the offset of the same record before: published again by a recovery, or sent twice
    causes: list[Coordinates] = field(default_factory=list)

    @property
    def at(self) -> Coordinates:
        """Where it stands."""
        return self.topic, self.partition, self.offset

    def get(self, name: str) -> Any:
        """A field of the value."""
        return None if self.value is None else self.value.get(name)


def build_chain(records: Iterable[Record], session: str | None = None) -> list[Step]:
    """The steps in cause order; with a session id only those that belong to it.

    Records of state.updates are left out: they repeat what the diffs say.
    """
    # By place: two stretches may overlap, and a record is one step however often it was read.
    placed = {(record.topic, record.partition, record.offset): record for record in records if record.topic != UPDATES}
    steps = [step_of(record) for _, record in sorted(placed.items())]
    _mark_repeats(steps)
    _link(steps)
    return _ordered(steps if session is None else _of_session(steps, session))


def effects_of(chain: Sequence[Step], origin: Step) -> list[Step]:
    """What followed from a step, in the chain's order."""
    reached = {origin.at}
    followed = []
    for step in chain:
        if step.at not in reached and any(cause in reached for cause in step.causes):
            reached.add(step.at)
            followed.append(step)
    return followed


def coordinates(step: Step) -> str:
    """`topic partition:offset`."""
    return f"{step.topic} {step.partition}:{step.offset}"


def step_of(record: Record) -> Step:
    """A record as a step without causes."""
    headers = dict(record.headers)
    try:
        value = orjson.loads(record.value or b"")
    except orjson.JSONDecodeError:
        value = None
    return Step(
        topic=record.topic, partition=record.partition, offset=record.offset, time=record.time,
        key=(record.key or b"").decode(errors="replace"), id=_header(headers, "ce_id"),
        value=value if isinstance(value, dict) else None, position=_position(_header(headers, "ce_position")),
        redrive_of=_header(headers, REDRIVE_HEADER) or None,
    )  # fmt: skip


def _header(headers: Mapping[str, bytes | None], name: str) -> str:
    return (headers.get(name) or b"").decode(errors="replace")


def _position(text: str) -> tuple[str, int, int] | None:
    conversation, *numbers = text.rsplit("|", 2)
    if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        return None
    return conversation, int(numbers[0]), int(numbers[1])


def _mark_repeats(steps: Sequence[Step]) -> None:
    first: dict[tuple[str, str], int] = {}
    for step in steps:
        if step.id and step.topic != DIFFS:
            offset = first.setdefault((step.topic, step.id), step.offset)
            step.repeat_of = None if offset == step.offset else offset


class _Index:
    """Where the things are that records refer to; of a record that is there twice, the first counts."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.at = {step.at: step for step in steps}
        self.dead = {
            f"{step.topic}:{step.partition}:{step.offset}": step for step in steps if step.topic.endswith(".dlq")
        }
        self.diffs: dict[tuple[str, int], Step] = {}
        self.named: dict[tuple[str, Any], Step] = {}
        self.declared: dict[tuple[str, Any], Step] = {}
        for step in steps:
            if step.topic == DIFFS and step.value is not None:
                self.diffs.setdefault((step.value["conversation"], step.value["version"]), step)
                self._declare(step, step.value)
            for name in ("call_id", "request_id", "message_id"):
                if step.get(name) is not None:
                    self.named.setdefault((f"{step.topic}/{name}", step.get(name)), step)
            if step.topic == "actions.outbound":
                self.named.setdefault(("actions.outbound/attempt", (step.get("message_id"), step.get("attempt"))), step)

    def _declare(self, step: Step, diff: Mapping[str, Any]) -> None:
        for change in diff.get("changes", ()):
            where, _, effect = change["path"].rpartition("/")
            if where == "/pending" and "after" in change:
                self.declared.setdefault((diff["conversation"], effect), step)

    def find(self, topic: str, name: str, value: Any) -> Step | None:
        """The first record of the topic whose field has that value."""
        return self.named.get((f"{topic}/{name}", value))


def _link(steps: Sequence[Step]) -> None:
    index = _Index(steps)
    for step in steps:
        found = (cause for cause in _causes(step, index) if cause is not None and cause is not step)
        step.causes = list(dict.fromkeys(cause.at for cause in found))


def _causes(step: Step, index: _Index) -> Iterator[Step | None]:
    if step.position is not None:
        yield index.diffs.get(step.position[:2])
    if step.redrive_of is not None:
        yield index.dead.get(step.redrive_of)
    match step.topic:
        case "state.diffs" if step.value is not None:
            cause = step.value["cause"]
            yield index.at.get((cause["topic"], cause["partition"], cause["offset"]))
        case "tools.results":
            if step.get("tool") in READINGS:  # a question of our own, and no call of a plan
                yield index.declared.get((step.key, step.get("call_id")))
            else:
                yield index.find("tools.calls", "call_id", step.get("call_id"))
        case "human.decisions":
            yield index.find("human.requests", "request_id", step.get("request_id"))
        case "delivery.receipts":
            attempt = (step.get("message_id"), step.get("attempt"))
            sent = index.named.get(("actions.outbound/attempt", attempt))
            yield sent or index.find("actions.outbound", "message_id", step.get("message_id"))
        case "timers.fired":
            yield index.diffs.get((step.key, step.get("set_by")))


def _of_session(steps: Sequence[Step], session: str) -> list[Step]:
    """What names the session, all that its decisions emitted, and the inputs of every decision in it.

    A health score can be decided when the next session has begun: it is of the session that it names.
    """
    by_place = {step.at: step for step in steps}
    kept = {step.at for step in steps if step.get("session_id") == session}
    for step in steps:
        diffs = [by_place[cause] for cause in step.causes if cause[0] == DIFFS]
        if step.at in kept and step.topic != DIFFS:
            kept.update(diff.at for diff in diffs)
        elif any(diff.get("session_id") == session for diff in diffs):
            kept.add(step.at)
    decisions = [step for step in steps if step.topic == DIFFS and step.at in kept]
    kept.update(cause for decision in decisions for cause in decision.causes)
    return [step for step in steps if step.at in kept]


def _ordered(steps: Sequence[Step]) -> list[Step]:
    """By time, but never before a cause or a lower offset of the same partition."""
    by_place = {step.at: step for step in steps}
    waits: dict[Coordinates, int] = {}
    then: dict[Coordinates, list[Step]] = {}
    before: dict[tuple[str, int], Step] = {}
    for step in steps:
        previous = before.get((step.topic, step.partition))
        needed = {cause for cause in step.causes if cause in by_place} | ({previous.at} if previous else set())
        waits[step.at] = len(needed)
        for place in needed:
            then.setdefault(place, []).append(step)
        before[step.topic, step.partition] = step
    heap = [_key(step) for step in steps if not waits[step.at]]
    heapq.heapify(heap)
    ordered: list[Step] = []
    while heap:
        step = by_place[heapq.heappop(heap)[2]]
        ordered.append(step)
        for follower in then.get(step.at, []):
            waits[follower.at] -= 1
            if not waits[follower.at]:
                heapq.heappush(heap, _key(follower))
    done = {step.at for step in ordered}
    # only a log that contradicts itself leaves some over: they are shown, too
    return ordered + sorted((step for step in steps if step.at not in done), key=_key)


def _key(step: Step) -> tuple[int, int, Coordinates]:
    return step.time, _RANK.get(step.topic, len(_RANK)), step.at
