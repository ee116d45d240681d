"""Words that are nearly one another: a letter too many, too few, another or two in the wrong order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_LONG = 8  # letters from which on two slips still leave a word recognisable


def near(word: str, targets: Iterable[str]) -> bool:
    """Whether the word is one of the targets, give or take a slip (two in a long word; none in a short one)."""
    return any(_near(word.lower(), target) for target in targets)


@lru_cache(maxsize=8_192)
def _near(word: str, target: str) -> bool:
    if word == target:
        return True
    allowed = 0 if len(target) < 4 else 1 if len(target) < _LONG else 2
    return abs(len(word) - len(target)) <= allowed and _slips(word, target) <= allowed


def _slips(word: str, target: str) -> int:
    """Edit distance with swapped neighbours as one slip (optimal string alignment)."""
    before, last = list[int](), list(range(len(target) + 1))
    for row, char in enumerate(word, 1):
        this = [row]
        for column, other in enumerate(target, 1):
            cost = min(last[column] + 1, this[column - 1] + 1, last[column - 1] + (char != other))
            if row > 1 and column > 1 and char == target[column - 2] and word[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            this.append(cost)
        before, last = last, this
    return last[-1]
