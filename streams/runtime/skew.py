"""How far the local clock is off the broker's, as commits show it."""

from __future__ import annotations


class Skew:
    """Local clock minus the broker's, milliseconds."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self.ms = 0

    def measure(self, asked: int, appended: int, answered: int) -> None:
        """0 when the append time lies between asking and answer."""
        asked = min(asked, answered)  # a clock that was set back meanwhile: only the reading after it holds
        self.ms = asked - appended if appended < asked else max(0, appended - answered) * -1

    def too_large(self) -> bool:
        """Deadlines can't be trusted."""
        return abs(self.ms) > self._limit_ms
