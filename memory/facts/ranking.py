"""How near a fact is to what was asked: one score for both stores, so that both give the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memory.facts.port import Fact, Hit
from memory.facts.vectors import CONCEPT, Vector, tokens

MEANING = 0.6  # the vector's part of a score; the rest is the share of the asked words that the fact has
FLOOR = 0.1  # below it only n-grams met by chance
_NUMBER_WEIGHT, _MEANING_WEIGHT = 4.0, 2.0  # an order number says more than a pair of characters


def fact_text(fact: Fact) -> str:
    """What is embedded and indexed of a fact: the summary and the values of its key fields."""
    return " ".join([fact.summary, *_leaves(fact.fields)])


def ranked(asked: str, vector: Vector, found: Iterable[tuple[Fact, Vector]], top: int) -> list[Hit]:
    """The best of what was found; of two alike the newer first."""
    weights = {token: _weight(token) for token in tokens(asked)}
    whole = sum(weights.values()) or 1.0
    hits = []
    for fact, its_vector in found:
        has = weights.keys() & set(tokens(fact_text(fact)))
        words = sum(weights[token] for token in has) / whole
        score = MEANING * cosine(vector, its_vector) + (1 - MEANING) * words
        if score >= FLOOR:
            hits.append(Hit(fact, round(min(1.0, score), 6)))
    return sorted(hits, key=lambda hit: (-hit.score, -hit.fact.at, hit.fact.write_id))[:top]


def cosine(left: Vector, right: Vector) -> float:
    """0 to 1; 0 for vectors of different kinds or without length."""
    if left.shape != right.shape:
        return 0.0
    lengths = float(np.linalg.norm(left)) * float(np.linalg.norm(right))
    return max(0.0, float(left @ right) / lengths) if lengths else 0.0


def newest(facts: Sequence[Fact], top: int) -> list[Hit]:
    """What a search without text gives."""
    return [Hit(fact, 0.0) for fact in sorted(facts, key=lambda one: (-one.at, one.write_id))[:top]]


def _weight(token: str) -> float:
    if token.startswith(CONCEPT):
        return _MEANING_WEIGHT
    return _NUMBER_WEIGHT if token.isdigit() and len(token) > 3 else 1.0


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
