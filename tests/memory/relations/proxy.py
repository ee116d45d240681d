"""A small TCP proxy for tests: it drops connections that were idle, with or without a word, or loses a reply."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Self


class Proxy:
    """Listens on a free port of loopback; `idle_s` is how long a connection may say nothing."""

    def __init__(self, port: int, *, idle_s: float = 3600, silent: bool = False) -> None:
        """`silent`: an idle connection is not closed, its bytes just never arrive (as many balancers do)."""
        self.connections = self.dropped = self.lost = 0
        self.lose_after: bytes | None = None  # cut the connection when the client has sent this, before the reply
        self._target, self._idle_s, self._silent = port, idle_s, silent
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()

    @property
    def url(self) -> str:
        """Its address for a driver."""
        return f"bolt://127.0.0.1:{self.port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        link = _Link(time.monotonic())
        for work in (self._copy(reader, back, link, asks=True), self._copy(there, writer, link), self._watch(link)):
            task = asyncio.create_task(work)
            self._tasks.add(task)
            link.tasks.append(task)
        link.writers = [writer, back]

    async def _copy(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, link: _Link, *, asks: bool = False
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65_536):
                if link.dead:
                    continue  # swallowed: nobody is told
                link.last = time.monotonic()
                if asks and self.lose_after is not None and self.lose_after in data:
                    link.lost, self.lose_after, self.lost = True, None, self.lost + 1
                if link.lost and not asks:
                    break  # the server has answered, and the answer is lost
                target.write(data)
                await target.drain()
        link.close()

    async def _watch(self, link: _Link) -> None:
        while True:
            await asyncio.sleep(self._idle_s / 10)
            if time.monotonic() - link.last > self._idle_s and not link.dead:
                self.dropped += 1
                link.dead = True
                if not self._silent:
                    link.close()
                return


class _Link:
    def __init__(self, now: float) -> None:
        self.last, self.dead, self.lost = now, False, False
        self.tasks: list[asyncio.Task[None]] = []
        self.writers: list[asyncio.StreamWriter] = []

    def close(self) -> None:
        """Both ends, as a cut wire."""
        for writer in self.writers:
            writer.transport.abort()
