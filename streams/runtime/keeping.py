"""What a partition keeps on disk: a snapshot every so often, and residues until their diffs are gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from memory.bus import StateBus
from streams.runtime.checkpoint import Checkpoint, SnapshotPort, Snapshots
from streams.runtime.crashpoints import crash
from streams.runtime.ports import Clock, Record
from streams.settings import Settings

log = logging.getLogger(__name__)

DAY_MS = 86_400_000


class Kept(Protocol):
    """What the keeper needs of its partition."""

    def mark(self) -> Mapping[str, Any]:
        """Up to where a snapshot that begins now holds."""
        ...

    def busy(self, conversation: str) -> bool:
        """Something of it is queued or decided."""
        ...

    def quietly(self, *, now: bool) -> None:
        """Commit soon, also without a decision."""
        ...

    def queue(self, conversation: str, record: Record) -> None:
        """An input for the conversation's lane."""
        ...


class Keeper:
    """The snapshots and residues of one partition."""

    def __init__(self, partition: int, settings: Settings, clock: Clock, bus: StateBus, checkpoint: Checkpoint,
                 port: SnapshotPort, kept: Kept) -> None:  # fmt: skip
        self.snapshot_at: int | None = None
        self._partition = partition
        self._settings = settings
        self._clock = clock
        self._bus = bus
        self._checkpoint = checkpoint
        self._port = port
        self._kept = kept
        self._snapshots = Snapshots(partition, bus, port, self._stays)
        self._leaving: dict[str, list[Record]] = {}  # being forgotten; what is read for one of them waits until then
        self._told = asyncio.Event()  # their tombstones are committed

    def changed(self, conversation: str) -> None:
        """The next snapshot must have it."""
        self._snapshots.changed(conversation)

    def holds(self, conversation: str, record: Record) -> bool:
        """Keep the record back while its conversation is being forgotten."""
        waiting = self._leaving.get(conversation)
        if waiting is not None:
            waiting.append(record)
        return waiting is not None

    def committed(self) -> None:
        """A transaction was committed, with whatever the checkpoint gave along."""
        if not self._checkpoint.forgotten:
            self._told.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(self._settings.snapshot_ms / 1000)
            mark = self._kept.mark()
            if mark["diff_offset"] < 0:
                continue  # nothing was ever decided here
            try:
                await self._snapshots.write(mark)
            except OSError:
                log.exception("no snapshot of partition %d; the last one stays", self._partition)
                continue
            if mark["unsent"] <= mark["diff_offset"]:
                crash("snapshot.unsent")  # what is on disk knows decisions whose emits nobody else has
            self.snapshot_at = self._clock.now_ms()
            try:
                await self._forget()
            except OSError:
                log.exception("residues of partition %d stay where they are; forgotten later", self._partition)

    def _stays(self, conversation: str) -> bool:
        """A closed conversation must stay in memory: a decision may be in flight, over this very version."""
        return self._kept.busy(conversation) or self._checkpoint.owes(conversation)

    async def _forget(self) -> None:
        """Closed conversations whose diffs are gone get a tombstone on state.updates, and leave the snapshot.

        A day later than the diffs, so that none of them is there any more when its versions begin again.
        """
        until = self._clock.now_ms() - (self._settings.retention_days + 1) * DAY_MS
        found = await asyncio.to_thread(self._port.silent_since, self._partition, until)
        names = [name for name in found if not self._kept.busy(name) and self._bus.read(name) is None]
        if not names:
            return
        # one that is heard meanwhile waits: it goes on from its residue or from nothing, never from a mixture
        self._leaving = {name: [] for name in names}
        self._told.clear()
        self._checkpoint.forgotten = names
        self._kept.quietly(now=True)
        await self._told.wait()
        try:
            await asyncio.to_thread(self._port.forget, self._partition, names)
            for name in names:
                self._bus.drop(name)  # somebody may have looked at it meanwhile
        finally:
            self._put_back()

    def _put_back(self) -> None:
        back, self._leaving = self._leaving, {}
        for name, records in back.items():
            for record in records:
                self._kept.queue(name, record)
