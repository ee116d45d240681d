"""How a process of the product runs its event loop: on uvloop, with a collector that looks at young objects only."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

YOUNG = 20_000  # allocations between two looks: states are many small dictionaries, none of them in a cycle
OLD = 100  # a look at everything is rare, and takes tens of milliseconds with many open conversations


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, as asyncio.run does."""
    tune()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def tune() -> None:
    """Set the collector up as the product runs it."""
    gc.collect()
    gc.freeze()  # modules, rules and flows stay: they are not looked at again
    gc.set_threshold(YOUNG, 20, OLD)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No collection meanwhile: thousands of states are decoded, none in a cycle, and looking at them costs more."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
