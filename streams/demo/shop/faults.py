"""Faults that a test injects into the shop: a delay, an error, or an answer that is lost after the shop acted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOST_MS = 60_000  # how long a lost answer keeps its client waiting; longer than any client waits


class Fault(BaseModel):
    """What goes wrong with the next `times` requests that match. `contains` is looked for in URL and body."""

    model_config = ConfigDict(strict=True, extra="forbid")

    path_prefix: str = Field(default="/", pattern="^/", max_length=200)
    method: Literal["GET", "POST", "*"] = "*"
    contains: str = Field(default="", max_length=200)
    kind: Literal["delay", "error", "lost_response"]
    delay_ms: int = Field(default=0, ge=0, le=600_000)
    status: int = Field(default=503, ge=400, le=599)
    times: int = Field(default=1, ge=1, le=1_000_000)

    def matches(self, scope: Scope, body: bytes) -> bool:
        """Whether this request is meant."""
        seen = scope["path"].encode() + b"?" + scope["query_string"] + b" " + body
        return (scope["path"].startswith(self.path_prefix) and self.method in ("*", scope["method"])
                and self.contains.encode() in seen)  # fmt: skip


class Faults:
    """ASGI middleware: the first fault that matches is used up; `/faults` itself is never hit."""

    def __init__(self, app: ASGIApp, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._app, self._sleep = app, sleep
        self.waiting: list[Fault] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or spoil it."""
        if scope["type"] != "http" or scope["path"] == "/faults" or not self.waiting:
            await self._app(scope, receive, send)
            return
        # Read before it is passed on: a fault may look for a text in it, and the app reads it again.
        body = await _read(receive)
        fault = self._take(scope, body)
        receive_again = _again(body, receive)
        if fault is None:
            await self._app(scope, receive_again, send)
        elif fault.kind == "delay":
            await self._sleep(fault.delay_ms / 1000)
            await self._app(scope, receive_again, send)
        elif fault.kind == "error":
            await self._sleep(fault.delay_ms / 1000)
            error = {"error": {"code": "injected", "message": "this failure was asked for"}}
            await JSONResponse(error, fault.status)(scope, receive_again, send)
        else:
            # The shop acts first: a response that is lost after the effect is what clients get wrong (A13).
            await self._app(scope, receive_again, _nowhere)
            await self._sleep((fault.delay_ms or LOST_MS) / 1000)
            await JSONResponse({"error": {"code": "lost", "message": "lost"}}, 504)(scope, receive_again, send)

    def _take(self, scope: Scope, body: bytes) -> Fault | None:
        for index, fault in enumerate(self.waiting):
            if fault.matches(scope, body):
                left = fault.times - 1
                self.waiting[index : index + 1] = [fault.model_copy(update={"times": left})] if left else []
                return fault
        return None


async def _nowhere(_message: Message) -> None:
    """An answer that never arrives."""


async def _read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message["type"] == "http.request" and message.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever the client does next."""
    given = False

    async def once() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once
