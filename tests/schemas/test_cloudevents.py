"""Envelopes: the published header names, exact round trips, and refusals that name the header."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.cloudevents import child, headers_for, parse_headers, rfc3339, root
from schemas.errors import BadRecordError, ContractError
from schemas.topics import TOPICS

CONVERSATION = "shop-1/web/顾客|7"
TIME = 1_767_578_400_123
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
Raw = dict[str, bytes | None]


def given_headers() -> Raw:
    """All headers of an emit."""
    return dict(
        headers_for(
            id="e-1", type=TOPICS["plans"].type, source="interlock/planning", time_ms=TIME, subject=CONVERSATION,
            traceparent=TRACE, position=(CONVERSATION, 7, 2), previous=(6, 0),
        )
    )  # fmt: skip


def refusal(raw: Raw, topic: str = "plans") -> BadRecordError:
    """The error that these headers give."""
    with pytest.raises(BadRecordError) as caught:
        parse_headers(topic, raw.items())
    return caught.value


def test_header_names_and_values() -> None:
    """Names and values are those of the Kafka binding's binary mode: UTF-8, prefix ce_, plain content-type."""
    assert {
        "ce_specversion": b"1.0",
        "ce_id": b"e-1",
        "ce_source": b"interlock/planning",
        "ce_type": b"interlock.plans.v1",
        "ce_time": b"2026-01-05T02:00:00.123Z",
        "ce_dataschema": b"interlock:plans:1.0",
        "content-type": b"application/json",
        "ce_subject": CONVERSATION.encode(),
        "traceparent": TRACE.encode(),
        "ce_position": f"{CONVERSATION}|7|2".encode(),
        "ce_previous": b"6|0",
    } == given_headers()


def test_round_trip() -> None:
    """What is written is read back, also a conversation with the separator in it."""
    envelope = parse_headers("plans", given_headers().items())
    assert ("e-1", "interlock/planning", "interlock.plans.v1") == (envelope.id, envelope.source, envelope.type)
    assert (1, 0, CONVERSATION, TRACE) == (envelope.version, envelope.minor, envelope.subject, envelope.traceparent)
    assert ((CONVERSATION, 7, 2), (6, 0)) == (envelope.position, envelope.previous)


def test_extension_names_are_legal() -> None:
    """CloudEvents attribute names are lower-case letters and digits."""
    assert all(re.fullmatch(r"ce_[a-z0-9]{1,20}|content-type|traceparent", name) for name in given_headers())


def test_only_topics_types_are_written() -> None:
    """A writer can't make up a type."""
    with pytest.raises(ContractError, match="no CloudEvents type of a topic"):
        headers_for(id="e", type="interlock.plans.v9", source="interlock", time_ms=TIME)


@pytest.mark.parametrize("name", ["ce_specversion", "ce_id", "ce_source", "ce_type"])
@pytest.mark.parametrize("value", [None, b""])
def test_required_headers(name: str, value: bytes | None) -> None:
    """A record without one of the four required attributes is refused by the header's name."""
    error = refusal(given_headers() | {name: value})
    assert ("missing_header", f"header {name}", "plans") == (error.code, error.field, error.topic)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("ce_specversion", b"0.3", "wrong_header"),
        ("ce_type", b"interlock.plans.v2", "unknown_version"),
        ("ce_type", b"interlock.tools.calls.v1", "unknown_version"),
        ("ce_type", b"com.example.plan", "unknown_version"),
        ("ce_time", b"2026-01-05 02:00:00", "wrong_header"),
        ("ce_time", b"1767578400", "wrong_header"),
        ("ce_id", b"\xff", "wrong_header"),
        ("ce_id", b"a\x00b", "wrong_header"),
        ("ce_id", b"x" * 513, "wrong_header"),
        ("ce_dataschema", b"interlock:plans:1.x", "wrong_header"),
        ("ce_position", b"only-this", "wrong_header"),
        ("ce_position", b"|1|2", "wrong_header"),
        ("ce_position", b"a|-1|2", "wrong_header"),
        ("ce_position", "a|１|2".encode(), "wrong_header"),
        ("ce_previous", b"1", "wrong_header"),
        ("ce_previous", b"1|2|3", "wrong_header"),
        ("ce_previous", b"01|2", "wrong_header"),
        ("content-type", b"Application/CloudEvents+json", "wrong_header"),
    ],
)
def test_wrong_headers(name: str, value: bytes, code: str) -> None:
    """A header that is not as it should be is refused by name; its value is not shown."""
    error = refusal(given_headers() | {name: value})
    assert (code, f"header {name}") == (error.code, error.field)
    assert value.decode(errors="replace") not in str(error) or len(value) < 8


def test_a_header_twice() -> None:
    """Kafka allows a header twice: equal ones are one, different ones are refused."""
    headers = [*given_headers().items(), ("ce_id", b"e-1")]
    assert parse_headers("plans", headers).id == "e-1"
    with pytest.raises(BadRecordError, match="ce_id: there twice"):
        parse_headers("plans", [*headers, ("ce_id", b"e-2")])


def test_others_headers_are_theirs() -> None:
    """Headers of other tools are not read, whatever is in them."""
    extra: Raw = {"x-tool": b"\xff\x00", "baggage": None}
    assert parse_headers("plans", (given_headers() | extra).items()) == parse_headers("plans", given_headers().items())


def test_foreign_producers_may_write_bare_json() -> None:
    """On channel.raw nothing is required, and a foreign type is read as version 1; ours must be one we have."""
    assert ("", 1) == parse_headers("channel.raw", [])[:4:3]
    assert parse_headers("channel.raw", [("ce_type", b"com.example.said"), ("ce_id", b"p-9")]).id == "p-9"
    assert refusal({"ce_type": b"interlock.channel.raw.v2"}, "channel.raw").code == "unknown_version"


def test_a_newer_minor_version_is_seen() -> None:
    """The writer's minor version comes from our dataschema; another party's schema says nothing."""
    newer = given_headers() | {"ce_dataschema": b"interlock:plans:1.4"}
    assert parse_headers("plans", newer.items()).minor == 4
    foreign = given_headers() | {"ce_dataschema": b"https://example.com/plans/1.4"}
    assert parse_headers("plans", foreign.items()).minor == 0


@pytest.mark.parametrize(
    "trace", [b"", b"00-abc", b"00-" + b"0" * 32 + b"-00f067aa0ba902b7-01", TRACE.upper().encode()]
)
def test_a_broken_trace_is_no_fault_of_the_record(trace: bytes) -> None:
    """Tracing is never a reason to refuse: a broken traceparent is as none, as W3C asks."""
    assert parse_headers("plans", (given_headers() | {"traceparent": trace}).items()).traceparent == ""


def test_traceparent_of_the_extension() -> None:
    """The distributed tracing extension's own header is read where the plain one is missing."""
    raw = given_headers() | {"traceparent": None, "ce_traceparent": TRACE.encode()}
    assert parse_headers("plans", raw.items()).traceparent == TRACE


def test_spans_are_derived() -> None:
    """A child keeps trace and flags, and has a span of its own, the same at every replay (promise 5)."""
    span = child(TRACE, "e-1")
    assert span == child(TRACE, "e-1") != child(TRACE, "e-2")
    assert (TRACE[:36], TRACE[-3:]) == (span[:36], span[-3:])
    assert span[36:52] != TRACE[36:52]


@given(st.text(max_size=60), st.text(max_size=20).filter(lambda text: "\ud800" not in text))
def test_every_trace_is_valid(broken: str, seed: str) -> None:
    """Whatever the cause's trace was, its child is a valid W3C traceparent."""
    pattern = r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    assert re.fullmatch(pattern, child(broken, seed))
    assert re.fullmatch(pattern, root(seed))


@pytest.mark.parametrize(
    ("millis", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (TIME, "2026-01-05T02:00:00.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times(millis: int, text: str) -> None:
    """Milliseconds are written to the last digit, without passing through a float."""
    assert text == rfc3339(millis)


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(sorted(given_headers())) | st.text(max_size=8),
        st.none() | st.binary(max_size=40) | st.sampled_from(sorted(filter(None, given_headers().values()))),
    ),
    max_size=14,
)


@given(st.sampled_from(sorted(TOPICS)), HEADERS)
def test_any_headers_are_an_envelope_or_a_refusal(topic: str, headers: list[tuple[str, bytes | None]]) -> None:
    """No header makes the reader fail in any other way (promise 10)."""
    with contextlib.suppress(BadRecordError):
        assert parse_headers(topic, headers).version == 1
