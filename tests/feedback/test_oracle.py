"""The step against a brute-force reading of the same events, over random streams."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.events import event_time
from tests.feedback.listening import GRACE, WINDOW, Talk
from tests.streams.conversation import T0

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 900_000),  # time since the event before, as appended
        st.one_of(st.none(), st.integers(-700_000, 5_000)),  # the customer's clock against the append time
        st.integers(1, 5),  # the rating
    ),
    max_size=12,
)


def _oracle(events: list[tuple[int, int | None, int]]) -> dict[int, tuple[int, int]]:
    """Window start to number and sum of ratings, by looking at every event at once."""
    windows: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for at, occurred, rating in events:
        stamp, _ = event_time(None if occurred is None else T0 + occurred, T0 + at)
        start = stamp // WINDOW * WINDOW
        count, total = windows[start]
        windows[start] = (count + 1, total + rating)
    return windows


def _expected(count: int, total: int) -> int:
    return int(100.5 - round(40.0 * (5 - total / count) / 4, 2))


def _play(stream: list[tuple[int, int | None, int]]) -> tuple[Talk, dict[int, tuple[int, int]]]:
    talk, events, at = Talk(), [], 0
    for gap, skew, rating in stream:
        at += gap
        occurred = None if skew is None else at + skew
        events.append((at, occurred, rating))
        talk.later(at)
        talk.rates(rating, at, occurred)
    talk.later(at + 2 * WINDOW + GRACE)
    return talk, _oracle(events)


@settings(max_examples=40, deadline=None)
@given(EVENTS)
def test_the_last_revision_is_what_brute_force_finds(stream: list[tuple[int, int | None, int]]) -> None:
    """Every window with an event has a score; its last revision counts every event of it once (C01, C03, C05, D15)."""
    talk, windows = _play(stream)
    final: dict[int, Any] = {health.window_start: health for health in talk.health()}

    assert {start: _expected(*found) for start, found in windows.items()} == {
        start: health.score for start, health in final.items()}  # fmt: skip
    assert {start: count for start, (count, _) in windows.items()} == {
        start: health.signals["rating"] for start, health in final.items()}  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(EVENTS)
def test_revisions_count_up_from_zero(stream: list[tuple[int, int | None, int]]) -> None:
    """A window is scored once, and each later record of it is the next revision (case C17)."""
    talk, _ = _play(stream)
    revisions: dict[int, list[int]] = defaultdict(list)
    for health in talk.health():
        revisions[health.window_start].append(health.revision)

    assert all(list(range(len(found))) == found for found in revisions.values())
    assert {} == {name: due for name, due in talk.state["timers"].items() if name.startswith("feedback.")}
