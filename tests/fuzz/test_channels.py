"""The channels' fuzzer: a short seeded run of each, free-form pushes by hypothesis, and that it finds faults."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.channels.port import Push, Taken
from tests.fuzz.channels import CHANNELS, Reader, judge, run
from tests.fuzz.pushes import Pushed, Source
from tests.streams.channels import wechat_side as side

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8,
)  # fmt: skip
NAMES = st.sampled_from(("shop", "sender", "recording_id", "message_id", "text", "images", "part", "spoken_at", "body"))


@pytest.mark.parametrize("name", CHANNELS)
def test_pushes_end_as_messages_events_or_refusals(name: str) -> None:
    """Generated and mutated pushes: nothing crashes, refusals name a field, evidence stays inside the raw text."""
    counts, faults = run(name, "fast", 120)

    assert [] == faults
    assert counts["message"]
    assert any(what.startswith("refused 4") for what in counts)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(("voice", "ocr", "web")), st.dictionaries(NAMES, JSON, max_size=6) | JSON)
def test_any_json_is_judged(name: str, value: object) -> None:
    """Whatever JSON a channel sends is taken or refused with a field."""
    body = json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")

    assert [] == list(judge(Source("h", name), Reader(), Pushed(Push(side.NOW, body), good=False)))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(("wechat", "wechat-aes")), st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_judged(name: str, body: bytes) -> None:
    """Whatever a signed WeChat push holds, also inside the encryption, is taken or refused with a field."""
    push = side.push(body) if name == "wechat" else side.encrypted(body)

    assert [] == list(judge(Source("h", name), Reader(), Pushed(push, good=False)))


def test_the_fuzzer_sees_a_crash_and_a_refusal_without_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """A door that crashes, takes nothing or refuses a good push is reported (the fuzzer itself can fail)."""
    source = Source("x", "voice")
    good = dataclasses.replace(source.next(), good=True)

    source.read = lambda _push: Taken()
    assert ["taken, and nothing came of it"] == list(judge(source, Reader(), good))
    bad = Pushed(Push(side.NOW, b"{"), good=True)
    assert "as it should be" in next(judge(Source("x", "voice"), Reader(), bad))
    monkeypatch.setattr("tests.fuzz.pushes.voice.read", lambda _push: 1 / 0)
    _, faults = run("voice", "x", 1)
    assert "ZeroDivisionError" in faults[0]
