"""Server-sent events from the outbox, resumed by `Last-Event-ID`; the outbox is the buffer of slow clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from streams.gateway.outbox import Outbox, Stored
from streams.gateway.reading import RefusedError, query_conversation

KEEP_ALIVE_SECONDS = 15.0  # below the idle limit of common proxies (60 s)
MAX_STREAMS = 5_000
MAX_STREAMS_EACH = 8  # open windows of one customer
MAX_SEQ = 2**63 - 1


class Streams:
    """The open event streams."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._open: Counter[str] = Counter()
        self._closing = False

    def close(self) -> None:
        """End all of them; each client comes back with its Last-Event-ID."""
        self._closing = True
        self._outbox.wake_all()

    async def handle(self, request: Request) -> Response:
        """GET /v1/stream; with `once=true` it ends after what is there."""
        conversation, start = query_conversation(request), _start(request)
        if start > self._outbox.newest():
            start = 0  # a place of an outbox that is gone: from the start, as the client knows messages by their ids
        once = request.query_params.get("once") == "true"
        if self._closing or self._open.total() >= MAX_STREAMS or self._open[conversation] >= MAX_STREAMS_EACH:
            raise RefusedError(503, "busy", "too many open streams: come again")
        events = self._events(conversation, start, once=once)
        return StreamingResponse(events, media_type="text/event-stream",
                                 headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})  # fmt: skip

    async def _events(self, conversation: str, seq: int, *, once: bool) -> AsyncIterator[bytes]:
        # counted here, not by `handle`: a client that left before the first read never starts this generator,
        # so its `finally` would not run either
        self._open[conversation] += 1
        news = self._outbox.watch(conversation)
        try:
            yield b": open\n\n"
            while not self._closing:
                news.clear()
                for stored in self._outbox.after(conversation, seq):
                    seq = stored.seq
                    yield _event(stored)
                    news.set()  # there may be more than one page
                if once and not news.is_set():
                    return
                if not await _wait(news):
                    yield b": keep-alive\n\n"
        finally:
            self._outbox.unwatch(conversation, news)
            self._open[conversation] -= 1
            if not self._open[conversation]:
                del self._open[conversation]


async def _wait(news: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            await news.wait()
    except TimeoutError:
        return False
    return True


def _event(stored: Stored) -> bytes:
    return f"id: {stored.seq}\nevent: message\ndata: {stored.message}\n\n".encode()


def _start(request: Request) -> int:
    text = request.headers.get("Last-Event-ID") or request.query_params.get("last_event_id") or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_SEQ):
        raise RefusedError(422, "wrong_value", "expected the id of an event of this stream", "Last-Event-ID")
    return int(text)
