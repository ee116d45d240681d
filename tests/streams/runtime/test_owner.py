"""The owner without a broker: what it keeps of a recovery."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterable, Mapping

from streams.metrics import RecordedMetrics
from streams.runtime.owner import Owner
from streams.runtime.ownership import Runtime, TopicPartition
from streams.runtime.ports import CommitPort, Recovered
from tests.streams.runtime.support import settings


class States(dict[str, bytes]):
    """Recovered states that can be watched."""


class Member:
    """A group that hands out a partition."""

    def __init__(self) -> None:
        self.asked = 0

    def assignment(self) -> frozenset[TopicPartition]:
        """See Group."""
        self.asked += 1
        return frozenset()

    async def beat(self) -> float | None:
        """See Group."""
        return None

    def hold(self, places: Iterable[TopicPartition]) -> None:
        """See Group."""

    def release(self, places: Iterable[TopicPartition]) -> None:
        """See Group."""

    def rejoin(self) -> None:
        """See Group."""

    async def ends(self) -> Mapping[TopicPartition, int]:
        """See Group."""
        return {}


class OneRecovery:
    """A host whose partition has one conversation."""

    def __init__(self) -> None:
        self.states = States({"demo/web/u1": b"{}"})

    def recover(self, partition: int, cancelled: Callable[[], bool]) -> Recovered:  # noqa: ARG002
        """See Host."""
        recovered = Recovered(states=self.states)
        del self.states
        return recovered

    def runtime(self, partition: int, commit: CommitPort) -> Runtime:
        """Not asked for here."""
        raise NotImplementedError


async def test_recovered_states_are_not_kept_twice() -> None:
    """Once the partition has taken its states over, the owner holds none of them: they would stay for ever."""
    host = OneRecovery()
    watched = weakref.ref(host.states)
    owner = Owner(settings(), ("channel.events",), host, RecordedMetrics(), lambda _: None)

    recovered = await owner._recover(0, 0)
    assert ["demo/web/u1"] == list(recovered.states)
    del recovered
    await asyncio.sleep(0.05)  # the loop and the thread let go of their own references
    gc.collect()
    assert watched() is None


async def test_worker_that_stops_opens_nothing_any_more() -> None:
    """An assignment that comes while the worker flushes and leaves is not opened: it would fence the next owner."""
    owner = Owner(settings(), ("channel.events",), OneRecovery(), RecordedMetrics(), lambda _: None)
    owner.group = member = Member()
    await owner.assigned()
    await owner.end()
    await owner.assigned()
    assert 1 == member.asked
