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
    """A linear classifier. `weights` has a row a gram and a column an intent, in units of `scale` a column."""

    intents: tuple[str, ...]
    vocabulary: Mapping[str, int]
    rarity: npt.NDArray[np.float64]
    weights: npt.NDArray[np.int16]
    scale: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]
    temperature: float
    stamp: Stamp

    def guesses(self, text: str) -> list[Guess]:
        """All intents, the likeliest first; empty where no gram of the text is known."""
        rows, values = self._known(text)
        if not rows:
            return []
        powers = self._scores(rows, values) / self.temperature
        shares = np.exp(powers - powers.max())
        shares = shares / shares.sum()
        ranked = sorted(zip(shares.tolist(), self.intents, strict=True), key=lambda pair: (-pair[0], pair[1]))
        return [Guess(intent, round(share, 4)) for share, intent in ranked]

    def why(self, text: str, intent: str, most: int = 8) -> list[tuple[str, float]]:
        """The grams of a text that spoke for an intent, the strongest first, with what each added to its score."""
        rows, values = self._known(text)
        if not rows or intent not in self.intents:
            return []
        column = self.intents.index(intent)
        unit = float(self.scale[column]) / math.sqrt(sum(value * value for value in values))
        names = {row: gram for gram in grams(text) if (row := self.vocabulary.get(gram)) is not None}
        shares = [(names[row], value * int(self.weights[row, column]) * unit)
                  for row, value in zip(rows, values, strict=True)]  # fmt: skip
        return sorted(((gram, round(share, 3)) for gram, share in shares if share > 0),
                      key=lambda pair: (-pair[1], pair[0]))[:most]  # fmt: skip

    def _known(self, text: str) -> tuple[list[int], list[int]]:
        known = [(row, count) for gram, count in grams(text).items()
                 if (row := self.vocabulary.get(gram)) is not None]  # fmt: skip
        rarity = self.rarity
        return [row for row, _ in known], [round(FINE * damped(count) * float(rarity[row])) for row, count in known]

    def _scores(self, rows: list[int], values: list[int]) -> npt.NDArray[np.float64]:
        exact = np.array(values, dtype=np.int64) @ self.weights[rows].astype(np.int64)
        length = math.sqrt(sum(value * value for value in values))
        scores: npt.NDArray[np.float64] = exact * self.scale / length + self.bias
        return scores
