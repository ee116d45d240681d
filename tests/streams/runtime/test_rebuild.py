"""Diffs over a snapshot, without a broker: what is in memory afterwards is what the next checkpoint must write."""

from __future__ import annotations

import orjson

from memory.bus import StateBus
from memory.sealing import MemoryKeyStore
from schemas.partition import place
from streams.clock import SystemClock
from streams.processors import session
from streams.runtime.checkpoint import Checkpoint, saved
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import Recovered
from streams.runtime.recovery import rebuild
from streams.runtime.snapshotting import LocalSnapshots
from streams.runtime.virtual import run_virtual, virtual_clock
from tests.streams.runtime.recovering import Reader
from tests.streams.runtime.support import WHO, rows, say, settings

HOUR = 3_600_000
HOME = place(WHO, 4)


def closed_conversation() -> LocalInterlock:
    """The customer wrote, and the conversation was closed an hour later: two diffs."""

    async def body() -> LocalInterlock:
        table = [*rows(), session.row(settings(close_after_ms=HOUR))]
        lock = LocalInterlock(settings(close_after_ms=HOUR), table, {}, MemoryKeyStore(), virtual_clock())
        await say(lock, 1)
        await lock.advance(HOUR + 5_000)
        await lock.close()
        return lock

    return run_virtual(body())


def as_snapshot(lock: LocalInterlock, snapshots: LocalSnapshots) -> None:
    """The closed conversation as the last snapshot wrote it."""
    bus, state = StateBus(), lock.state(WHO)
    bus.load(WHO, orjson.dumps(state))
    row = saved(bus, WHO)
    assert row is not None
    snapshots.write(HOME, [row], {"diff_offset": 1, "handled": {}, "unsent": 2})


def test_closed_conversation_that_no_checkpoint_has_can_still_be_checkpointed(snapshots: LocalSnapshots) -> None:
    """Closed, in the snapshot, and the worker died before state.updates had it: it is written by the next round."""
    lock = closed_conversation()
    as_snapshot(lock, snapshots)

    recovered: Recovered = rebuild(Reader(lock.log), HOME, snapshots)
    bus = StateBus()
    for conversation, encoded in recovered.states.items():
        bus.load(conversation, encoded)
    checkpoint = Checkpoint(HOME, bus, SystemClock(), 0)
    for conversation in recovered.changed:
        checkpoint.changed(conversation)

    assert [WHO] == recovered.changed
    written = checkpoint.ride_along({"diff_offset": 1, "handled": {}, "unsent": 2})
    assert [WHO.encode(), f"~mark/{HOME}".encode()] == [record.key for record in written]
    assert "residue" == orjson.loads(written[0].value or b"")["kind"]
