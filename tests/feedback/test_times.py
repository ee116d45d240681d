"""Event time, and the windows that it falls into."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from feedback.times import window_start
from schemas.events import BEHIND_MS, MessageBody, RawEvent, event_time

T0 = 1_767_578_400_000
DAY = 86_400_000


@pytest.mark.parametrize(("occurred", "at", "assumed"), [
    (T0, T0, False),
    (T0 - BEHIND_MS, T0 - BEHIND_MS, False),
    (T0 - BEHIND_MS - 1, T0, True),
    (T0 + 1, T0, True),
    (T0 - 400 * DAY, T0, True),
    (T0 + 400 * DAY, T0, True),
    (None, T0, True),
])  # fmt: skip
def test_a_clock_is_believed_within_ten_minutes(occurred: int | None, at: int, assumed: bool) -> None:  # noqa: FBT001
    """Not ahead of the append time and at most ten minutes behind it; else the append time, marked (case D15)."""
    assert (at, assumed) == event_time(occurred, T0)


@pytest.mark.parametrize("wrong", [1_767_578_400, 1_767_578_400_000_000])
def test_other_units_are_refused(wrong: int) -> None:
    """Seconds and microseconds never get as far as a window: the contract refuses them (case D15)."""
    body = MessageBody(kind="message", message_id="c-1", text="hi")
    with pytest.raises(ValidationError, match="occurred_at"):
        RawEvent(id="e-1", shop="s", channel="web", sender="li", occurred_at=wrong, body=body)


@pytest.mark.parametrize(("at", "start"), [
    (T0, T0), (T0 + 299_950, T0), (T0 + 299_999, T0), (T0 + 300_000, T0 + 300_000),
])  # fmt: skip
def test_edges_are_half_open(at: int, start: int) -> None:
    """A window holds its start and not its end (case C05)."""
    assert start == window_start(at, 300_000)


@given(st.integers(T0, T0 + 400 * DAY), st.sampled_from([1_000, 10_000, 60_000, 300_000]))
def test_windows_tile_time(at: int, size: int) -> None:
    """Every instant is in one window, which begins on an edge: no gap, no overlap, no drift (case C05, case C17)."""
    start = window_start(at, size)
    assert start <= at < start + size
    assert 0 == start % size
