"""Bytes to models: exact, strict, and never another error than BadRecordError."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas import codec
from schemas.base import MAX_MILLIS, MIN_MILLIS, readable
from schemas.delivery import OutboundMessage
from schemas.errors import CODES, BadRecordError, ContractError
from schemas.events import MessageBody, RawEvent
from schemas.topics import INPUT_TOPICS, TOPICS
from tests.schemas.versions import Price, QuoteV2, quotes, to_v2

T0 = 1_767_578_400_000
EVENT: dict[str, Any] = {
    "id": "p-1",
    "shop": "shop-1",
    "channel": "web",
    "sender": "顾客-1",
    "occurred_at": T0,
    "body": {"kind": "message", "message_id": "m-1", "text": "订单1001", "attachments": []},
}


def event(**changes: Any) -> bytes:
    """A raw event with other fields."""
    return orjson.dumps(EVENT | changes)


def body(**changes: Any) -> bytes:
    """A raw event with other fields in its body."""
    return event(body=EVENT["body"] | changes)


def refusal(value: bytes | None, topic: str = "channel.raw", kind: str = "") -> BadRecordError:
    """The error that these bytes give."""
    with pytest.raises(BadRecordError) as caught:
        codec.decode(topic, value, kind)
    return caught.value


def test_round_trip() -> None:
    """What a writer writes is canonical, and a reader reads the same model."""
    model = RawEvent(
        id="p-1", shop="s", channel="web", sender="顾客", body=MessageBody(kind="message", message_id="m", text="😭")
    )
    encoded = codec.encode(model)
    assert orjson.dumps(orjson.loads(encoded)) == encoded
    assert model == codec.decode("channel.raw", encoded)


def test_spaces_and_escapes_are_the_producers_choice() -> None:
    """Spaces, escapes and another order of fields are read as the same model."""
    spaced = orjson.dumps(EVENT, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    assert codec.decode("channel.raw", event()) == codec.decode("channel.raw", spaced)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "empty"),
        (b"", "not_json"),
        (b"\x00\x01\xfe", "not_utf8"),
        (b"\xef\xbb\xbf{}", "not_utf8"),
        ("{}".encode("utf-16"), "not_utf8"),
        (event()[:-9], "not_json"),
        (event() + b" {}", "not_json"),
        (event().replace(b"1767578400000", b"NaN"), "not_json"),
        (event().replace(b"1767578400000", b"-Infinity"), "not_json"),
        (event().replace(b"1767578400000", b"1e400"), "number_range"),
        (event().replace(b"1767578400000", b"9" * 20), "number_range"),
        (event().replace(b"1767578400000", b"9" * 5000), "number_range"),
        (event().replace(b'"id":"p-1"', b'"id":"p-1","id":"p-2"'), "repeated_key"),
        (event().replace(b'"text":', b'"text":"x","text":'), "repeated_key"),
        (event().replace(b'"text":', b'"te\\u0078t":"x","text":'), "repeated_key"),
        (b'{"id":' + b"[" * 65 + b"]" * 65 + b"}", "too_deep"),
        (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
        (body(text="x" * 1_048_576), "too_large"),
        (body(text="x" * 20_001), "wrong_value"),
        (b"[]", "wrong_type"),
        (b"null", "wrong_type"),
        (event(body=None), "wrong_type"),
        (event(body={}), "missing_field"),
        (body(kind="gift"), "wrong_value"),
        (event(sender="a/b"), "wrong_value"),
        (event(sender="~3"), "wrong_value"),
        (event(sender="a\x00"), "wrong_value"),
        (event(id="a\nb"), "wrong_value"),
        (event(extra=1), "unknown_field"),
        (body(extra=1), "unknown_field"),
        (b'{"id":"p-1"}', "missing_field"),
    ],
)
def test_refusals(value: bytes | None, code: str) -> None:
    """Whatever is wrong with the bytes has one code of the closed list, and names the topic."""
    error = refusal(value)
    assert (code, "channel.raw") == (error.code, error.topic)
    assert code in CODES


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (body(text=5), "body.text", "Input should be a valid string; found an integer"),
        (body(attachments=[{}]), "body.attachments.0.kind", "missing (and 1 more: body.attachments.0.ref)"),
        (
            event(body={"kind": "rating", "score": 5.0}),
            "body.score",
            "Input should be a valid integer; found a number",
        ),
        (event(**{"phone 13800000000": 1}), "<key of 17 characters>", "this version has no such field"),
        (event(sender="a/b"), "sender", "must have no '/'"),
        (event(occurred_at="2026-01-05"), "occurred_at", "expected UTC milliseconds since 1970, a whole number; found"),
        (body(kind="s3cret"), "body.kind", "expected one of 'message', 'recall'"),
        (event(body={}), "body.kind", "missing"),
        (b'{"id":"p-1","id":"p-2"}', "", "the key id is there twice"),
        (b"[]", "", "Input should be an object"),
    ],
)
def test_a_reason_names_the_field(value: bytes, field: str, reason: str) -> None:
    """A producer reads which field is wrong, what is expected, and what kind of thing was found (R-002-03)."""
    error = refusal(value)
    assert field == error.field
    assert error.reason.startswith(reason)


SECRETS = ("13800000000", "11010519491231002X")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "shape",
    [
        lambda s: event(id=s * 30),
        lambda s: body(kind=s),
        lambda s: event(occurred_at=s),
        lambda s: event(**{f"a {s}": 1}),
        lambda s: event(sender=f"{s}/"),
        lambda s: event(body=s),
        lambda s: event(body=[s]),
        lambda s: event()[:-1] + s.encode(),
        lambda s: body(attachments=[{"kind": s, "ref": "r"}]),
        lambda s: event()[:-1] + f',"{s}":1,"{s}":2}}'.encode(),
    ],
)
def test_a_reason_shows_no_value(shape: Any, secret: str) -> None:
    """Dead letters are read by people: no reason holds what may be a phone or an id card (promise 9)."""
    error = refusal(shape(secret))
    assert secret not in str(error)
    assert secret not in error.field
    assert error.__cause__ is None


def test_b05_long_integers_stay_exact() -> None:
    """Case B05: ids that come as 64-bit numbers are two ids, as exact decimal text."""
    template = event().replace(b'"m-1"', b"%d")
    ids = [9_007_199_254_740_992, 9_007_199_254_740_993, 2**63 + 1, 10**30 + 1]
    found = []
    for number in ids:
        data = codec.exact_ids(codec.parse(template % number, long_integers=True))
        found.append(codec.validate(RawEvent, data, "channel.raw").body.message_id)  # type: ignore[union-attr]
    assert list(map(str, ids)) == found


@pytest.mark.parametrize("value", [9007199254740993.0, True, None])
def test_b05_only_integers_become_ids(value: object) -> None:
    """Case B05: a float has lost its digits already, so it is no id; nor is true."""
    data = codec.exact_ids({"message_id": value, "count": 3, "parts": [{"ref": 7}]})
    assert value is data["message_id"]
    assert (3, "7") == (data["count"], data["parts"][0]["ref"])
    with pytest.raises(BadRecordError) as caught:
        codec.validate(MessageBody, {"kind": "message", "message_id": value, "text": ""})
    assert caught.value.code == "wrong_type"


def test_b05_a_strict_reader_takes_no_number_for_an_id() -> None:
    """Case B05: on a topic an id is text; a number there is a dead letter, never rounded."""
    assert refusal(body(message_id=9_007_199_254_740_993)).code == "wrong_type"


def test_b15_surrogate_pairs() -> None:
    """Case B15: an escaped pair is one character; half of one is refused, and can't be written either."""
    escaped = event().replace("订单1001".encode(), b"\\ud83d\\ude2d\\u9000\\u6b3e")
    model = codec.decode("channel.raw", escaped)
    assert model.body.text == "😭退款"
    assert "😭退款".encode() in codec.encode(model)
    for half in (b"\\ud83d", b"\\ude2d\\ud83d", b"\\ud83d!"):
        assert refusal(event().replace("订单1001".encode(), half)).code == "not_utf8"
    with pytest.raises(ValidationError):
        MessageBody(kind="message", message_id="m", text="\ud83d")


def test_b17_nul_and_zero_width() -> None:
    """Case B17: the record keeps every character for forensics; readable text only loses NUL."""
    text = "订单\x001001 订\u200b单1001退\u200b款"
    model = codec.decode("channel.raw", body(text=text))
    assert text == model.body.text == codec.decode("channel.raw", codec.encode(model)).body.text
    assert readable(model.body.text) == "订单1001 订\u200b单1001退\u200b款"


@pytest.mark.parametrize("value", [True, "1", 1.0, [1], "1767578400000", "50.00"])
def test_c23_no_coercion_to_an_integer(value: object) -> None:
    """Case C23: an integer is an integer; true, 1.0 and text stay what they are, and are refused."""
    assert refusal(event(occurred_at=value)).code == "wrong_type"
    assert refusal(event(body={"kind": "rating", "score": value})).code == "wrong_type"


def test_c23_numbers_where_numbers_are_asked() -> None:
    """Case C23: a number field takes an integer as the number that it is, and no text."""
    signal = {"signal_id": "s", "session_id": "s", "kind": "correction", "value": 1, "at": T0}
    assert codec.decode("feedback.signals", orjson.dumps(signal)).value == 1.0
    for value in ("1", "inf", True, None):
        assert refusal(orjson.dumps(signal | {"value": value}), "feedback.signals").code == "wrong_type"


def test_c23_extra_fields_by_rule() -> None:
    """Case C23: an unknown field is refused in a known version, and kept in a newer minor one."""
    assert refusal(event(ext={"a": 1})).field == "ext"
    kept = codec.decode("channel.raw", event(ext={"a": 1}), minor=1)
    assert {"a": 1} == orjson.loads(codec.encode(kept))["ext"]


@pytest.mark.parametrize(
    ("time", "unit"),
    [
        (1_767_578_400, "seconds"),
        (1_767_578_400_000_000, "microseconds"),
        (1_767_578_400_000_000_000, "nanoseconds"),
        (7, "2000 to 9999"),
    ],
)
def test_d15_a_wrong_unit_is_named(time: int, unit: str) -> None:
    """Case D15: a time in another unit is refused, never put in 1970 or beyond, and the reason names the unit."""
    error = refusal(event(occurred_at=time))
    assert ("wrong_time", "occurred_at") == (error.code, error.field)
    assert unit in error.reason


@pytest.mark.parametrize("time", [MIN_MILLIS, T0, MAX_MILLIS, None])
def test_d15_milliseconds_pass(time: int | None) -> None:
    """Case D15: milliseconds of the years 2000 to 9999, and no clock at all, are fine."""
    assert codec.decode("channel.raw", event(occurred_at=time)).occurred_at == time


def test_versions_of_a_type() -> None:
    """A version that the reader does not have is refused with those it has; a foreign type is fine on channel.raw."""
    error = refusal(event(), kind="interlock.channel.raw.v2")
    assert ("unknown_version", "header ce_type") == (error.code, error.field)
    assert "interlock.channel.raw.v1" in error.reason
    assert codec.decode("channel.raw", event(), "com.example.said").id == "p-1"
    assert refusal(b"{}", "plans", "com.example.plan").code == "unknown_version"


def test_an_older_major_version_is_lifted() -> None:
    """A newer reader reads the older version's records, as the newer model."""
    old = b'{"quote_id":"q-1","amount":"50"}'
    assert QuoteV2(quote_id="q-1", prices=(Price(fen=5000),)) == codec.decode_as(LIFTED, old, "interlock.quotes.v1")
    with pytest.raises(BadRecordError, match="quotes prices: missing"):
        codec.decode_as(LIFTED, old, "interlock.quotes.v2")


LIFTED = quotes(upgrade=f"{to_v2.__module__}:to_v2")


def test_a_version_needs_its_upgrade() -> None:
    """A topic whose new version says not how to read the old one can't be built."""
    with pytest.raises(ContractError, match="names no upgrade"):
        quotes()


def test_fields_of_a_newer_minor_version_are_kept() -> None:
    """Unknown fields of a newer writer pass through this reader at every depth, and are dropped by none (R-002-46)."""
    newer = {
        "quote_id": "q",
        "prices": [{"fen": 1}, {"fen": 2, "tax": 3}],
        "by_size": {"L": {"fen": 4, "x": [5]}},
        "note": "新",
    }
    model = codec.decode_as(LIFTED, orjson.dumps(newer), minor=2)
    assert newer == orjson.loads(codec.encode(model))
    with pytest.raises(BadRecordError, match="no such field"):
        codec.decode_as(LIFTED, orjson.dumps(newer), minor=1)


def test_a_newer_minor_version_still_has_our_fields() -> None:
    """A newer minor version may add; what we know must be there and right."""
    with pytest.raises(BadRecordError, match=r"prices\.0\.fen"):
        codec.decode_as(LIFTED, b'{"quote_id":"q","prices":[{"fen":"1"}]}', minor=9)


def test_writers_refuse_unknown_fields() -> None:
    """A writer can't invent a field, a type or a number that is none."""
    fields: dict[str, Any] = {"kind": "message", "message_id": "m", "text": ""}
    for wrong in ({"extra": 1}, {"text": 5}, {"message_id": True}):
        with pytest.raises(ValidationError):
            MessageBody(**(fields | wrong))


@pytest.mark.parametrize("value", ["\ud83d", 1 << 70])
def test_what_json_cant_hold_is_our_bug(value: object) -> None:
    """A free field with what JSON can't hold is refused when it is written, not when it is read."""
    message = OutboundMessage(
        message_id="r-1", session_id="s-1", kind="reply", template_id="t", params={"x": value}, language="zh", text=""
    )
    with pytest.raises(ContractError, match="OutboundMessage"):
        codec.encode(message)


def test_plain_data_is_checked_as_strictly() -> None:
    """Data from elsewhere, such as YAML, passes the same checks as bytes do."""
    assert codec.validate(RawEvent, EVENT).body.kind == "message"
    for wrong in (EVENT | {"extra": 1}, EVENT | {"id": 1 << 70}, EVENT | {"id": object()}):
        with pytest.raises(BadRecordError):
            codec.validate(RawEvent, wrong)


def test_registers_take_deeper_records() -> None:
    """What fits into an input record also fits, quoted, into the diff that handles it."""
    deepest = max(TOPICS[name].manifest.max_depth for name in INPUT_TOPICS)
    assert deepest + 32 <= TOPICS["state.diffs"].manifest.max_depth


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(sorted(EVENT)), inner, max_size=4)
    ),
    max_leaves=12,
)
NEARLY = st.builds(lambda changes: EVENT | changes, st.dictionaries(st.sampled_from(sorted(EVENT)), JSON, max_size=2))
CUT = st.builds(lambda at, junk: event()[:at] + junk + event()[at:], st.integers(0, 150), st.binary(max_size=4))


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        return repr(value).encode(errors="replace")


@given(st.sampled_from(sorted(TOPICS)), st.binary(max_size=60) | CUT | st.builds(_dumped, JSON | NEARLY), st.booleans())
def test_any_bytes_are_a_model_or_a_refusal(topic: str, value: bytes, newer: bool) -> None:  # noqa: FBT001 - drawn
    """No bytes make the reader fail in any other way; what it takes, it can write (promise 10)."""
    with contextlib.suppress(BadRecordError):
        model = codec.decode(topic, value, minor=int(newer))
        assert model == codec.decode(topic, codec.encode(model), minor=int(newer))


@pytest.mark.parametrize(("body", "field"), [
    ({"score": 10**30}, "body.score"), ({"list": [1, {"deep": -(10**30)}]}, "body.list.1.deep"),
    ({"a key that is data": 2**64}, "body.<key of 18 characters>"),
])  # fmt: skip
def test_an_integer_that_json_can_not_hold_is_named(body: dict[str, Any], field: str) -> None:
    """An integer beyond 64 bits is refused under its field's name, wherever it stands."""
    with pytest.raises(BadRecordError) as caught:
        codec.validate(RawEvent, {**EVENT, "body": body})

    assert ("not_json", field) == (caught.value.code, caught.value.field)
