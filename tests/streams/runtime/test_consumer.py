"""The driver's answers that are no yes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError

from streams.runtime.faust_consumer import ConsumerThread


def _thread(answer: Exception | bool) -> ConsumerThread:  # noqa: FBT001 (what the driver returns)
    """A driver whose coordinator answers so; nothing of it runs."""

    async def heartbeat() -> bool:
        if isinstance(answer, Exception):
            raise answer
        return answer

    thread: Any = ConsumerThread.__new__(ConsumerThread)
    thread._consumer = SimpleNamespace(_coordinator=SimpleNamespace(_do_heartbeat=heartbeat))
    thread._ensure_consumer = lambda: thread._consumer
    found: ConsumerThread = thread
    return found


@pytest.mark.parametrize("answer", [False, KafkaError("unexpected code"), GroupAuthorizationFailedError("g")])
async def test_only_a_yes_makes_a_member(answer: Exception | bool) -> None:  # noqa: FBT001 (as above)
    """A no, and an answer that the driver does not know: no member, so the fence is asked for again, or given up."""
    assert await _thread(answer)._beat() is None
    assert await _thread(True)._beat() is not None
