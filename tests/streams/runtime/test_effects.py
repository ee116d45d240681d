"""Effects: declared first, run once outside the lanes, looked after by the next owner (promise 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streams.metrics import RecordedMetrics
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import Effect, Fact
from streams.runtime.virtual import virtual_clock
from tests.streams.runtime.support import WHO, SlowTool, heard, reasons, run, say, values


def test_call_runs_after_its_declaration_is_committed() -> None:
    """The call stands in the log, pending, before it runs; its outcome settles it (promise 6)."""
    tool = SlowTool()

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "call")
        await asyncio.sleep(1)
        state = lock.state(WHO)
        assert state is not None
        assert "k-1" == state["pending"]["c-1"]["key"]
        assert [] == tool.done
        await lock.settle()

        assert ["k-1"] == tool.done
        assert ["test.heard", "test.settled"] == reasons(lock)

    run(body, {"tool": tool})


def test_successor_asks_only_after_deadline_and_timeout() -> None:
    """A call that was under way when its owner died is asked about, not run again (promise 6, case A13)."""
    tool = SlowTool(seconds=2)

    async def body(lock: LocalInterlock) -> None:
        start = virtual_clock().now_ms()
        await say(lock, 1, "call")
        await asyncio.sleep(1)
        await lock.restart()
        await lock.settle()

        assert ["k-1"] == tool.asked
        assert [] == tool.done
        assert virtual_clock().now_ms() - start >= 13_000
        assert ["call", "unknown"] == heard(lock)

    run(body, {"tool": tool})


def test_outcome_that_is_in_the_log_is_not_asked_for() -> None:
    """The result was published before the owner died: the successor reads it and leaves the shop alone."""
    tool = SlowTool(seconds=2)

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "call")
        await lock.settle()
        await lock.restart()
        await lock.advance(30_000)

        assert (["k-1"], []) == (tool.done, tool.asked)
        assert 1 == len(values(lock, "tools.results"))

    run(body, {"tool": tool})


def test_result_told_twice_settles_once() -> None:
    """A second fact with another id finds nothing pending, and the register says so (case E17)."""
    tool = SlowTool()

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "call")
        await lock.settle()
        effect = Effect(WHO, "c-1", "tool", "k-1", 0, 0, 0, {})
        (fact,) = await tool.resolve(effect)
        await lock.publish(fact.topic, WHO, fact.value.model_copy(update={"result_id": "c-1:again"}), "c-1:again")
        await lock.settle()

        assert ["test.heard", "test.settled", "test.repeated"] == reasons(lock)

    run(body, {"tool": tool})


class _BrokenTwice(SlowTool):
    async def run(self, effect: Effect) -> Sequence[Fact]:
        message = f"our bug on {effect.id}"
        raise KeyError(message)


def test_handler_that_raises_is_asked_again() -> None:
    """A bug in a handler neither kills the partition nor loses the call: it is asked about until it has an end."""
    tool = _BrokenTwice()

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "call")
        await lock.settle()

        assert ["k-1"] == tool.asked
        assert ["call", "unknown"] == heard(lock)

    run(body, {"tool": tool})


def test_running_effects_are_shown() -> None:
    """The gauge counts what runs now, and the time from start to fact is observed (R-002-49)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "call")
        await asyncio.sleep(1)
        partition, metrics = str(lock.partition_of(WHO)), lock.metrics
        assert isinstance(metrics, RecordedMetrics)
        assert 1 == metrics.value("interlock_effects_running", partition, "tool")
        await lock.settle()

        assert 0 == metrics.value("interlock_effects_running", partition, "tool")
        assert [3.0] == metrics.observations("interlock_effect_seconds", "tool")

    run(body, {"tool": SlowTool()})
