"""The embedded vector of a text: hashed character and word n-grams, the same on every machine, Chinese and English."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

NAME = "hashed n-grams v1"
BUCKETS = 1 << 16  # a message has some 60 n-grams: two of them meet in a bucket once in a thousand messages

Vector = Mapping[int, float]
"""The buckets that are not zero; the length is 1."""
Embed = Callable[[Sequence[str]], Sequence[Vector]]
"""The port of an embedding server: one vector for each text, whatever its dimensions."""

_WORDS = re.compile(r"[a-z]+|[0-9]+|[\u3400-\u9fff]+")


def _grams(text: str) -> list[str]:
    """Words and their trigrams in English, characters and pairs of them in Chinese, numbers whole."""
    grams: list[str] = []
    for word in _WORDS.findall(text.lower()):
        if word[0].isascii():
            grams.append(word)
            grams += [word[at : at + 3] for at in range(len(word) - 3)] if word[0].isalpha() else []
        else:
            grams += word
            grams += [word[at : at + 2] for at in range(len(word) - 1)]
    return grams


@lru_cache(maxsize=16_384)
def vector(text: str) -> Vector:
    """The text's vector; an empty one for a text without letters and digits."""
    counts: dict[int, float] = {}
    for gram in _grams(text):
        bucket = zlib.crc32(gram.encode()) % BUCKETS
        counts[bucket] = counts.get(bucket, 0.0) + 1.0
    length = math.sqrt(sum(value * value for value in counts.values()))
    return {bucket: value / length for bucket, value in counts.items()}


def embedded(texts: Sequence[str]) -> Sequence[Vector]:
    """The default behind the port."""
    return [vector(text) for text in texts]


def similarity(left: Vector, right: Vector) -> float:
    """Cosine of two vectors, 0 to 1."""
    small, large = (left, right) if len(left) <= len(right) else (right, left)
    return sum(value * large.get(bucket, 0.0) for bucket, value in small.items())
