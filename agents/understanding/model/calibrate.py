"""Calibration: probabilities that come true as often as they say, and how far off they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BINS = 15
_TEMPERATURES = np.geomspace(0.02, 5.0, 200)


def log_shares(powers: Floats) -> Floats:
    """The logarithms of the softmax of each row."""
    shifted = powers - powers.max(axis=1, keepdims=True)
    shares: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shares


def best_temperature(powers: Floats, right: Ints) -> float:
    """The divisor of the scores under which the right intents are likeliest."""
    rows = np.arange(len(right))
    losses = [-log_shares(powers / degree)[rows, right].mean() for degree in _TEMPERATURES]
    return round(float(_TEMPERATURES[int(np.argmin(losses))]), 4)


def calibration_error(confidences: Sequence[float], correct: Sequence[bool], bins: int = BINS) -> float:
    """The expected calibration error: mean distance of confidence and accuracy over bins of equal width."""
    sure, right = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if not len(sure):
        return 0.0
    place = np.minimum((sure * bins).astype(np.int64), bins - 1)
    gaps = [abs(float((sure[place == one] - right[place == one]).sum())) for one in range(bins)]
    return sum(gaps) / len(sure)


def answered_at(confidences: Sequence[float], correct: Sequence[bool], precision: float) -> tuple[float, float]:
    """The largest share that can be answered, surest first, at this precision, and the confidence that it ends at."""
    ranked = sorted(zip(confidences, correct, strict=True), key=lambda pair: -pair[0])
    best, right = (0.0, 1.0), 0
    for count, (confidence, is_right) in enumerate(ranked, 1):
        right += is_right
        last = count == len(ranked) or ranked[count][0] != confidence  # equal ones are answered together or not at all
        if last and right >= precision * count:
            best = (count / len(ranked), confidence)
    return best
