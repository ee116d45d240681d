"""For any text, however damaged: nothing raises, every span indexes the raw text, and time grows with length only."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.understanding.fold import fold
from agents.understanding.slots import entities

PIECES = [
    "订单", "1001 1002 1003", "２０２６", "one zero ", "double oh ", "nine", "O D ", "#W7736983", "幺三八", "零", "\n",
    "，", "um ", "呃", "my name is Ada ", "我叫", "zip code ", "19122", "Denver, 80280", "ten dollars", "五毛",
    "1e3元", "三天前", "十一点", "last ", "friday", "before ", "2026-13-45", "上上个月31号", "地址改成", "A路",
    "gold account", "invoce #", "00108", "SKU-", "size ", "XL码", "\ud83d", "\u200b", "\u202a", "\x00", "é", "𝟙",
    "a@b.cn", "Ⅳ", "㊿", "½", "ﷺ", "壹佰", " ",
]  # fmt: skip
RUNS = ["one ", "my name is a ", "invoice ", "live in ", "(", "Ada ", "zip ", "::", "a_b_", "twenty "]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=14).map("".join)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS)
def test_every_span_indexes_the_raw_text(raw: str) -> None:
    """Evidence spans lie in the raw text, whatever was folded, mended or said in words (R-002-48; cases B15, B17)."""
    assert all(0 <= found.start < found.end <= len(raw) and found.value for found in entities(raw))


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_a_folded_text_keeps_its_order(raw: str) -> None:
    """Each folded character knows its raw span, and spans never run backwards."""
    folded = fold(raw)
    spans = list(zip(folded.origin, folded.ends, strict=True))

    assert len(spans) == len(folded.text)
    assert all(0 <= start < end <= len(raw) for start, end in spans)
    assert all(left[0] <= right[0] and left[1] <= right[1] for left, right in pairwise(spans))


@pytest.mark.parametrize("piece", [*PIECES, *RUNS])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    """A pattern that repeats for 20,000 characters is read in bounded time: no pattern runs away (promise 10)."""
    text = (piece * 20_000)[:20_000]
    started = time.process_time()
    entities(text)

    assert time.process_time() - started < 3  # measured: 0.7 s at most; a runaway pattern takes minutes
