"""How a process runs its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import uvloop

from streams import loops


async def _where() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_processes_run_on_uvloop_and_give_the_answer_back() -> None:
    """The coroutine's answer is returned; its loop is uvloop's, and closed after it."""
    before = gc.get_threshold()
    try:
        loop = loops.run(_where())
        assert (loops.YOUNG, 20, loops.OLD) == gc.get_threshold()
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)

    assert isinstance(loop, uvloop.Loop)
    assert loop.is_closed()


def test_nothing_is_collected_while_states_are_loaded() -> None:
    """The collector is off inside, and afterwards as it was, also after an error."""
    inside = []
    with contextlib.suppress(LookupError), loops.uncollected():
        inside.append(gc.isenabled())
        raise LookupError
    assert ([False], True) == (inside, gc.isenabled())
