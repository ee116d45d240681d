"""A partition that opens decodes a state when its deadline comes, and refuses a checkpoint that the log left behind."""

from __future__ import annotations

import orjson
import pytest

from schemas.partition import place
from schemas.state import Mark
from streams.runtime import wire
from streams.runtime.local import LocalInterlock
from streams.runtime.partition import PartitionRuntime
from streams.runtime.ports import Outgoing, Recovered
from streams.runtime.recovery import GapError, _checkpoint, rebuild
from streams.runtime.snapshotting import LocalSnapshots
from streams.runtime.virtual import run_virtual
from tests.streams.runtime.recovering import Reader
from tests.streams.runtime.support import WHO, pipeline, rows, run, say

HOME = place(WHO, 4)


def told(lock: LocalInterlock, state: dict[str, object] | None, mark: int) -> None:
    """state.updates as a worker left it: one state, or a tombstone, and the mark."""
    values = {WHO: None if state is None else orjson.dumps(state)}
    body = Mark(diff_offset=mark, handled={}, unsent=mark + 1, stamped_at=1_767_578_400_000)
    values[f"~mark/{HOME}"] = orjson.dumps(body.model_dump(mode="json"))
    for key, value in values.items():
        lock.log.append(Outgoing(wire.UPDATES, HOME, key.encode(), value, ()))


async def _opened(lock: LocalInterlock, recovered: Recovered) -> PartitionRuntime:
    runtime = lock._partitions[HOME] = PartitionRuntime(HOME, rows(), lock.ports, lock._settings)
    runtime.start(recovered)
    for record in lock.log.records("channel.events", HOME):
        runtime.offer(record)
    return runtime


def test_deadline_of_a_state_that_stayed_encoded_fires() -> None:
    """Only its earliest deadline is known when a partition opens; then all of them are looked at (promise 6)."""

    async def body(lock: LocalInterlock) -> None:
        await say(lock, 1, "timer60000")
        await lock.settle()
        recovered = rebuild(Reader(lock.log), HOME, None)
        await lock.close()
        runtime = await _opened(lock, recovered)

        assert {WHO} == (recovered.dues or {}).keys()
        assert {} == runtime._bus._hot
        await lock.advance(70_000)
        assert ["test.wake"] == [orjson.loads(one.value or b"")["name"] for one in lock.log.records("timers.fired")]

    run(body)


def test_checkpoint_streams_into_the_new_file(snapshots: LocalSnapshots) -> None:
    """Open states come into memory with their deadline; a residue is on disk alone; a tombstone is nowhere."""

    async def body() -> None:
        lock = pipeline()
        await say(lock, 1, "timer60000")
        await lock.settle()
        state = dict(lock.state(WHO) or {})
        told(lock, state, 0)
        recovered = rebuild(Reader(lock.log), HOME, snapshots)
        assert (set(recovered.states), recovered.dues) == ({WHO}, {WHO: state["timers"]["test.wake"]["due"]})

        told(lock, {**state, "version": 2, "kind": "residue", "timers": {}}, 0)
        assert {} == _checkpoint(Reader(lock.log), HOME, snapshots).states
        assert "residue" == orjson.loads(snapshots.find(HOME, WHO) or b"")["kind"]
        told(lock, None, 0)
        assert {} == _checkpoint(Reader(lock.log), HOME, snapshots).states
        assert snapshots.find(HOME, WHO) is None
        await lock.close()

    run_virtual(body())


@pytest.mark.parametrize(("kept", "refused"), [(1, False), (2, False), (3, True)])
def test_a_mark_that_the_log_left_behind_is_refused(kept: int, *, refused: bool) -> None:
    """Diffs after the checkpoint that are gone would be a gap in silence (promise 3); a marker alone is none."""

    async def body() -> None:
        lock = pipeline()
        for number in range(4):
            await say(lock, number)
        await lock.settle()
        told(lock, dict(lock.state(WHO) or {}), 0)
        if refused:
            with pytest.raises(GapError, match=f"begins at offset {kept}, and the last mark .* ends at 0"):
                rebuild(Reader(lock.log, kept), HOME, None)
        else:
            assert 3 == rebuild(Reader(lock.log, kept), HOME, None).diff_offset
        await lock.close()

    run_virtual(body())
