"""Folding: what the patterns see, and the way back to the raw text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.understanding.fold import fold, scrub
from tests.agents.understanding.reader import slots, spans


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("订单\x001001", "订单1001"),
        ("订\u200b单1001退\u200b款", "订单1001退款"),
        ("\u202a1001\u202c", "1001"),
        ("\u200e1001", "1001"),
        ("２０２６，Ａ", "2026, A"),
        ("幺三八零零零零零零零零", "13800000000"),
        ("三天", "三天"),
        ("②", "2"),
    ],
)
def test_patterns_see_folded_text(raw: str, seen: str) -> None:
    """Widths are folded, invisible characters ignored, long spoken numbers are digits (cases B17, B27, F05, F11)."""
    assert seen == fold(raw).text


def test_a_span_leads_back_to_the_raw_text() -> None:
    """Evidence points at the raw characters, invisible ones between them included (R-002-48, case B17)."""
    raw = "订\u200b单号：１００\u200b１，退\u200b款"

    assert ["１００\u200b１"] == spans(raw, "order_id")
    assert "1001" == slots(raw)["order_id"]


@given(st.text())
def test_every_folded_character_has_a_raw_origin(raw: str) -> None:
    """The map is as long as the folded text, never goes back, and stays inside the raw text (R-002-48)."""
    folded = fold(raw)

    assert len(folded.text) == len(folded.origin)
    assert sorted(folded.origin) == list(folded.origin)
    assert all(0 <= index < len(raw) for index in folded.origin)


@pytest.mark.parametrize(
    ("raw", "kept"), [("a\x00b", "ab"), ("\ud83d退款", "?退款"), ("\U0001f62d退款", "\U0001f62d退款")]
)
def test_stores_get_no_nul_and_no_lone_surrogate(raw: str, kept: str) -> None:
    """NUL is removed, a lone half is replaced, an emoji stays one emoji (cases B15, B17)."""
    assert kept == scrub(raw)
    assert kept.encode("utf-8")


def test_one_character_does_not_become_a_sentence() -> None:
    """U+FDFA folds to eighteen characters: 20,000 of it would be a text of 360,000 (promise 10)."""
    assert 40 >= len(fold("\ufdfa" * 10).text)
    assert "1⁄2" == fold("½").text
