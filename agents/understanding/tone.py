"""Language, sentiment and urgency of a text."""

from __future__ import annotations

import re
from typing import cast

from agents.understanding.lexicon import Lexicon, View
from agents.understanding.port import Context, Language, Sentiment, Urgency

_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]+(?:'[a-z]+)?(?![A-Za-z0-9])")  # OD100001 is no English word
# Words that Chinese customers write, too: alone they say nothing about the language.
_LOANS = frozenset({"ok", "okay", "yes", "no", "hi", "hello", "bye", "thx", "thanks", "pls", "vip", "app"})
_ONE_LANGUAGE = 0.8  # share of Chinese characters, or of English words, above which the other is a loan word


def language(text: str, context: Context) -> Language:
    """By script: Chinese characters against English words. A text without either keeps the last language, else zh."""
    han, words = len(_HAN.findall(text)), _WORD.findall(text)
    telling = han or any(word.lower() not in _LOANS for word in words)
    if not telling and (context.language in ("zh", "en", "mixed") or not words):
        return cast("Language", context.language or "zh")
    share = han / (han + len(words))
    if share >= _ONE_LANGUAGE:
        return "zh"
    return "en" if share <= 1 - _ONE_LANGUAGE else "mixed"


def sentiment(view: View, words: Lexicon) -> tuple[Sentiment, re.Match[str] | None]:
    """The first label whose words occur, and where; neutral without any."""
    for label, pattern in words.sentiment:
        match = pattern.search(view)
        if match:
            return cast("Sentiment", label), match
    return "neutral", None


def urgency(view: View, words: Lexicon) -> tuple[Urgency, re.Match[str] | None]:
    """The first label whose words occur, and where; medium without any (R-002-03)."""
    for label, pattern in words.urgency:
        match = pattern.search(view)
        if match:
            return cast("Urgency", label), match
    return "medium", None
