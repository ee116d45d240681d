"""snapshot_pause, snapshot_copy_share, snapshot_restore: what snapshots of 100,000 open conversations cost a worker."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from bench.report import Result, less_is_better, rounded
from bench.states import NOW, state
from memory.bus import StateBus
from memory.copier import Copier
from memory.copies import Copies
from memory.object_store import FolderStore
from memory.snapshots import SnapshotStore
from schemas.state import Mark
from schemas.topics import INPUT_TOPICS
from streams import loops
from streams.runtime.checkpoint import SavedState, Snapshots
from streams.runtime.snapshotting import LocalSnapshots

OPEN = 100_000
CHANGED = 10_000  # in the 30 s since the last one: 333 conversations a second
EVERY_S = 30
LOG = logging.getLogger("bench.snapshots")


def run() -> Iterator[Result]:
    """Three rows, over a folder as object storage."""
    loops.tune()  # as a worker runs
    with tempfile.TemporaryDirectory() as folder:
        yield from _measured(Path(folder))


def _measured(folder: Path) -> Iterator[Result]:
    names = [f"bench/web/s{number}" for number in range(OPEN)]
    bus = StateBus()
    for name in names:
        bus.load(name, orjson.dumps(state(name)))
    copies = Copies(FolderStore(folder / "copies"), "bench", "bench", "bench", LOG)
    with SnapshotStore(folder / "local", "bench", "bench", lambda *_, **__: None, LOG) as store:
        local = LocalSnapshots(store, lambda: NOW)
        rows = (SavedState(name, "state", 1, bus.encoded(name), None) for name in names)
        local.write(0, rows, _mark(OPEN))
        base = _copied(copies, store)
        for name in names[:CHANGED]:
            bus.write({**(bus.read(name) or {}), "version": 2}, 1)
        idle, pause = asyncio.run(_paused(bus, local, names[:CHANGED]))
        mark = store.mark(0)
        if mark is None:
            message = "the snapshot that was just written is not there"
            raise RuntimeError(message)
        changed = [(name, "state", 2, bus.encoded(name), None) for name in names[:CHANGED]]
        spent = time.process_time()
        copies.save(0, changed, mark, OPEN)
        spent = time.process_time() - spent
    what = f"{CHANGED} of {OPEN} open conversations of 4 KB changed since the last snapshot, one partition"
    paused = f"longest time that the event loop did nothing else; {what}; baseline: without a snapshot"
    shared = f"of one core's time, for the copy every {EVERY_S} s; {what}; a base of all took {base:.1f} s"
    again = f"on an empty machine, from base and change to a snapshot that was checked; {OPEN} conversations"
    yield less_is_better("snapshot_pause", pause, "ms", idle, CHANGED, paused)
    yield Result("snapshot_copy_share", rounded(100 * spent / EVERY_S), "%", n=CHANGED, note=shared)
    yield Result("snapshot_restore", rounded(_restored(copies, folder)), "s", n=OPEN, note=again)


def _mark(offset: int) -> dict[str, object]:
    return {"diff_offset": offset, "handled": dict.fromkeys(INPUT_TOPICS, offset), "unsent": offset + 1}


def _copied(copies: Copies, store: SnapshotStore) -> float:
    """Processor seconds of a first, whole copy, made as the worker makes it."""
    spent, done = time.process_time(), threading.Event()
    copier = Copier(copies, store.whole, lambda *_: done.set(), lambda *_, **__: None, LOG)
    copier.written(0, [], Mark(**_mark(OPEN), stamped_at=NOW), None)  # type: ignore[arg-type]  # its fields by name
    done.wait(600)
    copier.close()
    return time.process_time() - spent


async def _paused(bus: StateBus, local: LocalSnapshots, changed: list[str]) -> tuple[float, float]:
    """The loop's longest pause in ms, beside nothing and beside one snapshot."""
    snapshots = Snapshots(0, bus, local, lambda _: False)
    for name in changed:
        snapshots.changed(name)
    idle = await _longest(asyncio.sleep(1))
    return idle, await _longest(snapshots.write(_mark(OPEN + CHANGED)))


async def _longest(work: object) -> float:
    longest, task = 0.0, asyncio.ensure_future(work)  # type: ignore[call-overload]  # a coroutine
    last = time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return longest * 1_000


def _restored(copies: Copies, folder: Path) -> float:
    start = time.monotonic()
    with SnapshotStore(folder / "empty", "bench", "bench", lambda *_, **__: None, LOG) as empty:
        copies.restore(0, lambda: empty.begin_import(0), 0, 10 * OPEN)
        found = empty.load(0, 0, 10 * OPEN)
        if found is None or len(found.open) != OPEN:
            message = "not all conversations came back"
            raise RuntimeError(message)
    return time.monotonic() - start
