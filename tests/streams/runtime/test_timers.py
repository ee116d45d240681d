"""Deadlines fire once, after everything appended before them was handled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from streams.runtime.local import LocalInterlock
from streams.runtime.ports import OffsetsPort, Outgoing
from streams.runtime.virtual import virtual_clock
from tests.streams.runtime.support import WHO, reasons, run, say, values


def _turns(lock: LocalInterlock) -> int:
    state = lock.state(WHO)
    return 0 if state is None else int(state["planning"]["turns"])


def test_deadline_fires_once_after_its_time() -> None:
    """Not before due plus the skew allowance, and never twice (promise 6)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "timer5000")
        await lock.advance(5_500)
        assert 0 == _turns(lock)
        await lock.advance(1_000)
        assert 1 == _turns(lock)
        await lock.advance(60_000)

        assert 1 == _turns(lock)
        assert 1 == len(values(lock, "timers.fired"))

    run(body)


def test_deadline_set_anew_replaces_the_first() -> None:
    """The same name set again fires once, at the later time."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "timer5000")
        await lock.advance(3_000)
        await say(lock, 2, "timer5000")
        await lock.advance(4_000)
        assert 0 == _turns(lock)
        await lock.advance(5_000)

        assert 1 == _turns(lock)

    run(body)


def test_deadline_survives_a_restart() -> None:
    """A deadline of the log fires at the next owner, also when it passed in between (R-002-31, promise 6)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "timer5000")
        await lock.settle()
        await lock.restart()
        await lock.advance(7_000)

        assert 1 == _turns(lock)

    run(body)


def test_timer_that_is_stale_changes_nothing() -> None:
    """A fired timer that was set anew meanwhile is recorded as stale, and the new one still fires."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "timer5000")
        await lock.settle()
        fact = values(lock, "timers.fired")
        await lock.advance(6_500)
        fired = lock.log.records("timers.fired")[0]
        from schemas.codec import decode

        again = decode("timers.fired", fired.value, "").model_copy(update={"timer_id": "t-other"})
        await lock.publish("timers.fired", WHO, again, "t-other")
        await lock.settle()

        assert [] == fact
        assert ["test.heard", "test.timer", "runtime.timer_stale"] == reasons(lock)

    run(body)


class _Behind(OffsetsPort):
    """Ends that lie beyond what has been handled until told otherwise."""

    def __init__(self, real: OffsetsPort) -> None:
        self._real = real
        self.hidden = 1

    async def ends(self, partition: int) -> Mapping[str, int]:
        ends: dict[str, Any] = dict(await self._real.ends(partition))
        ends["delivery.receipts"] += self.hidden
        return ends


def test_deadline_waits_for_the_backlog() -> None:
    """While a record appended before it is not handled, a deadline does not fire (section 3a, deadlines)."""

    async def body(lock: LocalInterlock) -> None:
        behind = _Behind(lock.ports.offsets)
        lock.ports = replace(lock.ports, offsets=behind)
        await say(lock, 1, "timer5000")
        await asyncio.sleep(20)
        assert 0 == _turns(lock)
        behind.hidden = 0
        lock.skip_to_end("delivery.receipts", WHO, 1)
        await lock.advance(2_000)

        assert 1 == _turns(lock)

    run(body)


def test_clocks_that_disagree_stop_the_timers() -> None:
    """Skew above the setting against append times keeps deadlines from firing (section 3a, deadlines)."""

    async def body(lock: LocalInterlock) -> None:
        lock.log.skew_ms = -5_000
        await say(lock, 1, "timer100")
        await lock.advance(10_000)
        assert 0 == _turns(lock)
        lock.log.skew_ms = 0
        await say(lock, 2, "hello")
        await lock.advance(5_000)

        assert 1 == _turns(lock)
        assert virtual_clock().now_ms() > 0

    run(body)


def test_clock_that_was_set_right_is_noticed_on_a_silent_partition() -> None:
    """Nothing else is decided there: the deadline fires all the same, and no diff is made for it (promise 6)."""

    async def body(lock: LocalInterlock) -> None:
        lock.log.skew_ms = -5_000
        await say(lock, 1, "timer100")
        await lock.advance(10_000)
        stopped = _turns(lock)
        lock.log.skew_ms = 0
        await lock.advance(10_000)

        assert (0, 1) == (stopped, _turns(lock))
        assert [1, 2] == [diff["version"] for diff in lock.diffs(WHO)]

    run(body)


def test_silent_partition_ends_its_checkpoint() -> None:
    """Seconds after the last decision its state and mark are on state.updates, and only once (promise 3)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1)
        await lock.advance(3_600_000)
        home = lock.partition_of(WHO)
        updates = [record for record in lock.log.records("state.updates") if record.partition == home]

        assert [WHO.encode(), f"~mark/{home}".encode()] == [record.key for record in updates]
        assert 0 == orjson.loads(updates[1].value or b"")["diff_offset"]

    run(body)


class SteppedClock:
    """The worker's clock, off the broker's until it is set right."""

    def __init__(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        """See Clock."""
        return virtual_clock().now_ms() + self.ahead_ms


class SettingCommit:
    """A commit port during whose work the clock is set right."""

    def __init__(self, lock: LocalInterlock, clock: SteppedClock) -> None:
        self._inner, self._clock = lock.commit, clock

    async def commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        """See CommitPort."""
        self._clock.ahead_ms = 0
        return await self._inner.commit(batch)


def test_clock_set_back_during_a_commit_is_no_skew() -> None:
    """The last commit before a silence saw the clock step back by 5 s: its deadline fires all the same."""

    async def body(lock: LocalInterlock) -> None:
        clock = SteppedClock(5_000)
        lock.ports = replace(lock.ports, clock=clock, commit=SettingCommit(lock, clock))
        await say(lock, 1, "timer5000")
        await lock.advance(10_000)
        assert 1 == _turns(lock)

    run(body)
