"""Runs an ASGI app on uvicorn until SIGTERM or Ctrl-C, then ends its streams and exits 0 within seconds."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

STOP_SECONDS = 3  # requests still running after this are cut off


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn would raise them again and end the process with another status than 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """No handlers."""
        yield


def bind(host: str, port: int, setting: str) -> socket.socket:
    """A socket on that port (0: a free one). Raises OSError that names the address and the setting."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        message = f"can't listen on {host}:{port} ({error.strerror}): set {setting}, 0 takes a free port"
        raise OSError(error.errno, message) from error
    return found


async def serve(app: ASGIApp, listener: socket.socket, stopping: Callable[[], None] = lambda: None,
                stop: asyncio.Event | None = None) -> None:  # fmt: skip
    """Serve until a signal comes or `stop` is set; `stopping` is called first, to end open streams."""
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=STOP_SECONDS,
                            lifespan="on", server_header=False)  # fmt: skip
    server, stop = _Server(config), stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(RuntimeError, ValueError):  # not the main thread: its owner sets `stop`
            loop.add_signal_handler(number, stop.set)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    stopping()
    server.should_exit = True
    await running
