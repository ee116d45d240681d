"""Finding a session or conversation in the topics, and reading no more than its own stretch of its partition."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from schemas.errors import InterlockError
from schemas.partition import place
from streams.reader import LogSource
from streams.replay.chain import CHAIN_TOPICS
from streams.runtime.ports import Record
from streams.runtime.wire import DIFFS

NEAR_MS = 10_000  # the first decision of a session follows its first input within this, or everything is read
EARLY_MS = 5_000  # partitions' brokers have clocks of their own: an effect can seem older than its cause (case D05)
AFTER_MS = 900_000  # scores of a session may be decided so long after it


class NotFoundError(InterlockError):
    """What was asked for is not in the topics; the message says where was looked."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A conversation's part of its partition: from a time on (0: all), until a time (None: the end)."""

    conversation: str
    partition: int
    since_ms: int = 0
    until_ms: int | None = None


def session_time(session: str) -> int | None:
    """The append time in a session id (a UUIDv7), milliseconds; None for anything else."""
    try:
        parsed = uuid.UUID(session)
    except ValueError:
        return None
    return parsed.int >> 80 if parsed.version == 7 else None


def conversation_stretch(source: LogSource, conversation: str) -> Stretch:
    """All of a conversation. Raises NotFoundError when it can't be one."""
    if conversation.count("/") != 2 and not conversation.startswith("~"):
        message = f"{conversation!r} is no conversation id: shop/channel/sender, such as shop-1/web/wang"
        raise NotFoundError(message)
    try:
        return Stretch(conversation, place(conversation, _partitions(source)))
    except ValueError as error:
        raise NotFoundError(str(error)) from error


def session_stretch(source: LogSource, session: str) -> Stretch:
    """Where a session is: sought by the time in its id, first close to it, then to the end. Raises NotFoundError."""
    began = session_time(session)
    if began is None:
        message = f"{session!r} is no session id (a UUIDv7), and no conversation id (shop/channel/sender)"
        raise NotFoundError(message)
    # Nearly every session is found in ten seconds of log; only the odd one costs a long read.
    found = _first_diff(source, session, began, began + NEAR_MS) or _first_diff(source, session, began - EARLY_MS, None)
    if found is None:
        message = f"session {session}: no decision of it on {DIFFS} from {began} ms on; its records may be gone"
        raise NotFoundError(message)
    conversation, partition = orjson.loads(found.value or b"")["conversation"], found.partition
    until = _next_session(source, Stretch(conversation, partition, began), session)
    return Stretch(conversation, partition, began, None if until is None else until + AFTER_MS)


def collect(source: LogSource, stretch: Stretch, also: Iterable[str] = ()) -> list[Record]:
    """The records of a stretch, of every topic that a chain is made of; `also` of these other keys there."""
    places = []
    for topic in CHAIN_TOPICS:
        if source.partitions(topic) > stretch.partition:
            start = source.at_time(topic, stretch.partition, stretch.since_ms - EARLY_MS) if stretch.since_ms else 0
            places.append((topic, stretch.partition, start))
    keys = {key.encode() for key in (stretch.conversation, *also)}
    return list(source.read(places, stretch.until_ms, lambda key, _: key in keys))


def _first_diff(source: LogSource, session: str, began: int, until: int | None) -> Record | None:
    places = [(DIFFS, partition, source.at_time(DIFFS, partition, began)) for partition in range(_partitions(source))]
    needle = session.encode()
    named = source.read(places, until, lambda _, value: value is not None and needle in value)
    return next((record for record in named if _session_of(record) == session), None)


def _next_session(source: LogSource, stretch: Stretch, session: str) -> int | None:
    """When the conversation's next session began; None when there is none."""
    for record in _diffs(source, stretch):
        if _session_of(record) not in (session, None) and record.time > stretch.since_ms:
            return record.time
    return None


def _diffs(source: LogSource, stretch: Stretch) -> Iterator[Record]:
    start = source.at_time(DIFFS, stretch.partition, stretch.since_ms)
    key = stretch.conversation.encode()
    return source.read([(DIFFS, stretch.partition, start)], None, lambda found, _: found == key)


def _session_of(record: Record) -> str | None:
    session: str | None = orjson.loads(record.value or b"{}").get("session_id")
    return session


def _partitions(source: LogSource) -> int:
    count = source.partitions(DIFFS)
    if not count:
        message = f"there is no topic {DIFFS}: run `interlock topics apply`, and a worker"
        raise NotFoundError(message)
    return count
