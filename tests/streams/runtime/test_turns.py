"""Turns to commit: few transactions at the same time, and nobody waits for a broker that is not its own."""

from __future__ import annotations

import asyncio
import time

from streams.runtime.turns import Turns


async def _commit(turns: Turns, until: asyncio.Event, running: list[int], seen: list[int]) -> None:
    async with turns():
        running[0] += 1
        seen.append(running[0])
        await until.wait()
        running[0] -= 1


async def _at_once(turns: Turns, partitions: int, seconds: float) -> list[int]:
    """How many commits ran at each one's start, while none of them ends."""
    until, running, seen = asyncio.Event(), [0], list[int]()
    tasks = [asyncio.create_task(_commit(turns, until, running, seen)) for _ in range(partitions)]
    await asyncio.sleep(seconds)
    so_far = list(seen)
    until.set()
    await asyncio.gather(*tasks)
    return so_far


class TestTurns:
    """`Turns`."""

    def test_few_at_once(self) -> None:
        """Not more than the given number of transactions run at the same time (promise 4's cost)."""
        assert asyncio.run(_at_once(Turns(2, 60.0), 5, 0.02)) == [1, 2]

    def test_nobody_waits_for_long(self) -> None:
        """A partition whose broker hangs holds up the others for the patience only (promise 2: each its own owner)."""
        assert asyncio.run(_at_once(Turns(1, 0.02), 3, 0.1)) == [1, 2, 3]

    def test_a_turn_is_given_back(self) -> None:
        """A turn ends with its block, also by an error or by a cancellation, and the next one starts at once."""

        async def broken(turns: Turns) -> None:
            async with turns():
                raise ValueError

        async def run() -> float:
            turns = Turns(1, 60.0)
            await asyncio.gather(broken(turns), return_exceptions=True)
            holder = asyncio.create_task(_commit(turns, asyncio.Event(), [0], []))
            waiting = asyncio.create_task(_commit(turns, asyncio.Event(), [0], []))
            await asyncio.sleep(0)
            waiting.cancel()
            holder.cancel()
            await asyncio.gather(holder, waiting, return_exceptions=True)
            began = time.monotonic()
            async with turns():
                return time.monotonic() - began

        assert asyncio.run(run()) < 1.0
