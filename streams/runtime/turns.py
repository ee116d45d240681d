"""Whose turn it is to commit: a few transactions of a worker at the same time, so that under load each one is fuller.

A transaction costs the same CPU for one decision as for ten; many at once only make each other slow.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

AT_ONCE = 3  # transactions of one worker
PATIENCE_S = 0.1  # then a partition commits anyway: another one's slow broker is not its trouble


class Turns:
    """One for a worker; belongs to its event loop. First come, first served."""

    def __init__(self, at_once: int = AT_ONCE, patience_s: float = PATIENCE_S) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._patience_s = patience_s

    @contextlib.asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        """Wait for a turn, but not for long, and hold it until the end of the block."""
        taken = not self._free.locked()
        if taken:
            await self._free.acquire()
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience_s):
                    await self._free.acquire()
                    taken = True
        try:
            yield
        finally:
            if taken:
                self._free.release()
