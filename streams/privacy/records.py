"""The records of a customer: all linked conversations, the seals in their records, and words for the register."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from memory.master_keys import SealError
from memory.sealing import KeyStore, open_seal
from schemas.events import Seal
from schemas.partition import place
from schemas.system import SystemEvent
from schemas.topics import TOPICS
from streams.reader import LogSource
from streams.replay.find import NotFoundError
from streams.replay.rebuild import read_history, state_at
from streams.runtime.ports import Fact, Outgoing, Record
from streams.runtime.wire import fact_record

_SEAL = frozenset({"key_id", "nonce", "sealed"})


@dataclass(frozen=True, slots=True)
class Opened:
    """One seal of one record, in clear; `path` leads to it in the record's value."""

    record: Record
    path: tuple[str, ...]
    clear: Any

    @property
    def where(self) -> str:
        """`topic:partition:offset`."""
        return f"{self.record.topic}:{self.record.partition}:{self.record.offset}"


def state_of(source: LogSource, conversation: str) -> Mapping[str, Any]:
    """The newest state. Raises NotFoundError for a conversation that is not there."""
    return state_at(read_history(source, conversation))


def linked(source: LogSource, conversation: str) -> list[str]:
    """The conversation and all that are the same customer's by a link that holds now, roots and branches.

    From the states, not from what a channel claimed: a link that was refused joins nobody, and one that another took
    the place of joins nobody any more: it may be another person at the same window. Raises NotFoundError.
    """
    found = {conversation: _identity(source, conversation, known=True)}
    waiting = [conversation]
    while waiting:
        one = waiting.pop()
        for name in filter(None, (found[one].get("root"), *found[one].get("linked", {}))):
            identity = found.get(name) or _identity(source, name)
            if name not in found and (name == found[one].get("root") or identity.get("root") == one):
                found[name] = identity
                waiting.append(name)
    return list(found)


def _identity(source: LogSource, conversation: str, *, known: bool = False) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = state_of(source, conversation).get("identity") or {}
    except NotFoundError:
        if known:
            raise
        return {}
    return found


def records_of(source: LogSource, conversations: Iterable[str]) -> Iterator[Record]:
    """Every record with one of these keys, of every topic, dead letters too."""
    keys = {name.encode() for name in conversations}
    places = [(topic, place(name, source.partitions(topic)), 0) for topic in TOPICS if source.partitions(topic)
              for name in sorted(conversations)]  # fmt: skip
    return source.read(list(dict.fromkeys(places)), None, lambda key, _: key in keys)


def opened(records: Iterable[Record], keys: KeyStore) -> Iterator[Opened]:
    """Every seal that can be opened, wherever it stands in a record; those whose key is gone are passed over."""
    for record in records:
        try:
            value = orjson.loads(record.value or b"null")
        except orjson.JSONDecodeError:
            continue  # the runtime made a dead letter of it, which is read, too
        for path, found in _seals(value, ()):
            owner = keys.owner_of(found.key_id)
            clear = None if owner is None else _clear(keys, found, owner)
            if clear is not None:
                yield Opened(record, path, clear)


def _clear(keys: KeyStore, sealed: Seal, owner: str) -> Any:
    try:
        plain = open_seal(keys, sealed, owner)
    except SealError:
        return None  # forged: it opens for nobody
    if plain is None:
        return None
    try:
        return orjson.loads(plain)
    except orjson.JSONDecodeError:
        return plain.decode(errors="backslashreplace")


def _seals(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Seal]]:
    if isinstance(value, dict):
        if value.keys() == _SEAL and all(isinstance(part, str) for part in value.values()):
            yield path, Seal(**value)
            return
        for name, part in value.items():
            yield from _seals(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _seals(part, (*path, str(index)))


def event_record(event: SystemEvent, conversation: str, partitions: int) -> Outgoing:
    """A word for the conversation's own register."""
    fact = Fact("system.events", conversation, event.event_id, event)
    return fact_record(fact, place(conversation, partitions), event.at)
