"""The memory register from the topics: writes of one customer or of all, and what staff decided about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memory.keeping import key_of
from memory.register import Register, Rollback
from schemas.cloudevents import root
from schemas.errors import BadRecordError
from schemas.memory import MemoryRestore, MemoryWrite, Remembered
from schemas.partition import place
from schemas.people import HumanDecision
from schemas.topics import MEMORY_TOPIC
from streams.reader import LogSource
from streams.replay.find import NotFoundError
from streams.runtime.ports import Fact, Outgoing
from streams.runtime.wire import fact_record, read

DECISIONS = "human.decisions"


@dataclass(frozen=True, slots=True)
class Found:
    """Writes in the order of their topic, the decisions about memory, and the records that can't be read."""

    register: Register
    decisions: tuple[HumanDecision, ...]
    unreadable: int


def read_register(source: LogSource, conversation: str | None = None) -> Found:
    """All writes (of one conversation). Raises NotFoundError when the topic is not there."""
    count = source.partitions(MEMORY_TOPIC)
    if not count:
        message = f"there is no topic {MEMORY_TOPIC}: run `interlock topics apply`, and a worker"
        raise NotFoundError(message)
    numbers = range(count) if conversation is None else [place(conversation, count)]
    places = [(topic, number, 0) for topic in (MEMORY_TOPIC, DECISIONS) for number in numbers]
    key = None if conversation is None else conversation.encode()
    register, decisions, unreadable = Register(), dict[str, HumanDecision](), 0
    for record in source.read(places, None, lambda found, _: key in (None, found)):
        try:
            value = read(record, (record.key or b"").decode()).value
        except (BadRecordError, UnicodeDecodeError):
            unreadable += 1  # its dead letter says more
            continue
        if isinstance(value, MemoryWrite):
            register.add(value)
        elif isinstance(value, HumanDecision) and value.kind == "memory":
            decisions.setdefault(value.decision_id, value)
    return Found(register, tuple(decisions.values()), unreadable)


def conversation_of(key: str) -> str:
    """The conversation of `shop/channel/sender/kind/subject`. Raises NotFoundError."""
    if key.count("/") != 4:
        message = f"{key!r} is no memory key: shop/channel/sender/kind/subject, such as demo/web/u-1/preference/carrier"
        raise NotFoundError(message)
    return key_of(key).conversation


def decisions_for(rollback: Rollback, decision_id: str, by: str, reason: str, now_ms: int) -> dict[str, HumanDecision]:
    """One decision a conversation that the trace wrote for; all carry the same id, so they share one trace."""
    parts: dict[str, list[MemoryRestore]] = {}
    for restore in rollback.restores:
        parts.setdefault(key_of(restore.key).conversation, []).append(restore)
    return {
        conversation: HumanDecision(decision_id=decision_id, kind="memory", by=by, decided_at=now_ms, reason=reason,
                                    memory=tuple(restores), undone_trace=rollback.trace_id)
        for conversation, restores in parts.items()
    }  # fmt: skip


def setting(register: Register, key: str, value: Remembered) -> MemoryRestore:
    """A member of staff's own value of a key, over what the register knows now."""
    history = register.history(key)
    head = history[-1] if history else None
    return MemoryRestore(key=key, head=head.write_id if head else None, now=head.value_after if head else None,
                         value=value)  # fmt: skip


def records_of(decisions: Iterable[tuple[str, HumanDecision]], partitions: int, now_ms: int) -> Iterator[Outgoing]:
    """The decisions as records of human.decisions."""
    for conversation, decision in decisions:
        fact = Fact(DECISIONS, conversation, decision.decision_id, decision)
        yield fact_record(fact, place(conversation, partitions), now_ms, root(decision.decision_id))


def trace_of(decision_id: str) -> str:
    """The trace that the writes of a decision carry: by it the decision itself can be rolled back."""
    return root(decision_id)[3:35]
