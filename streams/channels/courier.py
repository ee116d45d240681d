"""Facts to the broker within a channel's patience: what it does not confirm in time is spooled, and forwarded later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from streams.channels.spool import Spool, SpoolError, Waiting
from streams.gateway.publisher import Publisher
from streams.gateway.reading import RefusedError
from streams.runtime.ports import Fact

PATIENCE_SECONDS = 0.3  # for the broker, of the one second that a channel waits; the rest is for the disk
RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


class Courier:
    """Hands facts over; `forward` runs beside it and empties the spool, in order for each conversation."""

    def __init__(self, publisher: Publisher, spool: Spool) -> None:
        self._publisher = publisher
        self._spool = spool
        self._left: set[asyncio.Task[bool]] = set()

    async def hand_over(self, facts: Sequence[tuple[Fact, str]]) -> int:
        """The broker or the spool has them, each with its trace, when this returns; how many were new.

        Raises RefusedError for a record that no broker would take, and when the disk fails, too.
        """
        # behind what waits already: else a customer's second message could overtake the first
        if len(self._spool):
            await self._store(facts)
            return len(facts)
        sending = {asyncio.ensure_future(self._publisher.publish(fact, trace)): (fact, trace) for fact, trace in facts}
        if not sending:
            return 0
        await asyncio.wait(sending, timeout=PATIENCE_SECONDS)
        late = [sent for task, sent in sending.items() if not task.done() or _for_now(task.exception())]
        if late:
            await self._store(late)
        for task in sending:  # still handed to the broker: only its answer is not waited for
            if not task.done():
                self._left.add(task)
                task.add_done_callback(self._forget)
        return len(late) + sum(task.result() for task, sent in sending.items() if sent not in late)

    async def forward(self) -> None:
        """For ever: send what waits, drop what the broker has."""
        while True:
            await self._spool.news.wait()
            try:
                if not await self._round(await self._spool.first()):
                    await asyncio.sleep(RETRY_SECONDS)
            except SpoolError as error:
                log.warning("%s; what was sent is sent again", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _round(self, rows: Iterable[Waiting]) -> int:
        """One record of each conversation. What the broker knows by its id is not sent twice."""
        sent = {row.seq: asyncio.ensure_future(self._publisher.publish(row.fact, row.trace)) for row in rows}
        await asyncio.wait(sent.values())
        done = [seq for seq, task in sent.items() if not _for_now(task.exception())]
        for seq in done:
            sent[seq].result()  # anything but "not now" was found when it was first handed over, and not spooled
        if done:
            await self._spool.drop(done)
        return len(done)

    async def _store(self, facts: Iterable[tuple[Fact, str]]) -> None:
        try:
            await self._spool.put(facts)
        except SpoolError as error:
            raise RefusedError(503, "spool", str(error)) from None

    def _forget(self, task: asyncio.Task[bool]) -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()  # its row is in the spool, which asks for it again


def _for_now(error: BaseException | None) -> bool:
    """Whether the broker is only behind: the same record will do later."""
    return isinstance(error, RefusedError) and error.status == 503
