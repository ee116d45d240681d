"""What the gateway writes to topics: answered only after the broker has it, the same id once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable

from schemas.partition import place
from schemas.topics import TOPICS
from streams.gateway.reading import RefusedError
from streams.runtime.ports import Clock, Fact, SendPort
from streams.runtime.wire import fact_record

REMEMBERED = 20_000  # ids whose repeat is answered without a second record; the state dedupes the rest (A15)
MAX_IN_FLIGHT = 10_000  # records that the broker has not confirmed yet; more are refused
ACK_SECONDS = 10.0  # after this the client is told to come again with the same id


class Publisher:
    """Facts and events to the broker through the send port."""

    def __init__(self, port: SendPort, partitions: int, clock: Clock) -> None:
        self._port = port
        self._partitions = partitions
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], asyncio.Future[int]] = OrderedDict()
        self._in_flight = 0

    async def publish(self, fact: Fact, trace: str = "") -> bool:
        """True once the broker has it, False for a repeat of an id that it has. Raises RefusedError.

        When the broker does not answer in time the record may still arrive: the same id again is safe.
        """
        key = (fact.topic, f"{fact.conversation}\n{fact.id}")
        known = self._known.get(key)
        if known is None:
            known = self._send(key, fact, trace)
            await self._acknowledged(known)
            return True
        self._known.move_to_end(key)
        await self._acknowledged(known)
        return False

    def _send(self, key: tuple[str, str], fact: Fact, trace: str) -> asyncio.Future[int]:
        record = fact_record(fact, place(fact.conversation, self._partitions), self._clock.now_ms(), trace)
        limit = TOPICS[fact.topic].max_bytes
        if len(record.value or b"") > limit:
            raise RefusedError(413, "too_large", f"{fact.topic} takes at most {limit} bytes a record")
        if self._in_flight >= MAX_IN_FLIGHT:
            raise RefusedError(503, "busy", "the broker is behind: come again")
        sent = asyncio.ensure_future(_offset(self._port.send(record)))
        self._in_flight += 1
        sent.add_done_callback(lambda done: self._landed(key, done))
        self._known[key] = sent
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return sent

    def _landed(self, key: tuple[str, str], done: asyncio.Future[int]) -> None:
        self._in_flight -= 1
        if done.cancelled() or done.exception() is not None:
            self._known.pop(key, None)  # it is not there: the next try sends it

    async def _acknowledged(self, sent: asyncio.Future[int]) -> None:
        try:
            async with asyncio.timeout(ACK_SECONDS):
                await asyncio.shield(sent)
        except TimeoutError:
            raise RefusedError(503, "broker_slow", "the broker has not confirmed yet: send the same id again") from None
        except Exception as error:
            raise RefusedError(503, "broker_refused", f"the broker did not take it: {error}") from error


async def _offset(sent: Awaitable[int]) -> int:
    return await sent
