"""What became of one event: accepted or not, decided by which rules, answered by what, delivered how far."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from schemas import codec
from schemas.errors import BadRecordError
from schemas.events import HeartbeatBody, RawEvent
from schemas.partition import system_conversation
from schemas.system import DeadLetter
from schemas.topics import RAW_TOPIC
from streams.intake import event_id
from streams.reader import LogSource
from streams.replay.chain import Coordinates, Step, build_chain, effects_of
from streams.replay.find import NotFoundError, Stretch, collect, conversation_stretch
from streams.replay.letters import letters
from streams.runtime.ports import Record
from streams.runtime.wire import DIFFS

EVENTS = "channel.events"
Outcome = Literal["waiting", "handled", "forwarded", "duplicate", "dead_letter"]
REPEAT_RULES = frozenset({"runtime.duplicate", "perception.repeat"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A message to the customer that followed, and its last known delivery state."""

    message_id: str
    text: str
    state: str
    assumed: bool
    at: Coordinates


@dataclass(slots=True)
class Trace:
    """One record of the event (a producer may have sent it twice), and what followed."""

    event: Step
    outcome: Outcome
    decision: Step | None = None
    dead_letter: Step | None = None
    answers: list[Answer] = field(default_factory=list)
    chain: list[Step] = field(default_factory=list)


def derived_event_id(conversation: str, producer_id: str) -> str:
    """The event id that intake gives a producer's id of one sender."""
    shop, channel, sender = conversation.split("/", 2)
    return event_id(
        RawEvent(id=producer_id, shop=shop, channel=channel, sender=sender, body=HeartbeatBody(kind="heartbeat"))
    )


def trace_event(source: LogSource, event: str, conversation: str | None = None) -> list[Trace]:
    """Every record of the event, first one first. `event` is an event id, or with a conversation a producer's id.

    Without a conversation a producer's id finds the events of every sender that used it. Raises NotFoundError,
    which says when the event still waits for intake on channel.raw, or was refused there and why.
    """
    stretch = None if conversation is None else conversation_stretch(source, conversation)
    wanted = event if stretch is None or event.startswith("ev-") else derived_event_id(stretch.conversation, event)
    found = [record for record in _all(source, EVENTS, stretch) if _is(record, wanted, whose=stretch)]
    if not found:
        raise NotFoundError(_not_found(source, event, wanted, conversation))
    traces = [_trace(source, record) for record in found]
    known = {(one.event.partition, one.event.offset) for one in traces}
    onward = [_trace(source, record) for one in traces for record in _forwards(source, one)
              if (record.partition, record.offset) not in known]  # fmt: skip
    return sorted(traces + onward, key=lambda one: bool(one.event.get("forwarded")))


def _forwards(source: LogSource, trace: Trace) -> Iterator[Record]:
    """The same event at the root that its conversation is linked to (R-003-05)."""
    emits = [] if trace.decision is None else trace.decision.get("emits")
    for emit in emits:
        if emit["topic"] == EVENTS and emit["key"] != trace.event.key:
            for record in _all(source, EVENTS, conversation_stretch(source, emit["key"])):
                if dict(record.headers).get("ce_id") == emit["id"].encode():
                    yield record
                    break


def _all(source: LogSource, topic: str, stretch: Stretch | None = None) -> Iterator[Record]:
    numbers = range(source.partitions(topic)) if stretch is None else [stretch.partition]
    return source.read([(topic, number, 0) for number in numbers])


def _is(record: Record, event: str, *, whose: Stretch | None) -> bool:
    """Whether it is the event of that id; where no sender is given, also by the producer's own id."""
    value, needle = record.value or b"", event.encode()
    if dict(record.headers).get("ce_id") == needle or b'"event_id":"' + needle + b'"' in value:
        return True
    return whose is None and value.startswith(b'{"id":' + orjson.dumps(event) + b",")  # canonical: the first field


def _trace(source: LogSource, record: Record) -> Trace:
    key = (record.key or b"").decode(errors="replace")
    since = Stretch(key, record.partition, record.time)
    home = system_conversation(record.partition)  # decides what has no usable key
    chain = build_chain([record, *collect(source, since, also=[home])])
    event = next(step for step in chain if step.at == (record.topic, record.partition, record.offset))
    followed = effects_of(chain, event)
    decision = next((step for step in followed if step.topic == DIFFS and event.at in step.causes), None)
    letter = next((step for step in followed if step.topic == f"{EVENTS}.dlq"), None)
    return Trace(event, _outcome(decision, letter), decision, letter, _answers(followed), followed)


def _outcome(decision: Step | None, letter: Step | None) -> Outcome:
    if letter is not None:
        return "dead_letter"
    if decision is None:
        return "waiting"
    rules = set(rules_of(decision))
    return "duplicate" if REPEAT_RULES & rules else "forwarded" if "identity.forwarded" in rules else "handled"


def rules_of(decision: Step) -> list[str]:
    """The rules that a decision names."""
    return [reason["rule"] for reason in decision.get("reasons") or []]


def _answers(followed: Sequence[Step]) -> list[Answer]:
    states: dict[str, Any] = {}
    for step in followed:
        if step.topic == "delivery.states" and not step.get("out_of_order"):
            states[step.get("message_id")] = step.value
    answers: dict[str, Answer] = {}
    for step in followed:
        if step.topic == "actions.outbound":
            name = step.get("message_id")
            state = states.get(name) or {"state": "not registered yet", "assumed": False}
            answers.setdefault(name, Answer(name, step.get("text"), state["state"], state["assumed"], step.at))
    return list(answers.values())


def _not_found(source: LogSource, event: str, wanted: str, conversation: str | None) -> str:
    names = event if event == wanted else f"{event} ({wanted})"
    raw = [one for one in _all(source, RAW_TOPIC) if _is_raw(one, event, conversation)]
    places = {(one.partition, one.offset) for one in raw}
    for one in letters(source, [RAW_TOPIC]):
        letter = one.letter
        if (letter.partition, letter.offset) in places or _had_id(letter, event):
            where = f"{RAW_TOPIC} {letter.partition}:{letter.offset}"
            why = f"{letter.code}, {' '.join(part for part in (letter.field, letter.reason) if part)}"
            return f"{names}: refused by intake, {where}: {why} (see `interlock dlq show {one.reference}`)"
    if raw:
        where = f"{RAW_TOPIC} {raw[0].partition}:{raw[0].offset}"
        return f"{names}: on {where}, and not on {EVENTS} yet; `interlock intake` takes it there"
    return f"{names}: no such event on {EVENTS}, and none on {RAW_TOPIC} or among its dead letters"


def _is_raw(record: Record, event: str, conversation: str | None) -> bool:
    """A foreign producer's record, by its CloudEvents id or the id in it, of that sender where one is given."""
    if dict(record.headers).get("ce_id") == event.encode():
        return True
    try:
        value = codec.exact_ids(codec.parse(record.value or b"", long_integers=True))
    except BadRecordError:
        return False
    if not isinstance(value, dict) or value.get("id") != event:
        return False
    parts = conversation.split("/") if conversation else []
    # a part that is wrong may be why it was refused: only another sender's event is not this one
    return all(
        not isinstance(value.get(name), str) or value[name] == part
        for name, part in zip(("shop", "channel", "sender"), parts, strict=False)
    )


def _had_id(letter: DeadLetter, event: str) -> bool:
    return ("ce_id", b64encode(event.encode()).decode()) in letter.headers
