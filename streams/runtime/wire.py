"""Records to inputs and decisions to records: the only place that knows keys, headers and partitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from schemas import cloudevents, codec
from schemas.base import MAX_CONVERSATION_CHARS, Model
from schemas.errors import BadRecordError
from schemas.partition import partition_of, system_conversation
from schemas.step import Input
from schemas.topics import TOPICS
from streams.runtime.ports import Fact, Headers, Outgoing, Record

SOURCE = "interlock"
DIFFS = "state.diffs"
UPDATES = "state.updates"
SYSTEM_TOPICS = frozenset({"system.events"})  # records of a partition itself; on all others it is nobody's conversation
_CONVERSATION = re.compile(r"[^/~][^/]*/[^/]+/[^/]+")


def lane_of(record: Record, partitions: int) -> str:
    """The conversation whose lane the record belongs to.

    A record without a usable key, or with one that murmur2 does not place on its partition, goes to the
    partition's system conversation `~<partition>`.
    """
    home = system_conversation(record.partition)
    if record.key is None:
        return home
    try:
        key = record.key.decode()
    except UnicodeDecodeError:
        return home
    if not _CONVERSATION.fullmatch(key) or len(key) > MAX_CONVERSATION_CHARS or not key.isprintable():
        return home
    # hashed again for each record: the only proof that a foreign producer placed its keys as we do
    return key if partition_of(record.key, partitions) == record.partition else home


def read(record: Record, conversation: str) -> Input:
    """Decode and check a record. Raises BadRecordError, which says field and reason, never the value."""
    system = conversation.startswith("~") and record.topic not in SYSTEM_TOPICS
    if system or record.key is None or record.key.decode(errors="replace") != conversation:
        reason = "no usable key, or not the partition that its key belongs to"
        raise BadRecordError(reason, topic=record.topic, code="bad_key", field="key")
    if record.value is None:
        return bare(record, conversation, "null")
    envelope = cloudevents.parse_headers(record.topic, record.headers)
    value = codec.decode(record.topic, record.value, envelope.type, minor=envelope.minor)
    return Input(
        topic=record.topic, partition=record.partition, offset=record.offset, time=record.time, key=conversation,
        id=envelope.id, type=envelope.type, value=value, trace=envelope.traceparent,
        position=envelope.position, previous=envelope.previous,
    )  # fmt: skip


def bare(record: Record, conversation: str, kind: str = "unreadable") -> Input:
    """The input of a record without a value that could be read: its id is where it stood."""
    position = previous = None
    try:
        envelope = cloudevents.parse_headers(record.topic, record.headers)
        position, previous = envelope.position, envelope.previous
    except BadRecordError:
        pass  # the headers are part of what can't be read
    return Input(
        topic=record.topic, partition=record.partition, offset=record.offset, time=record.time, key=conversation,
        id=f"{record.topic}-{record.partition}-{record.offset}", type=kind, value=None,
        position=position, previous=previous,
    )  # fmt: skip


def emit_record(diff: Mapping[str, Any], index: int, partition_for: Callable[[str], int]) -> Outgoing:
    """The record of a diff's emit, with its position and the one before it."""
    emit = diff["emits"][index]
    # all of it from the diff, the time too: published again it is the same record, byte for byte
    headers = cloudevents.headers_for(
        id=emit["id"], type=emit["type"], source=SOURCE, time_ms=diff["now"], subject=emit["key"],
        traceparent=cloudevents.child(diff["cause"]["trace"], emit["id"]),
        position=(diff["conversation"], diff["version"], index), previous=tuple(emit["previous"]),
    )  # fmt: skip
    key = emit["key"]
    return Outgoing(emit["topic"], partition_for(key), key.encode(), orjson.dumps(emit["data"]), headers)


def fact_record(fact: Fact, partition: int, now_ms: int, trace: str = "") -> Outgoing:
    """The record of a fact: no position; it is deduped by its id."""
    headers = cloudevents.headers_for(
        id=fact.id, type=TOPICS[fact.topic].type, source=SOURCE, time_ms=now_ms, subject=fact.conversation,
        traceparent=trace or cloudevents.root(fact.id),
    )  # fmt: skip
    return Outgoing(fact.topic, partition, fact.conversation.encode(), codec.encode(fact.value), headers)


def state_headers(topic: str, record_id: str, now_ms: int) -> Headers:
    """Headers of the runtime's own topics."""
    return cloudevents.headers_for(id=record_id, type=TOPICS[topic].type, source=SOURCE, time_ms=now_ms)


def encode(value: Model | Mapping[str, Any]) -> bytes:
    """Canonical JSON of a model or of plain JSON."""
    return orjson.dumps(value.model_dump(mode="json", by_alias=True) if isinstance(value, Model) else value)
