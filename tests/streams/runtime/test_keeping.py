"""Residues are kept as long as diffs are, and a day more; then a tombstone is their end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from memory.bus import StateBus, empty
from memory.snapshots import SnapshotStore
from streams.runtime.checkpoint import Checkpoint, row_of
from streams.runtime.keeping import Keeper
from streams.runtime.ports import Record
from streams.runtime.recovery import _Rebuild
from streams.runtime.snapshotting import Loaded, LocalSnapshots
from tests.streams.runtime.support import WHO, settings

NOW = 1_767_578_400_000
DAY = 86_400_000
MARK = {"diff_offset": 7, "handled": {}, "unsent": 8}


class Side:
    """A partition as its keeper sees it, and its clock."""

    def __init__(self) -> None:
        self.now, self.at_work, self.asked = NOW, set[str](), asyncio.Event()
        self.queued: list[tuple[str, Record]] = []

    def now_ms(self) -> int:
        """The clock."""
        return self.now

    def mark(self) -> Mapping[str, Any]:
        """See Kept."""
        return MARK

    def busy(self, conversation: str) -> bool:
        """See Kept."""
        return conversation in self.at_work

    def quietly(self, *, now: bool) -> None:
        """See Kept."""
        assert now
        self.asked.set()

    def queue(self, conversation: str, record: Record) -> None:
        """See Kept."""
        self.queued.append((conversation, record))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LocalSnapshots]:
    """A snapshot with one closed conversation whose last decision was at NOW."""
    with SnapshotStore.claim(tmp_path, "c", "t", lambda *_, **__: None, logging.getLogger("test")) as store:
        made = LocalSnapshots(store, lambda: NOW)
        made.write(0, [row_of(_residue(), orjson.dumps(_residue()))], MARK)
        yield made


def _residue() -> dict[str, Any]:
    return {**empty(WHO), "kind": "residue", "version": 5, "now": NOW}


Body = Callable[[Keeper, Checkpoint, Side, StateBus], Awaitable[None]]


def _keep(disk: LocalSnapshots, days: int, body: Body) -> None:
    """Run a body, so many days after the last decision."""

    async def run() -> None:
        side, bus = Side(), StateBus()
        checkpoint = Checkpoint(0, bus, side, 1_000)
        keeper = Keeper(0, settings(), side, bus, checkpoint, disk, side)
        side.now = NOW + days * DAY
        await body(keeper, checkpoint, side, bus)

    asyncio.run(run())


def test_forgotten_when_its_diffs_are_gone(disk: LocalSnapshots) -> None:
    """The tombstone is committed first, then the row goes; what is heard meanwhile is decided after it (promise 3)."""

    async def body(keeper: Keeper, checkpoint: Checkpoint, side: Side, _bus: StateBus) -> None:
        forgetting = asyncio.create_task(keeper._forget())
        await side.asked.wait()
        record = Record("channel.events", 0, 9, side.now, WHO.encode(), b"{}")
        assert keeper.holds(WHO, record)
        keeper.committed()  # one that was under way, and has no tombstone yet
        await asyncio.sleep(0.05)
        assert not forgetting.done()
        written = checkpoint.ride_along(MARK)
        keeper.committed()
        await forgetting

        assert [(WHO.encode(), None), (b"~mark/0", True)] == [(one.key, one.value and True) for one in written]
        assert (None, [(WHO, record)]) == (disk.find(0, WHO), side.queued)
        assert not keeper.holds(WHO, record)

    _keep(disk, 181, body)


@pytest.mark.parametrize(("days", "why"), [(180, "diffs"), (400, "busy"), (400, "open")])
def test_not_forgotten(disk: LocalSnapshots, days: int, why: str) -> None:
    """While a diff of it may be there, or while it is heard again, a residue stays (promise 3)."""

    async def body(keeper: Keeper, checkpoint: Checkpoint, side: Side, bus: StateBus) -> None:
        if why == "busy":
            side.at_work.add(WHO)
        if why == "open":
            bus.load(WHO, orjson.dumps(_residue()))
        await keeper._forget()

        assert (False, []) == (side.asked.is_set(), checkpoint.forgotten)
        assert disk.find(0, WHO) is not None

    _keep(disk, days, body)


def _diff(version: int, now: int, whole: dict[str, Any] | None) -> dict[str, Any]:
    cause = {"topic": "channel.events", "offset": 9, "id": "ev-9", "type": "t", "time": now, "position": None}
    return {"conversation": WHO, "base": version - 1, "version": version, "now": now, "cause": cause, "changes": [],
            "emits": [], "whole": whole, "handled": {}, "unsent": 8}  # fmt: skip


@pytest.mark.parametrize(("version", "days", "found"), [(1, 181, 1), (1, 2, 5), (6, 2, 6)])
def test_old_file_of_a_worker_that_missed_the_tombstone(
    disk: LocalSnapshots, version: int, days: int, found: int
) -> None:
    """Versions that began again half a year later replace the old residue; a diff that was read before does not."""
    rebuild = _Rebuild(0, Loaded({}, MARK), 7, disk, 180 * DAY)
    rebuild._add(8, _diff(version, NOW + days * DAY, None))
    assert found == rebuild._touched.get(WHO, _residue())["version"]


def test_conversation_that_only_another_file_knows_goes_on_from_its_whole_state() -> None:
    """The first diff of a session has the state before it: nothing is missing where nothing else is known."""
    rebuild = _Rebuild(0, Loaded({}, MARK), 7, None, 180 * DAY)
    rebuild._add(8, _diff(6, NOW, _residue()))
    assert 6 == rebuild._touched[WHO]["version"]
