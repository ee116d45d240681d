"""CloudEvents 1.0 of any producer, structured, in batches or binary, over HTTP or Kafka, to channel events (R-003-05).

`data` is an event of channel.raw, or its body alone. What it leaves out comes from the attributes: `id` (which then
counts per `source`), `subject` as shop/channel/sender, and `time`. Other attributes are ignored, but for `traceparent`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote_to_bytes

from schemas import cloudevents, codec
from schemas.base import MAX_MILLIS, MIN_MILLIS
from schemas.errors import BadRecordError
from schemas.events import RawEvent
from schemas.rejection import describe
from schemas.topics import RAW_TOPIC, TOPICS

STRUCTURED = "application/cloudevents+json"
BATCHED = "application/cloudevents-batch+json"
REQUIRED = ("specversion", "id", "source", "type")
_ATTRIBUTES = (*REQUIRED, "datacontenttype", "dataschema", "subject", "time")
_WHO = ("shop", "channel", "sender")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_JSON = re.compile(r"(application|text)/([a-z0-9.!#$&^_-]+\+)?json", re.ASCII)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

Attributes = Mapping[str, str]


def media_type(text: str) -> str:
    """A content type without its parameters, in lower case."""
    return text.partition(";")[0].strip().lower()


def of_record(value: bytes, headers: Iterable[tuple[str, bytes | None]]) -> tuple[RawEvent, str]:
    """The event of a channel.raw record, bare, binary or structured, and its traceparent. Raises BadRecordError.

    On this topic no attribute is required: bare JSON is good, too.
    """
    found = list(headers)
    kind = next((raw.decode(errors="replace") for name, raw in found if name == "content-type" and raw), "")
    if media_type(kind) == STRUCTURED:
        return of_structured(_plain(value, ""))
    envelope = cloudevents.parse_headers(RAW_TOPIC, found)
    attributes = {"id": envelope.id, "source": envelope.source, "subject": envelope.subject, "time": envelope.time}
    return _event(_plain(value, ""), attributes), envelope.traceparent


def of_structured(document: Any) -> tuple[RawEvent, str]:
    """The event of one parsed JSON envelope, and its traceparent. Raises BadRecordError naming the attribute."""
    if not isinstance(document, dict):
        raise _bad(code="wrong_type", reason=f"expected a CloudEvent, an object; found {describe(document)}")
    attributes = {name: _text(name, document[name]) for name in _ATTRIBUTES if document.get(name) is not None}
    _check(attributes)
    attributes["traceparent"] = str(document.get("traceparent", ""))
    data = document.get("data")
    if document.get("data_base64") is not None:
        if data is not None:
            raise _bad(code="wrong_value", reason="there beside data: send one of the two", field="data_base64")
        data = _decoded(document["data_base64"])
    return _finish(data, attributes)


def of_headers(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> tuple[RawEvent, str]:
    """The event of an HTTP request in binary mode, and its traceparent. Raises BadRecordError naming the header."""
    attributes: dict[str, str] = {}
    for raw_name, raw in headers:
        header = raw_name.decode("latin-1").lower()
        name = "datacontenttype" if header == "content-type" else header.removeprefix("ce-")
        if header == "traceparent":
            attributes.setdefault("traceparent", raw.decode("latin-1"))
        elif header == "ce-traceparent":  # where the event began; the plain header is only the hop before us
            attributes["traceparent"] = raw.decode("latin-1")
        elif name != header and name in _ATTRIBUTES:  # any other extension is its producer's
            value = _header(header, raw)
            if attributes.setdefault(name, value) != value:
                raise _bad(code="wrong_value", reason="there twice, with different values", field=header)
    try:
        _check(attributes)
        return _finish(_plain(body, "") if body else None, attributes)
    except BadRecordError as error:
        if error.field in _ATTRIBUTES:
            header = "content-type" if error.field == "datacontenttype" else f"ce-{error.field}"
            raise _bad(code=error.code, reason=error.reason, field=header) from None
        raise


def _finish(data: Any, attributes: Attributes) -> tuple[RawEvent, str]:
    if data is None:
        raise _bad(code="missing_field", reason="missing: the event itself is the data", field="data")
    trace = attributes.get("traceparent", "")
    return _event(data, attributes), trace if cloudevents.traced(trace) else ""


def _event(data: Any, attributes: Attributes) -> RawEvent:
    """The data with what it leaves out taken from the attributes."""
    if not isinstance(data, dict):
        raise _bad(code="wrong_type", reason=f"expected an object; found {describe(data)}", field="data")
    event: dict[str, Any] = {"body": data} if "body" not in data and "kind" in data else dict(data)
    if "id" not in event and attributes.get("id"):
        event["id"] = attributes["id"]
        if attributes.get("source"):
            event.setdefault("source", attributes["source"])
    if not any(name in event for name in _WHO):
        event.update(_subject(attributes.get("subject", "")))
    if event.get("occurred_at") is None and attributes.get("time"):
        event["occurred_at"] = _millis(attributes["time"])
    return codec.validate(RawEvent, event, RAW_TOPIC)


def _check(attributes: Attributes) -> None:
    """What the standard requires of every event, and what we can read of it."""
    for name in REQUIRED:
        if not attributes.get(name):
            raise _bad(
                code="missing_field",
                reason=f"missing or empty; every CloudEvent needs {', '.join(REQUIRED)}",
                field=name,
            )
    if attributes["specversion"] != "1.0":
        raise _bad(code="wrong_value", reason="expected 1.0", field="specversion")
    content = attributes.get("datacontenttype")
    if content and not _JSON.fullmatch(media_type(content)):
        raise _bad(code="wrong_value", reason="expected JSON data, such as application/json", field="datacontenttype")
    try:
        TOPICS[RAW_TOPIC].major(attributes["type"])
    except BadRecordError as error:
        raise _bad(code=error.code, reason=error.reason, field="type") from None


def _subject(text: str) -> dict[str, str]:
    parts = text.split("/")
    if len(parts) != len(_WHO):
        reason = "expected shop/channel/sender, as data names none of the three"
        raise _bad(code="missing_field" if not text else "wrong_value", reason=reason, field="subject")
    return dict(zip(_WHO, parts, strict=True))


def _millis(text: str) -> int:
    """RFC 3339 as UTC milliseconds."""
    reason = "expected RFC 3339, such as 2026-01-05T02:00:00.000Z, of the years 2000 to 9999"
    if not _TIME.fullmatch(text):
        raise _bad(code="wrong_time", reason=reason, field="time")
    try:
        found = int(datetime.fromisoformat(text.upper()).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise _bad(code="wrong_time", reason=reason, field="time") from None
    if not MIN_MILLIS <= found <= MAX_MILLIS:
        raise _bad(code="wrong_time", reason=reason, field="time")
    return found


def _text(name: str, value: Any) -> str:
    """An attribute as text. An id that came as a JSON integer was made exact text before (case B05)."""
    if not isinstance(value, str):
        raise _bad(code="wrong_type", reason=f"expected text; found {describe(value)}", field=name)
    if len(value) > cloudevents.MAX_ATTRIBUTE_CHARS or not cloudevents.plain(value):
        limit = cloudevents.MAX_ATTRIBUTE_CHARS
        raise _bad(code="wrong_value", reason=f"longer than {limit} characters, or a control character", field=name)
    return value


def _header(header: str, raw: bytes) -> str:
    """As the HTTP binding asks: unquoted, then percent-decoded once, UTF-8."""
    text = raw.decode("latin-1").strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        text = re.sub(r"\\(.)", r"\1", quoted[1])
    try:
        return _text(header, unquote_to_bytes(text.encode("latin-1")).decode())
    except UnicodeDecodeError:
        raise _bad(code="not_utf8", reason="not UTF-8 once it is percent-decoded", field=header) from None


def _decoded(value: Any) -> Any:
    try:
        return _plain(base64.b64decode(value, validate=True), "data_base64")
    except (ValueError, TypeError):
        raise _bad(
            code="wrong_value", reason=f"expected base64; found {describe(value)}", field="data_base64"
        ) from None


def _plain(value: bytes, field: str) -> Any:
    """Parsed, with exact ids (case B05)."""
    try:
        return codec.exact_ids(codec.parse(value, topic=RAW_TOPIC, long_integers=True))
    except BadRecordError as error:
        raise _bad(code=error.code, reason=error.reason, field=field) from None


def _bad(*, code: str, reason: str, field: str = "") -> BadRecordError:
    return BadRecordError(reason, code=code, topic=RAW_TOPIC, field=field)
