"""The tool handler over real sockets, on both HTTP transports: what a broken connection means for money."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import orjson
import pytest
from httpx_aiohttp import HttpxAiohttpClient

from agents.tools.spec import load_tools
from schemas.tools import ToolCall, ToolResult
from streams.clock import SystemClock
from streams.effects.tools import ToolHandler
from streams.runtime.ports import Effect

Behave = Callable[[str, asyncio.StreamWriter], Awaitable[None]]
GOOD = {"refund_id": "RF-1", "order_id": "1001", "amount_fen": 5_000, "status": "accepted"}
pytestmark = pytest.mark.slow  # real sockets and real pauses between attempts: 6 s in all
CLIENTS = pytest.mark.parametrize("client", [httpx.AsyncClient, HttpxAiohttpClient])
Client = type[httpx.AsyncClient]


def answer(writer: asyncio.StreamWriter, status: int, body: object) -> None:
    """A whole HTTP answer."""
    content = orjson.dumps(body)
    writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (status, len(content)) + content)


@contextlib.asynccontextmanager
async def service(behave: Behave) -> AsyncIterator[str]:
    """A server that reads a request whole, then does as told and hangs up; its URL."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
            await reader.readexactly(length)
            await behave(head.split(" ")[1], writer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def refund(client: Client, url: str, timeout_ms: int = 300) -> ToolResult:
    """The result of a refund at that service."""
    now = SystemClock().now_ms()
    call = ToolCall(
        call_id="call-1", session_id="s", plan_id="p", task_id="t", skill="refunds", tool="create_refund", risk="money",
        args={"order_id": "1001", "customer_id": "c", "amount_fen": 5_000, "reason": "x"}, args_hash="0",
        idempotency_key="key-1", purpose="", expectation="", declared_at=now, deadline=now + 9_000,
        timeout_ms=timeout_ms,
    )  # fmt: skip
    effect = Effect("a/b/c", "call-1", "tool", "key-1", now, now + 9_000, timeout_ms, call.model_dump(mode="json"))
    async with client() as opened:
        (fact,) = await ToolHandler(load_tools(), opened, url, lambda _, __: None, SystemClock()).run(effect)
    assert isinstance(fact.value, ToolResult)
    return fact.value


def told(result: ToolResult) -> tuple[str, str]:
    """Status and error code."""
    return result.status, result.error.code if result.error else ""


async def _hang_up(path: str, writer: asyncio.StreamWriter) -> None:
    """Hangs up on refunds; says that the key happened."""
    if path.startswith("/effects"):
        answer(writer, 200, {"key": "key-1", "happened": True, "status": 201, "response": GOOD})


async def _never_known(_path: str, _writer: asyncio.StreamWriter) -> None:
    """Hangs up on everything."""


async def _half(path: str, writer: asyncio.StreamWriter) -> None:
    """Half an answer to refunds; says that the key did not happen."""
    if path.startswith("/effects"):
        answer(writer, 404, {"key": "key-1", "happened": False})
    else:
        writer.write(b"HTTP/1.1 201 X\r\ncontent-length: 500\r\n\r\n{")


async def _rubbish(path: str, writer: asyncio.StreamWriter) -> None:
    """No HTTP at all."""
    writer.write(b"\x00\x01 what?\r\n\r\n" if path else b"")


async def _slow(path: str, writer: asyncio.StreamWriter) -> None:
    """Never answers refunds; says that the key did not happen."""
    if path.startswith("/effects"):
        answer(writer, 404, {"key": "key-1", "happened": False})
    else:
        await asyncio.sleep(5)


@CLIENTS
async def test_a_good_answer_is_a_success(client: Client) -> None:
    """Both transports carry a whole exchange."""

    async def good(_path: str, writer: asyncio.StreamWriter) -> None:
        answer(writer, 201, GOOD)

    async with service(good) as url:
        assert ("success", "") == told(await refund(client, url))


@CLIENTS
async def test_a_server_that_hangs_up_after_the_request_is_asked(client: Client) -> None:
    """It had the request and gave no answer: asking tells that the refund happened (A13)."""
    async with service(_hang_up) as url:
        result = await refund(client, url)

    assert ("success", "query", 1) == (result.status, result.confirmed_by, result.attempts)


@CLIENTS
@pytest.mark.parametrize("behave", [_never_known, _rubbish])
async def test_what_a_broken_service_did_is_unknown(client: Client, behave: Behave) -> None:
    """No readable answer to anything: unknown, and never "it did not happen" (A13)."""
    async with service(behave) as url:
        assert ("unknown", "connection_lost") == told(await refund(client, url))


@CLIENTS
async def test_half_an_answer_is_none(client: Client) -> None:
    """An answer that breaks off is retried; the service says that nothing happened, so it is a failure."""
    async with service(_half) as url:
        assert ("failure", "connection_lost") == told(await refund(client, url))


@CLIENTS
async def test_a_silent_service_times_out(client: Client) -> None:
    """Nothing in time on a real socket is a time-out, on each attempt (R-003-15)."""
    async with service(_slow) as url:
        result = await refund(client, url, timeout_ms=100)

    assert ("timeout", "timeout", 3) == (*told(result), result.attempts)


@CLIENTS
async def test_a_refused_connection_did_nothing(client: Client) -> None:
    """Nobody listens: the request never left, so it is a failure and not unknown."""
    async with service(_never_known) as url:
        gone = url
    result = await refund(client, gone)

    assert ("failure", "unreachable", 3) == (*told(result), result.attempts)
