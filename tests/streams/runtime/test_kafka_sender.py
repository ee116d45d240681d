"""The producer of emits on a real broker: nothing lost, order kept, errors surface."""

from __future__ import annotations

import asyncio

import pytest

from streams.runtime.ports import Outgoing
from streams.runtime.sender import KafkaSender, SendError
from tests.streams.runtime.kafka_rig import Rig

pytestmark = pytest.mark.kafka


def fatal(reason: str) -> None:
    """No test here expects the producer to break."""
    raise AssertionError(reason)


async def test_nothing_is_lost_when_the_queue_is_full(rig: Rig) -> None:
    """100,001 records through a queue of 1,000 are all there, in order, after the flush (case C21)."""
    sender = KafkaSender(rig.settings, fatal, queue_buffering_max_messages=1_000)
    sent = [sender.send(Outgoing("plans", 0, b"k", b"%d" % number)) for number in range(100_001)]

    assert await sender.close(60) == 0

    offsets = await asyncio.gather(*sent)
    assert list(range(100_001)) == offsets
    assert [b"%d" % number for number in range(100_001)] == [one.value for one in rig.records("plans")]


async def test_delivery_error_surfaces(rig: Rig) -> None:
    """A record that the broker refuses fails its awaitable, and those behind it still go out (case C21)."""
    sender = KafkaSender(rig.settings, fatal)
    refused = sender.send(Outgoing("plans", 0, b"k", b"x" * 9_000_000))
    fine = sender.send(Outgoing("plans", 0, b"k", b"fine"))

    with pytest.raises(SendError, match="MSG_SIZE"):
        await refused
    assert await fine == 0
    assert await sender.close(10) == 0


async def test_close_says_what_is_left(rig: Rig) -> None:
    """A broker that does not answer leaves records unsent, and the close says how many, within its time (case C21)."""
    nowhere = rig.settings.model_copy(update={"bootstrap_servers": "127.0.0.1:1"})
    sender = KafkaSender(nowhere, fatal)
    for number in range(3):
        sender.send(Outgoing("plans", 0, b"k", b"%d" % number))

    assert await asyncio.wait_for(sender.close(0.5), 10) == 3
