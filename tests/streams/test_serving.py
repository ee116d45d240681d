"""Serving: the socket, its errors, and an end on request."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from streams.serving import bind, serve


def test_a_taken_port_is_named() -> None:
    """A port that is taken is named, with what to do."""
    with bind("127.0.0.1", 0, "INTERLOCK_GATEWAY_PORT") as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port} .*set INTERLOCK_GATEWAY_PORT, 0 takes"):
            bind("127.0.0.1", port, "INTERLOCK_GATEWAY_PORT")


async def test_a_request_under_way_is_answered_at_the_stop() -> None:
    """On a stop the hook runs first, what runs is finished, and then it ends."""
    stop, entered, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_request: Request) -> Response:
        entered.set()
        await stopped.wait()
        return PlainTextResponse("done")

    listener = bind("127.0.0.1", 0, "INTERLOCK_GATEWAY_PORT")
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    serving = asyncio.create_task(serve(Starlette(routes=[Route("/", slow)]), listener, stopped.set, stop))
    async with httpx.AsyncClient(base_url=url) as client:
        waiting = asyncio.create_task(client.get("/"))
        await entered.wait()
        stop.set()
        assert "done" == (await waiting).text
    async with asyncio.timeout(5):
        await serving
