"""Event time: what the customer's clock said, if it can be believed, else the broker's append time (case D15)."""

from __future__ import annotations

BEHIND_MS = 600_000  # an event may reach us this long after it happened; a clock that says more is wrong


def event_time(occurred_at: int | None, appended_at: int) -> tuple[int, bool]:
    """The time that the event counts at, in milliseconds, and whether it had to be assumed.

    Trusted is what is not ahead of the append time and at most ten minutes behind it.
    """
    if occurred_at is not None and appended_at - BEHIND_MS <= occurred_at <= appended_at:
        return occurred_at, False
    return appended_at, True


def window_start(at: int, size: int) -> int:
    """The start of the window that holds `at`: [start, start + size), on edges of UTC (cases C05, C17)."""
    return at - at % size
