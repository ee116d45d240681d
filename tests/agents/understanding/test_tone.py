"""Language, sentiment, urgency."""

from __future__ import annotations

import pytest

from tests.agents.understanding.reader import read


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我要退款", "zh"),
        ("I want a refund", "en"),
        ("订单OD100001退款", "zh"),
        ("订单1001退款，谢谢，ok", "zh"),
        ("我的order 1001 status是什么，可以refund吗", "mixed"),
        ("1001", "zh"),
        ("", "zh"),
    ],
)
def test_language_follows_the_script(text: str, language: str) -> None:
    """Language by share of Chinese characters and English words; a loan word changes nothing (case F13, R-002-03)."""
    assert language == read(text).language


@pytest.mark.parametrize("text", ["1001", "👍", ""])
def test_a_text_without_words_keeps_the_language(text: str) -> None:
    """A bare number is answered in the language spoken so far."""
    assert "en" == read(text, language="en").language


@pytest.mark.parametrize(
    ("text", "sentiment"),
    [
        ("你们太过分了，气死我了！", "angry"),
        ("this is a scam", "angry"),
        ("怎么还没到", "impatient"),
        ("still waiting", "impatient"),
        ("到了吗？？？", "impatient"),
        ("有点失望", "disappointed"),
        ("I'm disappointed", "disappointed"),
        ("太好了，谢谢", "pleased"),
        ("不喜欢，退款", "neutral"),
        ("我要退款", "neutral"),
    ],
)
def test_sentiment_has_five_labels(text: str, sentiment: str) -> None:
    """Angry, impatient, disappointed, neutral or pleased (R-003-14)."""
    assert sentiment == read(text).sentiment


@pytest.mark.parametrize(
    ("text", "urgency"),
    [
        ("加急，马上要用", "high"),
        ("ASAP please", "high"),
        ("不急，有空再说", "low"),
        ("no rush", "low"),
        ("我要退款", "medium"),
    ],
)
def test_urgency_is_medium_unless_said(text: str, urgency: str) -> None:
    """Urgency is low, medium or high, medium by default (R-002-03)."""
    assert urgency == read(text).urgency
