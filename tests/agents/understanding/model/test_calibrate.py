"""Calibration: the error and the answered share are what their definitions say."""

from __future__ import annotations

import numpy as np
import pytest

from agents.understanding.model.calibrate import answered_at, best_temperature, calibration_error


@pytest.mark.parametrize(
    ("sure", "right", "error"),
    [
        ([1.0, 1.0], [True, True], 0.0),
        ([0.9, 0.9], [False, False], 0.9),
        ([0.5, 0.5], [True, False], 0.0),
        ([0.9, 0.1], [True, True], 0.5),
        ([], [], 0.0),
    ],
)
def test_the_error_is_the_mean_gap(sure: list[float], right: list[bool], error: float) -> None:
    """Within a bin confidence and accuracy are compared, and bins count by their size (measure calibration_error)."""
    assert error == pytest.approx(calibration_error(sure, right))


def test_the_surest_are_answered_first() -> None:
    """The share that can be answered at a precision ends where one more would break it; equal ones stand together."""
    assert (0.5, 0.8) == answered_at([0.9, 0.8, 0.5, 0.5], [True, True, False, True], 0.95)
    assert (1.0, 0.5) == answered_at([0.9, 0.8, 0.5, 0.5], [True, True, False, True], 0.75)
    assert (0.0, 1.0) == answered_at([0.9], [False], 0.95)


def test_scores_that_are_right_half_of_the_time_are_flattened() -> None:
    """The temperature makes sure scores that are often wrong less sure, and leaves right ones sharp."""
    powers = np.array([[4.0, 0.0]] * 10)
    half, always = np.array([0, 1] * 5), np.zeros(10, dtype=np.int64)

    assert best_temperature(powers, half) > 1 > best_temperature(powers, always)
