"""An asyncio loop whose time is virtual: a sleep or a time-out costs nothing when nobody has work to do.

For the in-memory twins only. Nothing that waits for a real socket or thread may run on it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpSelector(selectors.DefaultSelector):
    """Instead of waiting for input, moves the loop's time to its next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # never waits: nobody is ready and a timer is set, so time is moved to the timer
        ready = super().select(0)
        if not ready and timeout:
            self.elapsed += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Also a Clock: `now_ms` starts at `start_ms` (UTC milliseconds)."""

    def __init__(self, start_ms: int) -> None:
        self._jump = _JumpSelector()
        self._start_ms = start_ms
        super().__init__(self._jump)
        # after months of virtual time a nanosecond is less than a float can tell: a timer would never be due
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jump.elapsed

    def now_ms(self) -> int:
        """Virtual UTC milliseconds."""
        return self._start_ms + round(self._jump.elapsed * 1000)


def run_virtual(main: Coroutine[Any, Any, T], start_ms: int = 1_767_578_400_000) -> T:
    """Run to the end on a virtual clock that starts at `start_ms` (default 2026-01-05 10:00 +08:00)."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start_ms)) as runner:
        return runner.run(main)


def virtual_clock() -> VirtualLoop:
    """The running virtual loop as the Clock port. Raises TypeError on a real loop."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        message = "not on a virtual loop: start with run_virtual"
        raise TypeError(message)
    return loop
