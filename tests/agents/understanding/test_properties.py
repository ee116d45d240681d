"""For any text there is a valid, masked message whose evidence indexes the raw text, in bounded time."""

from __future__ import annotations

import time
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agents.understanding.normalize import masked, normalized
from agents.understanding.port import Context, Expects
from memory.masking import mask
from schemas.events import Seal
from schemas.messages import MessageRef, NormalizedMessage
from tests.agents.heard import T0
from tests.agents.understanding.reader import RULES, read

PIECES = [
    "退款",
    "我要",
    "退1001",
    "订单",
    "OD100001",
    "13800000000",
    "物流",
    "，",
    "。",
    "再顺便",
    "50元",
    "¥",
    "1,000",
    "地址改成",
    "A路1号",
    "refund",
    "order",
    "and",
    "12 Oak Street",
    "because ",
    "是",
    "不",
    "\x00",
    "\u200b",
    "\u202a",
    "😭",
    "１００",
    "幺三八零零零零零零零零",
    "一百二十块",
    "$50",
    "\n",
    " ",
    "人工",
    "size M",
    "蓝裙子",
    "昨天",
    "'",
    '"',
    "\\",
    "%",
]
TEXTS = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
CONTEXTS = st.builds(
    Context,
    flow=st.sampled_from([None, "refund", "change_address"]),
    expects=st.sampled_from([None, *get_args(Expects)]),
    language=st.sampled_from([None, "en"]),
)
REF = MessageRef(message_id="m-1", event_id="ev-1", session_id="s-1", at=T0)


def _seal(plaintext: bytes) -> Seal:
    return Seal(key_id="k-1", nonce="n", sealed=plaintext.hex())


def _details(message: NormalizedMessage) -> list[str]:
    item, address = message.target_item, message.address
    found = [
        item and item.order_id,
        item and item.sku_id,
        address and address.text,
        address and address.phone,
        message.reason,
    ]
    return [text for text in found if text]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, CONTEXTS)
@example("订单\x00", Context())
@example('订单1001","amount":"9999', Context())
def test_any_text_becomes_a_valid_message(raw: str, context: Context) -> None:
    """Any text gives a message that its contract accepts, also after a round trip, and never an error (R-002-03)."""
    message = normalized(RULES.read(raw, context), raw, REF, _seal)

    assert message == NormalizedMessage.model_validate_json(message.model_dump_json())
    assert all(0 <= found.start < found.end <= len(raw) for found in message.evidence)
    assert 0 <= message.confidence <= 0.99
    published = [message.text, *(found.value for found in message.evidence), *_details(message)]
    assert published == [mask(text)[0] for text in published]


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_any_text_is_masked_in_full(raw: str) -> None:
    """A masked text has the raw one's length, and nothing to mask is left in it (R-000-12)."""
    shown = masked(raw)

    assert len(raw) == len(shown)
    assert shown == mask(shown)[0]


@settings(max_examples=100, deadline=None)
@given(TEXTS, CONTEXTS)
def test_reading_is_pure(raw: str, context: Context) -> None:
    """The same text and context give the same reading (promise 5)."""
    assert RULES.read(raw, context) == RULES.read(raw, context)


@pytest.mark.parametrize(
    "piece",
    ["市路", " ", "\n", "1 ", "1,", "address to ", "want refund ", "退", "一点", "再", "，", "a@b.", "\u200b", "地址 "],
)
def test_a_long_message_is_read_in_bounded_time(piece: str) -> None:
    """No pattern runs away on the longest message that a contract lets in: 20,000 characters (case E15)."""
    text = (piece * 20_000)[:19_999] + "x"
    started = time.perf_counter()
    read(text, "address")

    assert time.perf_counter() - started < 5  # measured: 0.6 s at most; a runaway pattern takes minutes
