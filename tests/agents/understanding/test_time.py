"""Reading takes a bounded time, whatever is written: a slow pattern would stop a worker's every conversation."""

from __future__ import annotations

import time

import pytest

from agents.understanding.port import Context
from agents.understanding.rules import RuleUnderstanding

LONGEST = 20_000  # characters of a message
SECONDS = 2.0  # of CPU, on a slow and busy machine; the worst took 0.1 s here, a quadratic pattern takes 80 s


@pytest.mark.parametrize("piece", [
    "1", "9 ", "我", "退", "a", "x1 ", "不", " ", "一", "１", "\u200b1", "退1", "not ", "1.", "a@", "-1", "到", "OD1",
    "?", "的1",
])  # fmt: skip
def test_a_long_message_is_read_in_time(piece: str) -> None:
    """The longest message of one thing over and over is read within moments (R-002-06)."""
    text = (piece * LONGEST)[:LONGEST]
    began = time.process_time()
    RuleUnderstanding().read(text, Context())

    assert time.process_time() - began < SECONDS
