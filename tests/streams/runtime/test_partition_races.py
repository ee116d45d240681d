"""What happens to a partition in the midst of a commit: pause, snapshot, close."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory.sealing import MemoryKeyStore
from streams.processors import session
from streams.runtime.checkpoint import SavedState
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import Outgoing
from streams.runtime.virtual import run_virtual, virtual_clock
from tests.streams.runtime.support import WHO, SlowTool, heard, resume, rows, rubbish, run, say, settings, values

HOUR = 3_600_000


class SlowCommit:
    """The commit port, with a broker that takes its time."""

    def __init__(self, lock: LocalInterlock) -> None:
        self._inner = lock.commit
        self.seconds = 0.0
        self.made = 0

    async def commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        """Later."""
        self.made += 1
        await asyncio.sleep(self.seconds)
        return await self._inner.commit(batch)


class Disk:
    """A snapshot port and its residues, in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, SavedState] = {}

    def write(self, _partition: int, changed: Iterable[SavedState], _mark: Mapping[str, Any]) -> None:
        """Keep the rows."""
        self.rows.update({row.conversation: row for row in changed})

    def silent_since(self, _partition: int, until_ms: int) -> list[str]:
        """Residues whose last decision is not later."""
        return [row.conversation for row in self.rows.values()
                if row.kind == "residue" and (row.next_due or 0) <= until_ms]  # fmt: skip

    def forget(self, _partition: int, conversations: Iterable[str]) -> None:
        """Take rows out."""
        for conversation in conversations:
            del self.rows[conversation]

    def find(self, conversation: str) -> bytes | None:
        """One row's body."""
        row = self.rows.get(conversation)
        return None if row is None else row.body


async def _snapshot(lock: LocalInterlock) -> None:
    """Time for a snapshot: virtual time to begin it, and a moment of real time for its thread."""
    for _ in range(3):
        await lock.advance(601_000)
        time.sleep(0.02)  # noqa: ASYNC251 (on a virtual clock nothing else gives a thread time)


def slow(lock: LocalInterlock) -> SlowCommit:
    """The pipeline's commits take time from now on."""
    commit = SlowCommit(lock)
    lock.ports = replace(lock.ports, commit=commit)
    return commit


def test_records_read_during_a_pause_stay_behind_those_that_were_queued() -> None:
    """A conversation's messages, some queued and some read after the pause, are heard in their order (promise 3)."""

    async def body(lock: LocalInterlock) -> None:
        commit = slow(lock)
        commit.seconds = 0.5
        await say(lock, 0, "zero", "u2")
        rubbish(lock, 5)
        for number in range(1, 5):
            await say(lock, number, f"word {number}")
        await asyncio.sleep(1.25)  # the third is over the limit and being committed; the rest is still queued
        for number in range(5, 8):
            await say(lock, number, f"word {number}")
        await lock.settle()
        await resume(lock, "channel.events")
        await lock.settle()
        assert [f"word {number}" for number in range(1, 8)] == heard(lock)

    run(body, dlq_limit=2)


def test_conversation_comes_back_while_its_residue_leaves_memory() -> None:
    """A message is being committed as the snapshot lets its closed conversation go: it is heard, nothing stops."""

    async def body() -> None:
        values = settings(close_after_ms=HOUR, snapshot_ms=600_000, checkpoint_ms=10)
        table, disk = [*rows(), session.row(values)], Disk()
        lock = LocalInterlock(values, table, {}, MemoryKeyStore(), virtual_clock())
        lock.ports = replace(lock.ports, snapshots=disk, residue=disk.find)
        commit = slow(lock)
        await say(lock, 1)
        await lock.advance(HOUR + 5_000)
        for number in range(2, 4):  # the residue is on state.updates, too
            await say(lock, number, sender="u10")  # of the same partition
            await lock.settle()
        commit.seconds = 700.0  # longer than the snapshots are apart
        await say(lock, 9, "back")
        await asyncio.sleep(650)
        commit.seconds = 0.0  # that of the checkpoint after it
        time.sleep(0.05)  # noqa: ASYNC251 (the snapshot's thread ends before the commit does)
        await lock.advance(100_000)
        assert ["back"] == heard(lock)
        await lock.close()

    run_virtual(body())


def test_commit_that_ends_after_the_close_is_followed_by_nothing() -> None:
    """The broker answers when the partition is closed: no emit, no call; the next owner finds the diff (promise 2)."""
    tool = SlowTool(0.0)

    async def body(lock: LocalInterlock) -> None:
        commit = slow(lock)
        commit.seconds = 5.0
        await say(lock, 1, "call")
        await say(lock, 2, "plan", "u2")
        await asyncio.sleep(0.1)
        await lock.close()
        await asyncio.sleep(10)
        assert ([], []) == (values(lock, "plans"), tool.done)

    run(body, {"tool": tool})


def test_residue_that_was_only_looked_at_leaves_memory_again() -> None:
    """A repeat for a closed conversation, or a question about it, brings its residue into memory for a while only."""

    async def body() -> None:
        values = settings(close_after_ms=HOUR, snapshot_ms=600_000, checkpoint_ms=10)
        table, disk = [*rows(), session.row(values)], Disk()
        lock = LocalInterlock(values, table, {}, MemoryKeyStore(), virtual_clock())
        lock.ports = replace(lock.ports, snapshots=disk, residue=disk.find)
        await say(lock, 1)
        await lock.advance(HOUR + 5_000)
        for number in range(2, 4):  # of the same partition: the residue is on state.updates, too
            await say(lock, number, sender="u10")
            await lock.settle()
        partition = lock._owner(lock.partition_of(WHO))
        for _ in range(2):
            await _snapshot(lock)
            assert 1 == partition.open_states
            assert "residue" == (lock.state(WHO) or {})["kind"]
            assert 2 == partition.open_states
        await lock.close()

    run_virtual(body())


def test_records_without_a_usable_key_share_transactions() -> None:
    """A flood of keyless rubbish costs a few commits, not one each; versions join and a restart agrees (promise 3)."""

    async def body(lock: LocalInterlock) -> None:
        commit = slow(lock)
        commit.seconds = 0.01
        await say(lock, 0)
        rubbish(lock, 300, key=None)
        await say(lock, 1)
        await lock.settle()
        home = f"~{lock.partition_of(WHO)}"
        before = lock.state(home)

        assert 300 == len({letter["offset"] for letter in values(lock, "channel.events.dlq")})
        assert 2 == len(heard(lock))
        assert commit.made <= 6
        assert list(range(1, 301)) == [diff["version"] for diff in lock.diffs(home)]
        await lock.restart()
        await lock.settle()
        assert before == lock.state(home)

    run(body, dlq_limit=1_000)


def test_pause_in_a_flood_without_keys_stops_it_at_the_limit() -> None:
    """The record over the limit is the last one decided before the pause; a resume decides the rest (promise 10)."""

    async def body(lock: LocalInterlock) -> None:
        slow(lock).seconds = 0.01
        rubbish(lock, 30, key=None)
        await lock.settle()
        at_the_pause = len(values(lock, "channel.events.dlq"))
        await resume(lock, "channel.events")
        await resume(lock, "channel.events")

        assert 11 == at_the_pause
        assert 30 == len(values(lock, "channel.events.dlq"))

    run(body, dlq_limit=10)
