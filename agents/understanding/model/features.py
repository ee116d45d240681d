"""The features of the intent model: word n-grams and character n-grams of a folded text; pure and in order.

Numbers are two signs, one for those that name an order and one for amounts and counts: which order is meant says
nothing of what is wanted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from agents.understanding.fold import fold

FEATURES_VERSION = 1  # a model file of another version was fitted on other features, and is refused
MODEL_CHARS = 400  # characters that are looked at: a wish stands in the first ones, and time stays bounded

_MONEY = re.compile(r"[$¥€£] ?[0-9][0-9.,]*|[0-9][0-9.,]* ?(?=元|块|[$€£¥]|dollars?|euros?|yuan|bucks)")
_NAMED = re.compile(r"[a-z]{0,3}[0-9]{4,}(?:[- ][0-9]{3,})*")
_COUNT = re.compile(r"[0-9][0-9.,:/-]*")
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|[#0?]|[\u3400-\u9fff]+")
_LONGEST_WORD = 24  # beyond it stands no word but a key of somebody's keyboard


def prepared(text: str) -> str:
    """The text as the n-grams are cut from it: folded, lower case, numbers as one sign."""
    plain = _MONEY.sub("0", fold(text[:MODEL_CHARS]).text.lower())
    return _COUNT.sub("0", _NAMED.sub("#", plain))


def grams(text: str) -> Counter[str]:
    """How often each n-gram occurs in a text."""
    return Counter(_grams(prepared(text)))


def _grams(text: str) -> Iterator[str]:
    before, last = "", "^"
    for token in _TOKEN.findall(text):
        if token[0] >= "\u3400":
            yield from _han(token)
            before, last = "", "^"
            continue
        yield token
        yield f"{last} {token}"
        if before:
            yield f"{before} {last} {token}"
        before, last = last, token
        if len(token) > 2:
            yield from _letters(f"<{token[:_LONGEST_WORD]}>")


def _letters(word: str) -> Iterator[str]:
    """Character n-grams inside one word, so that a misspelt one is still near the right one."""
    for size in (3, 4, 5):
        for start in range(len(word) - size + 1):
            yield f"_{word[start : start + size]}"


def _han(run: str) -> Iterator[str]:
    edged = f"^{run}$"
    yield from run
    for size in (2, 3):
        for start in range(len(edged) - size + 1):
            yield edged[start : start + size]


def damped(count: int) -> float:
    """A gram said twice does not count double."""
    return 1.0 + math.log(count)
