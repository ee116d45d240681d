"""The fitted intent model at work: n-grams to calibrated probabilities; pure, and the same on every machine.

Weights and features are whole numbers, so a sum is exact whatever the order in which a processor adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agents.understanding.model.features import damped, grams

FINE = 64  # steps of a feature's value between two whole numbers


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a model was fitted on, by what, and how well it read what it had not seen."""

    data_hash: str
    examples: int
    languages: tuple[str, ...]
    library: str
    metrics: Mapping[str, float]

    @property
    def version(self) -> str:
        """The data's hash, short: two models of the same data are the same."""
        return self.data_hash[:12]


@dataclass(frozen=True, slots=True)
class Guess:
    """An intent and the probability that it is meant."""

    intent: str
    probability: float


@dataclass(frozen=True, eq=False, slots=True)
class IntentModel:
    """A linear classifier. `weights` has a row a gram and a column an intent, in units of `scale` a column.

    Grams that it does not know are as rare as `unknown` and speak for nothing: a text that is full of them is one
    that it can say little about.
    """

    intents: tuple[str, ...]
    vocabulary: Mapping[str, int]
    rarity: npt.NDArray[np.float64]
    weights: npt.NDArray[np.int16]
    scale: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]
    temperature: float
    unknown: float
    stamp: Stamp

    def guesses(self, text: str) -> list[Guess]:
        """All intents, the likeliest first; empty where no gram of the text is known."""
        known, length = self._read(text)
        if not known:
            return []
        values = np.array([value for _, _, value in known], dtype=np.int64)
        exact = values @ self.weights[[row for _, row, _ in known]].astype(np.int64)
        powers = (exact * self.scale / length + self.bias) / self.temperature
        shares = np.exp(powers - powers.max())
        shares = shares / shares.sum()
        # Rounded before they are ranked: the last bits of a power may differ from one processor to another.
        found = [Guess(intent, round(share, 4)) for share, intent in zip(shares.tolist(), self.intents, strict=True)]
        return sorted(found, key=lambda guess: (-guess.probability, guess.intent))

    def why(self, text: str, intent: str, most: int = 8) -> list[tuple[str, float]]:
        """The grams of a text that spoke for an intent, the strongest first, with what each added to its score."""
        known, length = self._read(text)
        if intent not in self.intents:
            return []
        column = self.intents.index(intent)
        unit = float(self.scale[column]) / length if known else 0.0
        shares = [(gram, round(value * int(self.weights[row, column]) * unit, 3)) for gram, row, value in known]
        return sorted((pair for pair in shares if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))[:most]

    def _read(self, text: str) -> tuple[list[tuple[str, int, int]], float]:
        """The known grams, each with its row and its value in whole steps, and the length of the whole text."""
        known: list[tuple[str, int, int]] = []
        squares = 0
        for gram, count in grams(text).items():
            row = self.vocabulary.get(gram)
            value = round(FINE * damped(count) * (self.unknown if row is None else float(self.rarity[row])))
            squares += value * value
            if row is not None:
                known.append((gram, row, value))
        return known, math.sqrt(squares)
