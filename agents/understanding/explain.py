"""Why a text was read as it was: the patterns that matched, and the grams that spoke for the classifier's guesses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents.understanding.fold import fold
from agents.understanding.lexicon import Lexicon, View
from agents.understanding.model.classify import IntentModel

_GUESSES = 3


@dataclass(frozen=True, slots=True)
class Ground:
    """One thing that speaks for an intent: `source` is the rule's strength or `model`, `weight` its score or share."""

    intent: str
    source: str
    weight: float
    words: str


def grounds(text: str, words: Lexicon, model: IntentModel | None = None) -> list[Ground]:
    """What spoke for which intent in `text`, rules before the model; what was overruled is there, too."""
    return [*_of_rules(text, words), *(_of_model(text, model) if model is not None else ())]


def _of_rules(text: str, words: Lexicon) -> Iterator[Ground]:
    view = View(fold(text).text)
    seen: set[tuple[str, str, str]] = set()
    for script in view.scripts:
        for pattern, regex in words.patterns[script]:
            for match in regex.finditer(view.text):
                found = (pattern.intent, pattern.strength, match[0].strip())
                if found not in seen:
                    seen.add(found)
                    yield Ground(pattern.intent, pattern.strength, pattern.base, found[2])
    for pattern in words.whole:
        if pattern.words.fullmatch(view, 0, len(view.text)):
            yield Ground(pattern.intent, pattern.strength, pattern.base, view.text)


def _of_model(text: str, model: IntentModel) -> Iterator[Ground]:
    for guess in model.guesses(text)[:_GUESSES]:
        spoke = ", ".join(f"{gram.strip()!r} {share:+.2f}" for gram, share in model.why(text, guess.intent, 6))
        yield Ground(guess.intent, "model", guess.probability, spoke)
