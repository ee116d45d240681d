"""The score, its parts, and the windows that it is given for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feedback.health import KEPT_MAX, LATENCY_POINTS, POINTS, RATING_POINTS, add, fresh, parts, score
from schemas.feedback import SignalKind
from tests.feedback.listening import GRACE, WINDOW, Talk
from tests.streams.conversation import T0

DAY = 86_400_000


def _window(*signals: tuple[SignalKind, float]) -> dict[str, Any]:
    window = fresh("s-1", T0)
    for kind, value in signals:
        window = add(window, kind, value)
    return window


class TestScore:
    @pytest.mark.parametrize(("signals", "expected"), [
        ((), 100),
        ((("reply_latency", 5_000),), 100),
        ((("reply_latency", 60_000),), 75),
        ((("reply_latency", 3_600_000),), 75),
        ((("reply_latency", 32_500), ("reply_latency", 1_000)), 88),
        ((("correction", 1),), 85),
        ((("interruption", 1),), 70),
        ((("rating", 1),), 60),
        ((("rating", 1), ("rating", 5)), 80),
        ((("rating", 5),), 100),
        ((("interruption", 1), ("correction", 1)), 55),
    ])  # fmt: skip
    def test_points(self, signals: tuple[tuple[SignalKind, float], ...], expected: int) -> None:
        """100 less the parts: the weights that the docs name (R-002-40)."""
        assert expected == score(parts(_window(*signals)))

    @pytest.mark.parametrize("kind", sorted(POINTS))
    def test_each_part_is_capped(self, kind: SignalKind) -> None:
        """A signal repeated a hundred times takes no more than its part (R-002-40)."""
        taken = parts(_window(*[(kind, 1.0)] * 100))
        assert {kind: POINTS[kind][1]} == taken

    def test_the_worst_is_zero(self) -> None:
        """All parts at their caps: 0, never below (R-002-40)."""
        everything: list[tuple[SignalKind, float]] = [(kind, 1.0) for kind in POINTS] * 9
        worst = _window(("reply_latency", 9e6), ("rating", 1), *everything)
        assert 0 == score(parts(worst))

    def test_order_does_not_matter(self) -> None:
        """The same signals in another order make the same window."""
        signals: list[tuple[SignalKind, float]] = [("rating", 2), ("reply_latency", 9e3), ("repeat", 1), ("rating", 4)]
        left, right = _window(*signals), _window(*reversed(signals))
        assert (parts(left), left["signals"]) == (parts(right), right["signals"])


class TestWindows:
    def test_one_event_and_then_silence(self) -> None:
        """One signal at 10 s, then nothing for 20 min: the score is there by end plus grace (case C03)."""
        talk = Talk()
        talk.rates(1, 10_000)
        talk.later(WINDOW + GRACE - 1)
        assert [] == talk.health()
        talk.later(WINDOW + GRACE)

        (health,) = talk.health()
        assert (T0, T0 + WINDOW, 60, 0) == (health.window_start, health.window_end, health.score, health.revision)
        talk.later(4 * WINDOW)
        assert 1 == len(talk.health())

    def test_edges_and_a_grace_shorter_than_the_window(self) -> None:
        """T0+299.95 s, appended at 304 s, is in the first window; T0+300 s is in the next (case C05)."""
        talk = Talk()
        talk.rates(1, 304_000, occurred=299_950)
        talk.rates(5, 304_000, occurred=300_000)
        talk.later(3 * WINDOW)

        found = [(health.window_start - T0, health.signals) for health in talk.health()]
        assert [(0, {"rating": 1}), (300_000, {"rating": 1})] == found

    def test_every_conversation_closes_its_own(self) -> None:
        """Three conversations, two of them on one partition, seven signals each: three scores (case C01)."""
        talks = [Talk(conversation=f"shop-1/web/{sender}") for sender in ("a", "b", "c")]
        for talk in talks:
            for at in range(0, 70_000, 10_000):
                talk.rates(3, at)
        for talk in talks:
            talk.later(WINDOW + GRACE)
        assert [[{"rating": 7}]] * 3 == [[health.signals for health in talk.health()] for talk in talks]

    def test_a_day_has_288_windows(self) -> None:
        """A day of activity, with deadlines handled late: 288 scores, each on an edge, each once (case C17)."""
        talk = Talk()
        for at in range(0, DAY, WINDOW):
            talk.later(max(0, at - 1))
            talk.rates(4, at + 2_000)
        talk.later(DAY + WINDOW)

        assert [T0 + start for start in range(0, DAY, WINDOW)] == [health.window_start for health in talk.health()]
        assert {0} == {health.revision for health in talk.health()}

    def test_a_late_event_is_a_revision(self) -> None:
        """An event for a closed window gives revision 1, then 2, with all its signals (R-002-40)."""
        talk = Talk()
        talk.rates(5, 10_000)
        talk.later(WINDOW + GRACE)
        talk.rates(1, 400_000, occurred=290_000)
        talk.rates(1, 410_000, occurred=295_000)

        found = [(health.revision, health.score, health.signals["rating"]) for health in talk.health()]
        assert [(0, 100, 1), (1, 80, 2), (2, 73, 3)] == found

    def test_a_quiet_session_gets_a_score_too(self) -> None:
        """Activity without any sign of trouble is a 100; heartbeats alone are no activity (R-002-40)."""
        talk = Talk()
        talk.beats(1_000)
        talk.later(WINDOW + GRACE)
        assert [] == talk.health()
        talk.says(WINDOW + GRACE, "greeting")
        talk.answers(WINDOW + GRACE + 800)
        talk.later(3 * WINDOW)
        assert [(100, {})] == [(health.score, health.parts) for health in talk.health()]

    def test_two_sessions_in_a_window(self) -> None:
        """Two sessions that share a window have a score each (R-002-40)."""
        talk = Talk()
        talk.rates(1, 1_000)
        talk.begin("s-2")
        talk.rates(5, 2_000)
        talk.later(WINDOW + GRACE)
        assert {"s-1": 60, "s-2": 100} == {health.session_id: health.score for health in talk.health()}

    def test_planning_sees_the_newest_score(self) -> None:
        """The last closed window's score stands in the state; a revision of an older one does not replace it."""
        talk = Talk()
        talk.rates(5, 10_000)
        talk.rates(1, WINDOW + 10_000)
        talk.later(2 * WINDOW + GRACE)
        assert 60 == talk.get("feedback", "last_score")
        talk.rates(4, 2 * WINDOW + 2 * GRACE, occurred=20_000)
        assert (60, 1) == (talk.get("feedback", "last_score"), talk.health()[-1].revision)

    def test_windows_shorten_by_setting(self) -> None:
        """The window's length is a setting; kept windows stay few however short it is."""
        talk = Talk(window_ms=10_000, window_grace_ms=1_000)
        for at in range(0, 400_000, 10_000):
            talk.later(at)
            talk.rates(5, at)
        talk.later(420_000)
        assert 40 == len(talk.health())
        assert KEPT_MAX + 1 >= len(talk.get("feedback", "windows"))

    def test_a_forgotten_window_is_not_scored_again(self) -> None:
        """An event for a window that is closed and gone is told in a reason, not scored as new (R-002-40)."""
        talk = Talk(window_ms=10_000, window_grace_ms=1_000)
        for at in range(0, 400_000, 10_000):
            talk.later(at)
            talk.rates(5, at)
        talk.rates(1, 401_000, occurred=5_000)
        talk.later(430_000)
        assert [0] == [health.revision for health in talk.health() if health.window_start == T0]
        assert "feedback.too_late" in talk.rules()

    def test_old_windows_are_dropped(self) -> None:
        """A closed window is kept for an hour."""
        talk = Talk()
        talk.rates(5, 10_000)
        talk.later(WINDOW + GRACE)
        assert 1 == len(talk.get("feedback", "windows"))
        talk.rates(5, 2 * 3_600_000)
        assert [T0 + 2 * 3_600_000] == [window["start"] for window in talk.get("feedback", "windows").values()]


def test_the_docs_name_the_weights() -> None:
    """docs/feedback.md gives each part's points and cap as the code has them (R-002-40)."""
    text = (Path(__file__).parents[2] / "docs" / "feedback.md").read_text(encoding="utf-8")
    for kind, (each, most) in POINTS.items():
        assert f"| `{kind}` | {each:g} each | {most:g} |" in text
    assert f"in proportion | {LATENCY_POINTS:g} |" in text
    assert f"below 5 | {RATING_POINTS:g} |" in text
