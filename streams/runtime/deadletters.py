"""Dead letters: exact bytes, sealed, with coordinates and reason; too many in a row pause the topic (promise 10)."""

from __future__ import annotations

import base64
from collections import deque
from typing import Any

from memory.sealing import KeyStore, seal
from schemas.base import MAX_CONVERSATION_CHARS, Model
from schemas.errors import BadRecordError
from schemas.partition import system_conversation
from schemas.step import Draft, Input, State
from schemas.system import DeadLetter, SystemEvent
from streams.runtime import wire
from streams.runtime.decide import Decided, finish, unopened
from streams.runtime.ports import Record

CONTROL_TOPIC = "system.events"  # carries the command that resumes: it is never paused itself


class DeadLetterLimit:
    """Counts dead letters in a row of each topic of one partition; a readable record starts again at 0.

    "In a row" is the order of the log. Conversations are decided side by side, so what is known of a record
    waits until all before it is known: else one lane of rubbish behind quick neighbours looked like a flood.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._row: dict[str, int] = {}
        self._read: dict[str, deque[Record]] = {}
        self._bad: dict[str, dict[int, bool | None]] = {}

    def read(self, record: Record) -> None:
        """A record was read, in offset order."""
        self._read.setdefault(record.topic, deque()).append(record)

    def decided(self, record: Record, *, bad: bool | None) -> Record | None:
        """What became of it: bad, readable, or (None) neither. The record that goes over the limit, if one does."""
        topic, over = record.topic, None
        known, read = self._bad.setdefault(topic, {}), self._read.get(topic, deque())
        known[record.offset] = bad
        while read and read[0].offset in known:
            first = read.popleft()
            if self._counted(topic, bad=known.pop(first.offset)) and over is None:
                over = first
        return over

    def again(self, topic: str) -> None:
        """The topic goes on, and counts from 0."""
        self._row.pop(topic, None)

    def _counted(self, topic: str, *, bad: bool | None) -> bool:
        if bad is None:
            return False
        self._row[topic] = self._row.get(topic, 0) + 1 if bad else 0
        return topic != CONTROL_TOPIC and self._row[topic] > self._limit


def letter_of(keys: KeyStore, record: Record, error: BadRecordError, session_id: str | None = None) -> DeadLetter:
    """The record's exact bytes, sealed, and why it could not be processed.

    Under its conversation's key, or one of its own where it names no conversation: so a customer can be forgotten.
    """
    value, owner = record.value, _owner(record)
    return DeadLetter(
        topic=record.topic, partition=record.partition, offset=record.offset, time=record.time,
        reason=error.reason, code=error.code, field=error.field or None,
        key=None if record.key is None else _text(record.key),
        seal=None if value is None else seal(keys, owner, value, context=_place(record).encode()),
        headers=tuple((name, None if part is None else _text(part)) for name, part in record.headers),
        size=0 if value is None else len(value), sealed_for=None if value is None else owner, session_id=session_id,
    )  # fmt: skip


def dead_letter(
    keys: KeyStore, state: State, record: Record, error: BadRecordError, value: Model | None = None
) -> Decided:
    """A decision like any other: its diff emits the record to `<topic>.dlq`. `value` is what could be read of it."""
    draft = Draft(state, wire.bare(record, state["conversation"]))
    _stop(draft, record.topic, value)
    letter = letter_of(keys, record, error, (state["session"] or {}).get("id"))
    draft.emit(f"{record.topic}.dlq", letter)
    draft.reason("runtime.dead_letter", str(error), _place(record))
    return finish(unopened(draft))


def _stop(draft: Draft, topic: str, value: Any) -> None:
    """What the record is the outcome of stays open for a redrive, but brings no second letter at each restart."""
    # the effect's id, as the handlers of calls and sends name it in their facts
    if value is None:
        return
    if topic == "timers.fired":
        timer = draft.get("timers", value.name)
        if timer is not None and timer["set_by"] == value.set_by:
            draft.set(True, "timers", value.name, "stopped")
    elif topic == "tools.results":
        _stop_effect(draft, value.call_id)
    elif topic == "delivery.receipts":
        _stop_effect(draft, f"{value.message_id}:{value.attempt}")


def _stop_effect(draft: Draft, effect_id: str) -> None:
    if draft.get("pending", effect_id) is not None:
        draft.set(True, "pending", effect_id, "stopped")


def pause(state: State, record: Record, limit: int) -> Decided:
    """The partition's system conversation records that the topic is paused from this record on."""
    partition = record.partition
    # the place of the record over the limit: all dead letters up to it are decided, so its offset, which the
    # system conversation now counts as handled, passes none that is still queued there
    cause = Input(
        topic=record.topic, partition=partition, offset=record.offset, time=record.time,
        key=system_conversation(partition), id=f"pause-{record.topic}-{partition}-{record.offset}",
        type="pause", value=None,
    )  # fmt: skip
    draft = Draft(state, cause)
    draft.set(record.offset, "runtime", "paused", record.topic)
    data = {"partition": partition, "offset": record.offset, "limit": limit}
    draft.emit("system.events", SystemEvent(event_id=cause.id, kind="partition_paused", subject=record.topic,
                                            by="interlock", at=draft.now, data=data))  # fmt: skip
    draft.reason("runtime.partition_paused", f"more than {limit} dead letters in a row on {record.topic}")
    return finish(draft)


def resume(draft: Draft, cause: Input) -> None:
    """The step of `system.events`: an operator's word that a paused topic goes on."""
    event = cause.value
    if (
        event is not None
        and event.kind == "partition_resumed"
        and draft.get("runtime", "paused", event.subject) is not None
    ):
        draft.delete("runtime", "paused", event.subject)
        draft.reason("runtime.partition_resumed", f"{event.subject} goes on, said {event.by}", cause.id)


def _owner(record: Record) -> str:
    try:
        key = (record.key or b"").decode()
    except UnicodeDecodeError:
        key = ""
    plain = key.count("/") == 2 and len(key) <= MAX_CONVERSATION_CHARS and key.isprintable()
    return key if plain and not key.startswith("~") else f"letter:{_place(record)}"


def _place(record: Record) -> str:
    return f"{record.topic}:{record.partition}:{record.offset}"


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
