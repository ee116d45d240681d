"""CloudEvents of any producer: required attributes, exact ids, extensions, and errors that name the attribute."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import BadRecordError
from streams import foreign
from streams.intake import event_id

BODY = {"kind": "message", "message_id": "m-1", "text": "退款"}
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CLOUD = {"specversion": "1.0", "id": "A-1", "source": "/crm", "type": "com.example.chat", "data": BODY,
         "subject": "acme/crm/u-1", "time": "2026-09-21T12:00:00.5+08:00", "traceparent": TRACE}  # fmt: skip


def structured(**changes: Any) -> dict[str, Any]:
    """An envelope; None leaves an attribute out."""
    return {name: value for name, value in {**CLOUD, **changes}.items() if value is not None}


def headers(**changes: Any) -> list[tuple[bytes, bytes]]:
    """The same in binary mode, as HTTP headers."""
    attributes = {name: value for name, value in structured(data=None, **changes).items() if name != "traceparent"}
    extra = [(b"content-type", b"application/json"), (b"traceparent", TRACE.encode()), (b"host", b"x"), (b"id", b"no")]
    return [(f"Ce-{name}".encode(), str(value).encode()) for name, value in attributes.items()] + extra


def test_an_envelope_gives_what_its_data_leaves_out() -> None:
    """Id, source, conversation and time come from the attributes, and the trace goes on (R-003-05)."""
    raw, trace = foreign.of_structured(structured())
    assert ("A-1", "/crm", "acme/crm/u-1", 1_789_963_200_500) == (raw.id, raw.source, raw.conversation, raw.occurred_at)
    assert ("message", TRACE) == (raw.body.kind, trace)


def test_all_modes_say_the_same() -> None:
    """Structured, base64, binary over HTTP and both modes on Kafka are one event (R-003-05)."""
    data = orjson.dumps(BODY)
    attributes = structured(data=None, traceparent=None)
    on_kafka = [(f"ce_{name}", value.encode()) for name, value in attributes.items()]
    found = [
        foreign.of_structured(structured()),
        foreign.of_structured(structured(data=None, data_base64=base64.b64encode(data).decode())),
        foreign.of_headers(headers(), data),
        foreign.of_record(data, [*on_kafka, ("traceparent", TRACE.encode())]),
        foreign.of_record(orjson.dumps(CLOUD), [("content-type", b"application/cloudevents+json; charset=UTF-8")]),
    ]
    assert [found[0]] * 5 == found


def test_data_that_says_all_needs_no_attributes_of_ours() -> None:
    """Data that is a whole event keeps its own id, conversation and clock, whatever the envelope says."""
    whole = {"id": "7", "shop": "acme", "channel": "app", "sender": "u-2", "occurred_at": 1_790_000_000_000,
             "body": {"kind": "heartbeat"}}  # fmt: skip
    raw, _ = foreign.of_structured(structured(data=whole))
    assert ("7", None, "acme/app/u-2", 1_790_000_000_000) == (raw.id, raw.source, raw.conversation, raw.occurred_at)


@pytest.mark.parametrize("number", [9007199254740992, 9007199254740993, 2**63 + 1])
def test_ids_are_exact(number: int) -> None:
    """An id that a producer wrote as a JSON number is exact decimal text, in the envelope and in the data (B05)."""
    text = orjson.dumps(structured(id="?", data={**BODY, "message_id": "?"})).replace(b'"?"', str(number).encode())
    raw, _ = foreign.of_record(text, [("content-type", b"application/cloudevents+json")])
    assert (str(number), str(number)) == (raw.id, getattr(raw.body, "message_id", ""))


def test_an_id_counts_in_its_source() -> None:
    """The standard makes source and id together the name of an event: two sources, two events; a repeat, one."""
    one, same, other = (foreign.of_structured(structured(source=source))[0] for source in ("/a", "/a", "/b"))
    assert event_id(one) == event_id(same) != event_id(other)


@pytest.mark.parametrize(("changes", "attribute"), [
    ({"id": None}, "id"), ({"id": ""}, "id"), ({"source": None}, "source"), ({"type": None}, "type"),
    ({"specversion": None}, "specversion"), ({"specversion": "0.3"}, "specversion"),
    ({"specversion": 1.0}, "specversion"), ({"time": "yesterday"}, "time"), ({"time": "2026-13-01T00:00:00Z"}, "time"),
    ({"time": "1970-01-01T00:00:00Z"}, "time"),
    ({"subject": None}, "subject"), ({"subject": "u-1"}, "subject"), ({"subject": "/a/b"}, "shop"),
    ({"type": "interlock.channel.raw.v9"}, "type"), ({"datacontenttype": "application/xml"}, "datacontenttype"),
    ({"data": None}, "data"), ({"data": "text"}, "data"), ({"data_base64": "e30="}, "data_base64"),
    ({"data": None, "data_base64": "%"}, "data_base64"), ({"source": "a\nb"}, "source"),
    ({"data": {**BODY, "kind": "dance"}}, "body.kind"),
])  # fmt: skip
def test_a_wrong_envelope_names_the_attribute(changes: dict[str, Any], attribute: str) -> None:
    """What is missing or wrong is named, and its value is not shown (R-003-05)."""
    with pytest.raises(BadRecordError) as told:
        foreign.of_structured(structured(**changes))
    assert attribute == told.value.field
    assert "yesterday" not in str(told.value)


@pytest.mark.parametrize(("changes", "header"), [
    ({"id": None}, "ce-id"), ({"specversion": "2.0"}, "ce-specversion"), ({"time": "x"}, "ce-time"),
    ({"subject": "x"}, "ce-subject"), ({"source": "%ff"}, "ce-source"),
])  # fmt: skip
def test_a_wrong_request_names_the_header(changes: dict[str, Any], header: str) -> None:
    """In binary mode an attribute is a header, and is named as one."""
    with pytest.raises(BadRecordError) as told:
        foreign.of_headers(headers(**changes), orjson.dumps(BODY))
    assert header == told.value.field


def test_headers_are_decoded_as_the_binding_asks() -> None:
    """Percent-encoded and quoted values are read once; a header that is there twice must say the same."""
    raw, _ = foreign.of_headers(headers(source='"/a \\"b\\""', subject="acme/crm/%E5%BC%A0%25"), orjson.dumps(BODY))
    assert ('/a "b"', "张%") == (raw.source, raw.sender)
    foreign.of_headers([*headers(), (b"ce-id", b"A-1")], orjson.dumps(BODY))
    with pytest.raises(BadRecordError, match="twice"):
        foreign.of_headers([*headers(), (b"ce-id", b"A-2")], orjson.dumps(BODY))


@pytest.mark.parametrize(
    "extension", [{"partitionkey": "x"}, {"sampledrate": 3}, {"flag": True}, {"position": "a|1|2"}]
)
def test_unknown_extensions_change_nothing(extension: dict[str, Any]) -> None:
    """Extensions are the producer's own: ignored in every mode, also one that has the name of a header of ours."""
    assert foreign.of_structured(structured()) == foreign.of_structured(structured(**extension))
    assert foreign.of_headers(headers(), orjson.dumps(BODY)) == foreign.of_headers(
        headers(**extension), orjson.dumps(BODY)
    )


@pytest.mark.parametrize("trace", ["", "00-zz", 7, "0" * 4_000])
def test_a_broken_trace_costs_no_event(trace: object) -> None:
    """A trace header that is none is dropped; the customer's message is not."""
    raw, found = foreign.of_structured(structured(traceparent=trace))
    assert ("A-1", "") == (raw.id, found)


def test_the_trace_of_the_event_comes_before_that_of_the_hop() -> None:
    """The extension says where the event began, whichever header stands first; without it the hop's trace goes on."""
    began = TRACE.replace("4bf92f", "abcdef")
    own, hop = (b"ce-traceparent", began.encode()), (b"traceparent", TRACE.encode())
    rest = [pair for pair in headers() if pair[0] != b"traceparent"]
    for extra in ([own, hop], [hop, own]):
        assert began == foreign.of_headers([*rest, *extra], orjson.dumps(BODY))[1]
    assert TRACE == foreign.of_headers([*rest, hop], orjson.dumps(BODY))[1]


_LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_JSON = st.recursive(_LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=8)


@given(st.dictionaries(st.sampled_from([*CLOUD, "data_base64"]), _JSON, max_size=6))
def test_no_envelope_breaks_the_reader(changes: dict[str, Any]) -> None:
    """Whatever an attribute holds, the envelope is an event or a bad record that names a field."""
    with contextlib.suppress(BadRecordError):
        assert foreign.of_structured({**CLOUD, **changes})


@given(st.lists(st.tuples(st.sampled_from(["ce-id", "ce-time", "ce-source", "ce-subject"]), st.binary(max_size=30))))
def test_no_header_breaks_the_reader(changes: list[tuple[str, bytes]]) -> None:
    """The same for the bytes of headers."""
    kept = [(name, value) for name, value in headers() if name.decode().lower() not in dict(changes)]
    with contextlib.suppress(BadRecordError):
        assert foreign.of_headers([*kept, *((name.encode(), value) for name, value in changes)], orjson.dumps(BODY))
