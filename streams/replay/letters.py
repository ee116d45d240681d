"""Dead letters for people: what there is, the exact bytes, back again as a new input, and a paused topic resumed."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from memory.sealing import KeyStore, open_seal
from schemas import cloudevents, codec
from schemas.errors import BadRecordError, InterlockError
from schemas.partition import partition_of, system_conversation
from schemas.system import DeadLetter, SystemEvent
from schemas.topics import TOPICS
from streams.reader import LogSource
from streams.replay.chain import REDRIVE_HEADER
from streams.replay.find import NotFoundError
from streams.runtime.ports import Fact, Outgoing, Record
from streams.runtime.wire import fact_record, read

DLQ = ".dlq"
_REFERENCE = re.compile(r"([a-z.]+)[: ](\d+):(\d+)")
# An emit's position would drop the record as one that was handled: as a new input it is deduped by its id.
_OLD_PLACE = frozenset({"ce_position", "ce_previous"})


class LetterError(InterlockError):
    """A dead letter can't be used as asked; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter and where it stands."""

    record: Record
    letter: DeadLetter

    @property
    def reference(self) -> str:
        """`channel.events.dlq:3:17`, as the commands take it."""
        return f"{self.record.topic}:{self.record.partition}:{self.record.offset}"

    @property
    def key(self) -> bytes | None:
        """The record's key, byte for byte."""
        return None if self.letter.key is None else base64.b64decode(self.letter.key)


def letters(source: LogSource, topics: list[str] | None = None) -> Iterator[Letter]:
    """All dead letters of the topics (default: of all), partition by partition. Raises NotFoundError."""
    names = [_dlq(topic) for topic in topics] if topics else [name for name in TOPICS if name.endswith(DLQ)]
    places = [(name, number, 0) for name in names for number in range(source.partitions(name))]
    for record in source.read(places):
        yield _letter(record)


def find_letter(source: LogSource, reference: str) -> Letter:
    """The dead letter at `<topic>.dlq:<partition>:<offset>`. Raises NotFoundError, LetterError."""
    match = _REFERENCE.fullmatch(reference.strip())
    if match is None:
        message = f"{reference!r} is no reference to a dead letter, such as channel.events.dlq:3:17"
        raise LetterError(message)
    topic, partition, offset = _dlq(match[1]), int(match[2]), int(match[3])
    if partition < source.partitions(topic):
        for record in source.read([(topic, partition, offset)]):
            if record.offset == offset:
                return _letter(record)
            break
    message = f"{topic}:{partition}:{offset}: there is no such record (`interlock dlq list` shows what there is)"
    raise NotFoundError(message)


def exact_bytes(letter: Letter, keys: KeyStore) -> bytes | None:
    """The value, byte for byte; None if the record had none. Raises LetterError when its key was destroyed.

    A record that was readable (an orphan receipt) has its decoded value instead, as canonical JSON.
    """
    if letter.letter.seal is None:
        return None if letter.letter.record is None else orjson.dumps(letter.letter.record)
    value = open_seal(keys, letter.letter.seal, letter.letter.owner)
    if value is None:
        message = f"{letter.reference}: the key of {letter.letter.owner} was destroyed, its bytes are gone"
        raise LetterError(message)
    return value


def redrive(letter: Letter, keys: KeyStore, partitions: int) -> Outgoing:
    """The same key, value and headers as a new input at the end of the original topic, naming the dead letter.

    The key's own partition, also when the record stood on another; without a readable key the one where it stood.
    """
    old = letter.letter
    headers = [(name, None if value is None else base64.b64decode(value)) for name, value in old.headers]
    kept = [(name, value) for name, value in headers if name not in _OLD_PLACE and name != REDRIVE_HEADER]
    partition = old.partition if _unplaced(letter.key) else partition_of(letter.key or b"", partitions)
    reference = (REDRIVE_HEADER, letter.reference.encode())
    if old.record is not None and not kept:  # it was handled once under its own id, so it comes back under another
        kept = list(cloudevents.headers_for(id=f"redrive-{letter.reference}", type=TOPICS[old.topic].type,
                                            source="interlock/dlq", time_ms=letter.record.time))  # fmt: skip
    return Outgoing(old.topic, partition, letter.key, exact_bytes(letter, keys), (*kept, reference))


def resumed(topic: str, partition: int, by: str, event_id: str, now_ms: int) -> Outgoing:
    """The word that a paused topic partition goes on; system.events is never paused itself."""
    event = SystemEvent(event_id=event_id, kind="partition_resumed", subject=topic, by=by, at=now_ms)
    fact = Fact("system.events", system_conversation(partition), event_id, event)
    return fact_record(fact, partition, now_ms)


def paused(source: LogSource) -> list[tuple[str, int, int]]:
    """Topic partitions that are paused now: topic, partition, the offset that did it."""
    found: dict[tuple[str, int], int] = {}
    places = [("system.events", number, 0) for number in range(source.partitions("system.events"))]
    for record in source.read(places):
        try:
            event = read(record, system_conversation(record.partition)).value
        except BadRecordError:
            continue  # the runtime made a dead letter of it
        if event is None:
            continue
        place = event.subject, record.partition
        if event.kind == "partition_paused" and isinstance(event.data.get("offset"), int):
            found[place] = event.data["offset"]
        elif event.kind == "partition_resumed":
            found.pop(place, None)
    return [(topic, partition, offset) for (topic, partition), offset in sorted(found.items())]


def _unplaced(key: bytes | None) -> bool:
    if key is None or key.startswith(b"~"):
        return True
    try:
        return key.decode().count("/") != 2
    except UnicodeDecodeError:
        return True


def _dlq(topic: str) -> str:
    name = topic if topic.endswith(DLQ) else topic + DLQ
    if name not in TOPICS:
        message = (
            f"there is no topic {name}; dead letters are on {', '.join(one for one in TOPICS if one.endswith(DLQ))}"
        )
        raise NotFoundError(message)
    return name


def _letter(record: Record) -> Letter:
    try:
        return Letter(record, codec.decode(record.topic, record.value))
    except BadRecordError as error:
        message = f"{record.topic} {record.partition}:{record.offset} is no dead letter that can be read: {error}"
        raise LetterError(message) from error
