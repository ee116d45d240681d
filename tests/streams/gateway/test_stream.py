"""Event streams over real sockets: resume, keep-alive, several clients, bounds, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
import orjson
import pytest

from memory.sealing import MemoryKeyStore
from streams.gateway import stream
from streams.gateway.app import Gateway
from streams.gateway.outbox import Outbox
from streams.runtime.local import LocalLog
from streams.serving import bind, serve
from streams.settings import Settings
from tests.streams.gateway.local import CONVERSATION, Broker, FixedClock, outbound, web

WHO = {"shop": "acme", "channel": "web", "sender": "u-1"}


class Served:
    """A gateway on a port of its own."""

    def __init__(
        self, outbox: Outbox, client: httpx.AsyncClient, stop: asyncio.Event, task: asyncio.Task[None]
    ) -> None:
        self.outbox, self.client, self._stop, self.task = outbox, client, stop, task

    async def put(self, *names: str, attempt: int = 1) -> None:
        """Store messages."""
        for name in names:
            await self.outbox.put(CONVERSATION, outbound(message_id=name, attempt=attempt))

    def stop(self) -> None:
        """Ask it to end."""
        self._stop.set()

    @contextlib.asynccontextmanager
    async def read(self, last: str = "") -> AsyncIterator[AsyncIterator[str]]:
        """The lines of a stream that resumes after `last`."""
        headers = {"Last-Event-ID": last} if last else {}
        async with self.client.stream("GET", "/v1/stream", params=WHO, headers=headers, timeout=10) as answer:
            assert 200 == answer.status_code
            yield answer.aiter_lines()


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[Served]:
    """The app on uvicorn."""
    clock, stop = FixedClock(), asyncio.Event()
    outbox = Outbox(None, clock.now_ms)
    gateway = Gateway(Settings(bootstrap_servers="none"), Broker(LocalLog(clock)), outbox, MemoryKeyStore(), clock)
    listener = bind("127.0.0.1", 0, "INTERLOCK_GATEWAY_PORT")
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    task = asyncio.create_task(serve(gateway.app(), listener, gateway.streams.close, stop))
    async with httpx.AsyncClient(base_url=url) as client:
        yield Served(outbox, client, stop, task)
        stop.set()
        await task
    outbox.close()


async def take(lines: AsyncIterator[str], count: int) -> list[tuple[str, str, int]]:
    """The next events: id, message id, attempt."""
    found: list[tuple[str, str, int]] = []
    seq = ""
    while len(found) < count:
        line = await asyncio.wait_for(anext(lines), 10)
        if line.startswith("id: "):
            seq = line[4:]
        elif line.startswith("data: "):
            message = orjson.loads(line[6:])
            found.append((seq, message["message_id"], message["attempt"]))
    return found


async def test_a_client_gets_what_was_kept_and_what_comes() -> None:
    """A stream begins with what is in the outbox and goes on with new messages."""
    async with served() as s:
        await s.put("o-1", "o-2")
        async with s.read() as lines:
            assert ["o-1", "o-2"] == [one[1] for one in await take(lines, 2)]
            await s.put("o-3")
            assert ["o-3"] == [one[1] for one in await take(lines, 1)]


async def test_a_client_resumes_where_it_was() -> None:
    """With Last-Event-ID nothing is lost and nothing comes twice."""
    async with served() as s:
        await s.put("o-1", "o-2")
        async with s.read() as lines:
            last = (await take(lines, 1))[0][0]
        await s.put("o-3")
        async with s.read(last) as lines:
            assert ["o-2", "o-3"] == [one[1] for one in await take(lines, 2)]


async def test_a_place_of_an_outbox_that_is_gone_is_the_start() -> None:
    """A client that was at 900 of an outbox that was lost gets all of the new one, not silence until it has 900."""
    async with served() as s:
        await s.put("o-1", "o-2")
        async with s.read("900") as lines:
            assert ["o-1", "o-2"] == [one[1] for one in await take(lines, 2)]
        async with s.read("2") as lines:
            await s.put("o-3")
            assert ["o-3"] == [one[1] for one in await take(lines, 1)]


async def test_a_resend_comes_again_under_the_same_id() -> None:
    """A client that has read on gets attempt 2 of the message, with the message id that it knows (R-002-31)."""
    async with served() as s:
        await s.put("o-1", "o-2")
        async with s.read() as lines:
            await take(lines, 2)
            await s.put("o-1", attempt=2)
            assert [("o-1", 2)] == [one[1:] for one in await take(lines, 1)]


async def test_several_windows_of_one_customer_all_see_it() -> None:
    """Each open stream of a conversation gets every message; another conversation's gets none."""
    async with served() as s, s.read() as one, s.read() as two:
        await s.put("o-1")
        await s.outbox.put("acme/web/u-2", outbound(message_id="other"))
        await s.put("o-2")

        assert [["o-1", "o-2"]] * 2 == [[event[1] for event in await take(lines, 2)] for lines in (one, two)]


async def test_more_than_a_page_is_read_whole() -> None:
    """A long backlog comes in order, page after page."""
    names = [f"o-{number}" for number in range(250)]
    async with served() as s:
        await asyncio.gather(*(s.put(name) for name in names))
        async with s.read() as lines:
            assert names == [one[1] for one in await take(lines, 250)]


async def test_a_quiet_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments keep proxies from cutting a quiet stream."""
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.05)
    async with served() as s, s.read() as lines:
        seen = [await asyncio.wait_for(anext(lines), 5) for _ in range(5)]

    assert 2 <= seen.count(": keep-alive")


async def test_a_stop_ends_streams_within_seconds() -> None:
    """Open streams end by themselves when the gateway stops (it must exit 0 within seconds)."""
    async with served() as s, s.read() as lines:
        await anext(lines)
        begun = asyncio.get_running_loop().time()
        s.stop()
        rest = [line async for line in lines]
        await s.task

        assert "id:" not in "".join(rest)
        assert asyncio.get_running_loop().time() - begun < 2


async def test_streams_are_bounded_and_places_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit a stream is refused with 503; one that was closed makes room."""
    monkeypatch.setattr(stream, "MAX_STREAMS_EACH", 2)
    async with served() as s:
        async with s.read() as one, s.read() as two:
            await anext(one)
            await anext(two)
            assert 503 == (await s.client.get("/v1/stream", params=WHO)).status_code
        for _ in range(250):
            again = await s.client.get("/v1/stream", params={**WHO, "once": "true"})
            if again.status_code == 200:
                break
            await asyncio.sleep(0.02)
        assert 200 == again.status_code


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 30, "٣"])
async def test_a_wrong_last_event_id_is_named(last: str) -> None:
    """Not a place of this stream: 422, by name."""
    async with web() as w:
        answer = await w.client.get("/v1/stream", params={**WHO, "last_event_id": last})

        assert (422, "Last-Event-ID") == (answer.status_code, answer.json()["error"]["field"])


async def test_a_stream_needs_its_conversation() -> None:
    """Each part of the conversation is checked by name."""
    async with web() as w:
        answer = await w.client.get("/v1/stream", params={"shop": "acme", "channel": "web"})

        assert (422, "sender") == (answer.status_code, answer.json()["error"]["field"])


async def test_once_ends_after_what_is_there() -> None:
    """`once=true` is for clients that poll: it gives what is there and ends."""
    async with web() as w:
        await w.gateway.outbox.put(CONVERSATION, outbound())
        answer = await w.client.get("/v1/stream", params={**WHO, "once": "true"})

        assert 1 == answer.text.count("event: message")
        assert answer.headers["content-type"].startswith("text/event-stream")


async def test_clients_that_left_before_their_stream_began_take_no_place() -> None:
    """Ten clients hang up while the request is under way: the next one of the same customer is served."""

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_message: object) -> None:
        await asyncio.sleep(0)

    query = b"shop=acme&channel=web&sender=u-1"
    scope = {"type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET", "path": "/v1/stream", "headers": [],
             "query_string": query}  # fmt: skip
    async with web() as w:
        for _ in range(stream.MAX_STREAMS_EACH + 2):
            await w.gateway.app()(dict(scope), receive, send)
        assert 200 == (await w.client.get("/v1/stream", params={**WHO, "once": "true"})).status_code
