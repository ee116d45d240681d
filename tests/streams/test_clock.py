"""The one module that reads the clock and draws randomness."""

from __future__ import annotations

import time

from streams.clock import SystemClock, fresh_id


def test_clock_is_utc_milliseconds() -> None:
    """The clock gives the machine's time in milliseconds since 1970, not seconds (case D15)."""
    before = time.monotonic_ns()
    first = SystemClock().now_ms()
    second = SystemClock().now_ms()
    passed_ms = (time.monotonic_ns() - before) // 1_000_000 + 2

    assert 1_700_000_000_000 < first < 4_000_000_000_000
    assert 0 <= second - first <= passed_ms


def test_fresh_ids_differ_and_keep_their_prefix() -> None:
    """An id for what enters at an edge is never given twice."""
    ids = {fresh_id("dec") for _ in range(100)}

    assert 100 == len(ids)
    assert all(one.startswith("dec-") and len(one) == 36 for one in ids)
