"""The ends of the runtime: log, offsets, clock and effects, each with a Kafka and an in-memory side.

The partition runtime knows nothing of Kafka; the same code runs on the in-memory twins (chat, scenarios,
replay), on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from schemas.base import Model

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record read from a topic partition; `time` is the append time in milliseconds."""

    topic: str
    partition: int
    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to write, its partition chosen explicitly."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class PartitionLostError(Exception):
    """The commit can't be known or was fenced: the partition closes, and the group is asked to rejoin."""


class Clock(Protocol):
    """The only source of wall time."""

    def now_ms(self) -> int:
        """UTC milliseconds."""
        ...


class CommitPort(Protocol):
    """The partition's transactional producer (promise 4)."""

    async def commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        """All records in one transaction; their (offset, append time ms), in order, once it is committed.

        Retries what can be retried for at most 10 s. Raises PartitionLostError for any other outcome.
        """
        ...


class SendPort(Protocol):
    """The idempotent producer of emits and facts, which never times a record out."""

    def send(self, record: Outgoing) -> Awaitable[int]:
        """Hand over now, in call order; the awaitable is the offset once the broker has the record."""
        ...


class OffsetsPort(Protocol):
    """What the broker holds."""

    async def ends(self, partition: int) -> Mapping[str, int]:
        """End offset of this partition for each input topic (records at or above it do not exist yet)."""
        ...


@dataclass(frozen=True, slots=True)
class Effect:
    """A declared effect that is pending in committed state (promise 6)."""

    conversation: str
    id: str
    kind: str
    key: str
    declared_at: int
    deadline: int
    timeout_ms: int
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """The outcome of an effect, a person's word or a fired timer: published once it happened, deduped by id."""

    topic: str
    conversation: str
    id: str
    value: Model


class EffectHandler(Protocol):
    """Runs one kind of effect. Both methods end in facts, whatever happens; they raise only on our bugs.

    An answer that may be late is no reason to wait: each keeps to the effect's deadline and timeout itself.
    """

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """Do it, with its idempotency key."""
        ...

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """A successor found it pending, past deadline and timeout: ask whether the key happened, or repeat it.

        What can't be asked or repeated ends in a fact with status unknown, which brings a person.
        """
        ...


@dataclass(slots=True)
class Recovered:
    """What an owner starts from: encoded states, where the log was handled to, and emits to publish again."""

    states: dict[str, bytes] = field(default_factory=dict)
    handled: dict[str, int] = field(default_factory=dict)
    diff_offset: int = -1
    unsent: int = 0
    resend: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    # the earliest deadline of each state that has one, so that it can stay encoded until then; None: not known
    dues: dict[str, int] | None = None
    # in the order of their first change; a conversation that is on disk only must be in `states`, too
    changed: list[str] = field(default_factory=list)  # touched by diffs: the next checkpoint must write them
