"""Closing a conversation is a decision, taken only when nothing is pending."""

from __future__ import annotations

from typing import Any

from memory.bus import empty
from memory.sealing import MemoryKeyStore
from schemas.step import Draft, Input
from schemas.tools import ToolResult
from streams.processors import session
from streams.processors.session import open_work
from streams.runtime.decide import decide
from streams.runtime.local import LocalInterlock
from streams.runtime.table import Row
from streams.runtime.virtual import run_virtual, virtual_clock
from tests.streams.runtime.support import WHO, rows, rubbish, say, settings

HOUR = 3_600_000


def _pipeline() -> LocalInterlock:
    table: list[Row] = [*rows(), session.row(settings(close_after_ms=HOUR))]
    return LocalInterlock(settings(close_after_ms=HOUR), table, {}, MemoryKeyStore(), virtual_clock())


def test_silent_conversation_is_closed_and_keeps_its_version() -> None:
    """An hour after the last event the state is emptied to a residue; versions and known ids stay."""

    async def body() -> None:
        lock = _pipeline()
        await say(lock, 1)
        await lock.advance(HOUR + 5_000)
        state = lock.state(WHO)
        assert state is not None
        assert ("residue", 2, []) == (state["kind"], state["version"], state["memory"]["summaries"])
        assert state["runtime"]["recent"]
        await lock.close()

    run_virtual(body())


def test_next_message_opens_it_again() -> None:
    """The version goes on from where it stood, and a repeat of the old event is still known (promise 3)."""

    async def body() -> None:
        lock = _pipeline()
        await say(lock, 1)
        await lock.advance(HOUR + 5_000)
        await say(lock, 1)
        await say(lock, 2, "back")
        await lock.settle()
        state = lock.state(WHO)
        assert state is not None
        assert ("state", 4, ["back"]) == (state["kind"], state["version"], state["memory"]["summaries"])
        await lock.close()

    run_virtual(body())


def test_each_event_starts_the_silence_anew() -> None:
    """Events every half hour keep it open (case J13)."""

    async def body() -> None:
        lock = _pipeline()
        for number in range(6):
            await say(lock, number)
            await lock.advance(HOUR // 2)
        state = lock.state(WHO)
        assert state is not None
        assert state["kind"] == "state"
        await lock.close()

    run_virtual(body())


def _due(state: dict[str, Any]) -> dict[str, Any]:
    """The state after its close deadline fired."""
    from schemas.system import TimerFired

    state = {**state, "timers": {session.TIMER: {"due": 5, "set_by": 1, "index": 1, "data": {}}}}
    fired = TimerFired(timer_id="t-1", name=session.TIMER, due=1_767_578_400_000, set_by=1)
    cause = Input("timers.fired", 0, 0, 1_767_578_400_000, WHO, "t-1", "t", fired)
    return decide([session.row(settings())], state, cause).after


def test_what_is_pending_keeps_it_open() -> None:
    """A call, a deadline, a flow, a review or a person at work refuses the closing, and the deadline runs again."""
    nothing = empty(WHO)
    busy = [
        ("pending", {"c-1": {"kind": "tool"}}),
        ("planning", {**nothing["planning"], "flows": [{"flow": "refund"}]}),
        ("planning", {**nothing["planning"], "reviews": {"r-1": {}}}),
        ("planning", {**nothing["planning"], "owner": "human"}),
        ("planning", {**nothing["planning"], "queue": [{"text": "x"}]}),
    ]
    for section, value in busy:
        after = _due({**nothing, section: value})
        assert ("state", True) == (after["kind"], session.TIMER in after["timers"])
    assert _due(nothing)["kind"] == "residue"


def test_other_deadlines_count_as_work() -> None:
    """A deadline of another processor that still runs is work."""
    draft = Draft(empty(WHO), Input("timers.fired", 0, 0, 1, WHO, "t", "t", None))
    assert not open_work(draft)
    draft.timer("delivery.x", 10)

    assert open_work(draft)


def test_late_fact_opens_it_for_no_longer_than_a_message() -> None:
    """A result that comes after the closing opens the conversation again; it is closed again in its turn."""

    async def body() -> None:
        lock = _pipeline()
        await say(lock, 1)
        await lock.advance(HOUR + 5_000)
        now = virtual_clock().now_ms()
        late = ToolResult(result_id="c-9:r", call_id="c-9", tool="slow", status="success", finished_at=now)
        await lock.publish("tools.results", WHO, late, late.result_id)
        await lock.settle()
        opened = lock.state(WHO)
        await lock.advance(HOUR + 5_000)
        closed = lock.state(WHO)
        assert opened is not None
        assert closed is not None
        assert ("state", "residue") == (opened["kind"], closed["kind"])
        await lock.close()

    run_virtual(body())


def test_dead_letter_opens_nothing() -> None:
    """A record that nobody can read leaves a residue of a conversation that never was, not an open state."""

    async def body() -> None:
        lock = _pipeline()
        rubbish(lock, 1)
        rubbish(lock, 1, value=None)
        await lock.settle()
        state = lock.state(WHO)
        assert state is not None
        assert ("residue", 2) == (state["kind"], state["version"])
        await say(lock, 1)
        await lock.settle()
        state = lock.state(WHO)
        assert state is not None
        assert "state" == state["kind"]
        await lock.close()

    run_virtual(body())
