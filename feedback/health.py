"""Health: 0 to 100 for one session in one window, and the parts that were taken off (R-002-40).

Accumulators only add up and take maxima, so the order in which events come does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from feedback.times import window_start
from schemas.feedback import Health, SignalKind
from schemas.step import Draft

TIMER = "feedback.window"
KEPT_MS = 3_600_000  # a closed window waits this long for late events,
KEPT_MAX = 16  # and no more than this of them: shortened windows must not make states large
LATENCY_FREE_MS, LATENCY_FULL_MS, LATENCY_POINTS = 5_000, 60_000, 25.0  # 5 s costs nothing, 60 s all of it
RATING_POINTS = 40.0  # a rating of 1; 5 costs nothing
POINTS: Mapping[SignalKind, tuple[float, float]] = {  # points each, and at most
    "correction": (15.0, 30.0),
    "interruption": (30.0, 30.0),
    "deviation": (10.0, 20.0),
    "repeat": (20.0, 20.0),
}


def fresh(session_id: str, start: int) -> dict[str, Any]:
    """The accumulators of an empty window."""
    return {"session_id": session_id, "start": start, "activity": 0, "signals": {}, "worst_ms": 0, "rating_sum": 0,
            "revision": -1}  # fmt: skip


def add(window: Mapping[str, Any], kind: SignalKind, value: float) -> dict[str, Any]:
    """The accumulators with one more signal."""
    result = dict(window)
    result["signals"] = {**window["signals"], kind: window["signals"].get(kind, 0) + 1}
    if kind == "reply_latency":
        result["worst_ms"] = max(window["worst_ms"], int(value))
    elif kind == "rating":
        result["rating_sum"] = window["rating_sum"] + int(value)
    return result


def parts(window: Mapping[str, Any]) -> dict[str, float]:
    """Points off, by signal, each capped; what took nothing off is left out."""
    signals = window["signals"]
    # The worst wait, not the mean: ten quick replies do not make up for a minute of silence.
    over = (window["worst_ms"] - LATENCY_FREE_MS) / (LATENCY_FULL_MS - LATENCY_FREE_MS)
    taken: dict[str, float] = {"reply_latency": LATENCY_POINTS * min(1.0, max(0.0, over))}
    for kind, (each, most) in POINTS.items():
        taken[kind] = min(most, each * signals.get(kind, 0))
    if signals.get("rating"):
        taken["rating"] = RATING_POINTS * (5 - window["rating_sum"] / signals["rating"]) / 4
    return {kind: round(points, 2) for kind, points in taken.items() if points > 0}


def score(taken: Mapping[str, float]) -> int:
    """100 less the parts, a whole number of at least 0; a half goes up."""
    return max(0, int(100.5 - sum(taken.values())))


def key_of(session_id: str, at: int, size: int) -> str:
    """The name of a session's window in the state."""
    return f"{window_start(at, size)}:{session_id}"


class Windows:
    """The windows of one decision: events go in, late ones come out as a revision, once a window."""

    def __init__(self, draft: Draft, size: int, grace: int) -> None:
        self._draft, self._size, self._grace = draft, size, grace
        self._late: dict[str, None] = {}
        self._changed = False  # a window was opened or closed

    def activity(self, session_id: str, at: int) -> None:
        """The session did something at `at`: its window gets a score, whatever else happens (C03)."""
        window = self._open(session_id, at)
        if window is not None:
            self._keep(session_id, at, {**window, "activity": window["activity"] + 1})

    def signal(self, session_id: str, at: int, kind: SignalKind, value: float) -> None:
        """A signal counts in the window that its event time is in, however late it comes."""
        window = self._open(session_id, at)
        if window is not None:
            self._keep(session_id, at, add(window, kind, value))

    def close(self, key: str) -> None:
        """The window's end and grace have passed, and all that came before was handled: its score."""
        window = self._draft.get("feedback", "windows", key)
        # A timer can fire twice (a recovery publishes it again); a second score would look like a late event.
        if window is None or window["revision"] >= 0:
            self._draft.reason("feedback.window.closed", "it has its score", key)
            return
        self._changed = True
        self._publish(key, window)

    def finish(self) -> None:
        """Publish a revision of each closed window that got late events, and forget what is old."""
        for key in self._late:
            self._publish(key, self._draft.get("feedback", "windows", key))
        if self._changed:
            self._forget()

    def _forget(self) -> None:
        windows = self._draft.get("feedback", "windows")
        closed = sorted((window["start"], key) for key, window in windows.items() if window["revision"] >= 0)
        for index, (start, key) in enumerate(closed):
            if index < len(closed) - KEPT_MAX or self._past(start):
                self._draft.delete("feedback", "windows", key)
                self._draft.set(max(start, self._forgotten()), "feedback", "forgotten")

    def _open(self, session_id: str, at: int) -> dict[str, Any] | None:
        key, start = key_of(session_id, at, self._size), window_start(at, self._size)
        window: dict[str, Any] | None = self._draft.get("feedback", "windows", key)
        if window is None and (self._past(start) or start <= self._forgotten()):
            self._draft.reason("feedback.too_late", "its window is closed and gone", key)
            return None
        if window is None:
            self._changed = True
            self._draft.timer(f"{TIMER}:{key}", start + self._size + self._grace)
            return fresh(session_id, start)
        return window

    def _past(self, start: int) -> bool:
        return bool(self._draft.now - start - self._size > KEPT_MS)

    def _forgotten(self) -> int:
        return int(self._draft.get("feedback", "forgotten", default=0))

    def _keep(self, session_id: str, at: int, window: dict[str, Any]) -> None:
        key = key_of(session_id, at, self._size)
        self._draft.set(window, "feedback", "windows", key)
        if window["revision"] >= 0:
            self._late[key] = None

    def _publish(self, key: str, window: Mapping[str, Any]) -> None:
        shop, channel, _ = self._draft.conversation.split("/", 2)
        taken, revision = parts(window), window["revision"] + 1
        points = score(taken)
        self._draft.set({**window, "revision": revision}, "feedback", "windows", key)
        self._draft.emit("feedback.health", Health(
            session_id=window["session_id"], shop=shop, channel=channel, window_start=window["start"],
            window_end=window["start"] + self._size, score=points, parts=taken, signals=window["signals"],
            revision=revision,
        ))  # fmt: skip
        self._draft.reason("feedback.health", f"{points}, revision {revision}", key)
        # A revision of an old window must not stand as how things are now.
        if self._newest(window["start"]):
            self._draft.set(points, "feedback", "last_score")

    def _newest(self, start: int) -> bool:
        windows = self._draft.get("feedback", "windows").values()
        return all(other["start"] <= start for other in windows if other["revision"] >= 0)
