"""The windows that event time falls into."""

from __future__ import annotations


def window_start(at: int, size: int) -> int:
    """The start of the window that holds `at`: [start, start + size), on edges of UTC (cases C05, C17)."""
    return at - at % size
