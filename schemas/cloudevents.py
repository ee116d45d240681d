"""CloudEvents 1.0 in Kafka's binary mode: the attributes are headers `ce_*`, the value is the data.

Header values are plain UTF-8, as the Kafka binding asks (percent-encoding is the HTTP binding's). W3C trace
context travels as the plain header `traceparent`, where tracing tools look for it; `ce_traceparent` is read too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from schemas.errors import BadRecordError, ContractError
from schemas.topics import DATASCHEMAS, RAW_TOPIC, topic_named

MAX_ATTRIBUTE_CHARS = 512

Position = tuple[str, int, int]  # an emit's source conversation, the version that made it, its index there
Previous = tuple[int, int]  # version and index of that conversation's emit before it on the same topic

_PLAIN_HEADERS = frozenset({"content-type", "traceparent"})
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_COUNT = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)
_NOT_TEXT = re.compile("[\x00-\x1f\x7f-\x9f]")


class Envelope(NamedTuple):  # a frozen dataclass takes five times as long to make, and one is made for every record
    """The attributes of one record. `id` is "" only on channel.raw, where topic, partition and offset name it.

    `minor` is the minor version that the writer had; `time` is RFC 3339 text or "".
    """

    id: str
    source: str
    type: str
    version: int
    minor: int = 0
    time: str = ""
    subject: str = ""
    traceparent: str = ""
    position: Position | None = None
    previous: Previous | None = None


def headers_for(
    *,
    id: str,  # noqa: A002 - the attribute's name in the standard
    type: str,  # noqa: A002
    source: str,
    time_ms: int,
    subject: str = "",
    traceparent: str = "",
    position: Position | None = None,
    previous: Previous | None = None,
) -> tuple[tuple[str, bytes], ...]:
    """The headers of a record; `time_ms` is UTC milliseconds.

    `type` is a topic's, such as `TOPICS["plans"].type`; `source` names who writes, such as
    `interlock/planning`; `subject` is the conversation. Raises ContractError for a type that is no topic's.
    """
    schema = DATASCHEMAS.get(type)
    if schema is None:
        message = f"{type!r} is no CloudEvents type of a topic; take TOPICS[name].type"
        raise ContractError(message)
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", id.encode()),
        ("ce_source", source.encode()),
        ("ce_type", type.encode()),
        ("ce_time", rfc3339(time_ms).encode()),
        ("ce_dataschema", schema.encode()),
        ("content-type", b"application/json"),
    ]
    if subject:
        headers.append(("ce_subject", subject.encode()))
    if traceparent:
        headers.append(("traceparent", traceparent.encode()))
    if position is not None:
        headers.append(("ce_position", f"{position[0]}|{position[1]}|{position[2]}".encode()))
    if previous is not None:
        headers.append(("ce_previous", f"{previous[0]}|{previous[1]}".encode()))
    return tuple(headers)


def rfc3339(millis: int) -> str:
    """UTC milliseconds as RFC 3339: 2026-01-05T02:00:00.000Z."""
    seconds, rest = divmod(millis, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def parse_headers(topic: str, headers: Iterable[tuple[str, bytes | None]]) -> Envelope:
    """The envelope of a record. Raises BadRecordError, whose `field` is `header <name>`.

    Of a header that is there twice, the two must be equal. On channel.raw nothing is required: a foreign
    producer may write bare JSON, and a type that is not ours is read as version 1.
    """
    found = _decode(topic, headers)
    structured = found.get("content-type", "").lower().startswith("application/cloudevents")
    if structured:
        raise _wrong(topic, "content-type", "structured mode; send binary mode: attributes as ce_* headers")
    foreign = topic == RAW_TOPIC
    if not foreign:
        for name in ("ce_specversion", "ce_id", "ce_source", "ce_type"):
            if not found.get(name):
                reason = "missing or empty; every record needs ce_specversion, ce_id, ce_source and ce_type"
                raise BadRecordError(reason, code="missing_header", topic=topic, field=f"header {name}")
    if found.get("ce_specversion", "1.0") != "1.0":
        raise _wrong(topic, "ce_specversion", "expected 1.0")
    kind = found.get("ce_type", "")
    time = found.get("ce_time", "")
    if time and not _TIME.fullmatch(time):
        raise _wrong(topic, "ce_time", "expected RFC 3339, such as 2026-01-05T02:00:00.000Z")
    trace = found.get("traceparent") or found.get("ce_traceparent", "")
    return Envelope(
        id=found.get("ce_id", ""),
        source=found.get("ce_source", ""),
        type=kind,
        version=topic_named(topic).major(kind),
        minor=_minor(topic, found.get("ce_dataschema", "")),
        time=time,
        subject=found.get("ce_subject", ""),
        # A broken trace header costs a link in the chain, not the customer's message.
        traceparent=trace if traced(trace) else "",
        position=_position(topic, found.get("ce_position")),
        previous=_previous(topic, found.get("ce_previous")),
    )


def _decode(topic: str, headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, raw in headers:
        if raw is None or not (name.startswith("ce_") or name in _PLAIN_HEADERS):
            continue  # other tools' headers are theirs
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise _wrong(topic, name, "not UTF-8") from None
        if len(text) > MAX_ATTRIBUTE_CHARS or not plain(text):
            raise _wrong(topic, name, f"longer than {MAX_ATTRIBUTE_CHARS} characters, or a control character")
        if found.setdefault(name, text) != text:
            raise _wrong(topic, name, "there twice, with different values")
    return found


def _wrong(topic: str, name: str, reason: str) -> BadRecordError:
    return BadRecordError(reason, code="wrong_header", topic=topic, field=f"header {name}")


@lru_cache(maxsize=1_024)
def _minor(topic: str, schema: str) -> int:
    """The minor version of our own dataschema; one that is not ours says nothing."""
    if not schema.startswith("interlock:"):
        return 0
    minor = schema.rpartition(".")[2]
    if not _COUNT.fullmatch(minor):
        raise _wrong(topic, "ce_dataschema", "expected interlock:<topic>:<major>.<minor>")
    return int(minor)


def _position(topic: str, text: str | None) -> Position | None:
    if text is None:
        return None
    conversation, *numbers = text.rsplit("|", 2)  # a conversation may hold a "|" itself
    if not conversation or len(numbers) != 2 or not all(map(_COUNT.fullmatch, numbers)):
        raise _wrong(topic, "ce_position", "expected <conversation>|<version>|<index>")
    return conversation, int(numbers[0]), int(numbers[1])


def _previous(topic: str, text: str | None) -> Previous | None:
    if text is None:
        return None
    numbers = text.split("|")
    if len(numbers) != 2 or not all(map(_COUNT.fullmatch, numbers)):
        raise _wrong(topic, "ce_previous", "expected <version>|<index>")
    return int(numbers[0]), int(numbers[1])


def plain(text: str) -> bool:
    """Whether an attribute's text holds no control character."""
    return text.isprintable() or not _NOT_TEXT.search(text)


def traced(traceparent: str) -> bool:
    """Whether it is a W3C traceparent."""
    return bool(_TRACEPARENT.fullmatch(traceparent))


def root(seed: str) -> str:
    """A sampled W3C traceparent that begins a trace, derived from `seed`: a replay makes the same one."""
    digest = hashlib.sha256(seed.encode()).hexdigest()
    return f"00-{_not_zero(digest[:32])}-{_not_zero(digest[32:48])}-01"


def child(traceparent: str, seed: str) -> str:
    """The next span of the same trace, derived from `seed`; of no valid trace, a new root."""
    if not traced(traceparent):
        return root(seed)
    span = _not_zero(hashlib.sha256(f"{traceparent}|{seed}".encode()).hexdigest()[:16])
    return f"00-{traceparent[3:35]}-{span}-{traceparent[-2:]}"


def _not_zero(digits: str) -> str:
    """All zeros is no id in W3C trace context."""
    return digits if digits.strip("0") else f"{digits[:-1]}1"
