"""End offsets when asking fails in an unforeseen way."""

from __future__ import annotations

import asyncio

import pytest

from streams.runtime.offsets import KafkaOffsets
from tests.streams.runtime.support import settings


class Broken(KafkaOffsets):
    """Asks with a bug."""

    def _list(self, partitions: tuple[int, ...]) -> dict[int, dict[str, int]]:
        raise LookupError(partitions)


async def test_a_question_that_fails_is_heard_by_all_who_asked() -> None:
    """Nobody waits for an answer that never comes: deadlines that stand still must be said (promise 10)."""
    offsets = Broken(settings(bootstrap_servers="127.0.0.1:1"), ("channel.events",))
    async with asyncio.timeout(5):
        answers = await asyncio.gather(offsets.ends(0), offsets.ends(1), return_exceptions=True)
    assert [LookupError, LookupError] == [type(answer) for answer in answers]
    with pytest.raises(LookupError):
        await asyncio.wait_for(offsets.ends(2), 5)
    offsets.close()
