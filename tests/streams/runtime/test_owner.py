"""The owner without a broker: what it keeps of a recovery."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable

from streams.metrics import RecordedMetrics
from streams.runtime.owner import Owner
from streams.runtime.ownership import Runtime
from streams.runtime.ports import CommitPort, Recovered
from tests.streams.runtime.support import settings


class States(dict[str, bytes]):
    """Recovered states that can be watched."""


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
