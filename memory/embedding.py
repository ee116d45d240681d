"""The embedded vector of a text: hashed character and word n-grams, the same on every machine, Chinese and English."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

NAME = "hashed n-grams v1"
BUCKETS = 1 << 16  # a message has some 30 n-grams: two of them meet in a bucket once in a hundred messages

Vector = Mapping[int, float]
"""The buckets that are not zero; the length is 1."""
Embed = Callable[[Sequence[str]], Sequence[Vector]]
"""The port of an embedding server: one vector for each text, whatever its dimensions."""

_WORDS = re.compile(r"[a-z]+|[0-9]+|[\u3400-\u9fff]+")


def grams(text: str) -> list[str]:
    """English words with their trigrams, pairs of Chinese characters, numbers whole."""
    found: list[str] = []
    for word in _WORDS.findall(text.lower()):
        if word[0] > "z":
            found += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        else:
            found.append(word)
            found += [word[at : at + 3] for at in range(len(word) - 3)] if word[0] > "9" else ()
    return found


@lru_cache(maxsize=65_536)
def _bucket(gram: str) -> int:
    return zlib.crc32(gram.encode()) % BUCKETS


@lru_cache(maxsize=16_384)
def vector(text: str) -> Vector:
    """The text's vector; an empty one for a text without letters and digits."""
    counts = Counter(map(_bucket, grams(text)))
    length = math.sqrt(sum(value * value for value in counts.values()))
    return {bucket: value / length for bucket, value in counts.items()}


def embedded(texts: Sequence[str]) -> Sequence[Vector]:
    """The default behind the port."""
    return [vector(text) for text in texts]


def similarity(left: Vector, right: Vector) -> float:
    """Cosine of two vectors, 0 to 1."""
    small, large = (left, right) if len(left) <= len(right) else (right, left)
    return sum(value * large[bucket] for bucket, value in small.items() if bucket in large)


def nearest(text: str, texts: Sequence[str], most: int) -> list[int]:
    """Indexes of at most `most` of the texts, those that share most n-grams with `text`, of two alike the later.

    A first look that costs little: a text that shares no n-gram has similarity 0.
    """
    if len(texts) <= most:
        return list(range(len(texts)))
    asked = set(grams(text))
    shared = [sum(gram in one for gram in asked) for one in map(str.lower, texts)]
    return sorted(range(len(texts)), key=lambda at: (shared[at], at), reverse=True)[:most]
