"""The HTTP side: the same scripts through a real gateway and shop on real sockets, the pipeline in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from starlette.types import ASGIApp

from memory.facts.embedded import EmbeddedFacts
from memory.sealing import MemoryKeyStore
from streams.clock import SystemClock
from streams.demo.run import SCENARIOS, SHORT
from streams.demo.shop.app import build_shop
from streams.effects.send import SendHandler
from streams.gateway.app import Gateway
from streams.gateway.board import TOPICS as BOARD_TOPICS
from streams.gateway.outbox import Outbox
from streams.metrics import RecordedMetrics
from streams.processors.wiring import memory_handlers, rows, tool_handler
from streams.runtime.local import LocalInterlock, LocalSend
from streams.runtime.ports import EffectHandler, Record
from streams.scenario.expect import TOPICS, Row
from streams.scenario.format import load
from streams.scenario.http import Ends, HttpWorld, WorldError
from streams.scenario.player import play
from streams.serving import bind, serve
from streams.settings import Settings
from tests.streams.gateway.keys import DESK, key_file

pytestmark = pytest.mark.slow


class LogTail:
    """The tail over the in-memory log."""

    def __init__(self, interlock: LocalInterlock) -> None:
        self._interlock = interlock

    def of(self, conversation: str) -> dict[str, list[Row]]:
        """See Tail."""
        key, log = conversation.encode(), self._interlock.log
        return {topic: [orjson.loads(record.value or b"") for record in log.records(topic) if record.key == key]
                for topic in TOPICS}  # fmt: skip

    def count(self, conversation: str) -> int:
        """See Tail."""
        return sum(map(len, self.of(conversation).values()))


@contextlib.asynccontextmanager
async def _served(app: ASGIApp) -> AsyncIterator[str]:
    listener, stop = bind("127.0.0.1", 0, "INTERLOCK_GATEWAY_PORT"), asyncio.Event()
    running = asyncio.create_task(serve(app, listener, stop=stop))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    stop.set()
    await running


def _pipeline(settings: Settings, client: httpx.AsyncClient, keys: MemoryKeyStore) -> LocalInterlock:
    clock = SystemClock()
    tool = tool_handler(settings, client, keys, clock)
    send = SendHandler(client, settings.gateway_url, clock, gateway_key=settings.gateway_key)
    handlers: dict[str, EffectHandler] = {"tool": tool, "send": send}
    handlers |= memory_handlers(settings, client, keys, clock, EmbeddedFacts(None))
    return LocalInterlock(settings, rows(settings, keys), handlers, keys, clock)


def _joined(interlock: LocalInterlock, gateway: Gateway) -> None:
    """The gateway's board hears of requests and decisions as it does from Kafka."""
    inputs = interlock.log.on_append

    def appended(record: Record) -> None:
        inputs(record)
        if record.topic in BOARD_TOPICS:
            gateway.board.apply(record)

    interlock.log.on_append = appended


async def _answers(client: httpx.AsyncClient, *urls: str) -> None:
    for url in urls:
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    await client.get(f"{url}/healthz")
                    break
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _world(**changes: Any) -> AsyncIterator[HttpWorld]:
    clock, keys, listener = SystemClock(), MemoryKeyStore(), bind("127.0.0.1", 0, "INTERLOCK_GATEWAY_PORT")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with httpx.AsyncClient() as client, _served(build_shop(":memory:", now_ms=clock.now_ms)) as shop_url:
        settings = Settings().model_copy(update={**SHORT, "gateway_url": url, "shop_url": shop_url, **changes})
        interlock = _pipeline(settings, client, keys)
        gateway = Gateway(
            settings, LocalSend(interlock.log), Outbox(None, clock.now_ms), keys, clock, RecordedMetrics()
        )
        _joined(interlock, gateway)
        stop = asyncio.Event()
        running = asyncio.create_task(serve(gateway.app(), listener, gateway.streams.close, stop))
        await _answers(client, url, shop_url)
        world = HttpWorld(Ends(settings, client, LogTail(interlock)))
        reviewing = asyncio.create_task(world.review())
        try:
            yield world
        finally:
            reviewing.cancel()
            stop.set()
            await running
            await interlock.close()


@pytest.mark.parametrize("name", ["zh-refund-with-order", "en-lost-response", "zh-away-and-back"])
async def test_script_over_http_comes_out_as_in_memory(name: str) -> None:
    """A client that posts events and receipts and reads the stream sees what the file expects."""
    scenario = load(SCENARIOS / f"{name}.yaml")
    scenario = scenario.model_copy(update={"expect": scenario.expect.model_copy(update={"health": None})})

    async with _world() as world:
        played = await play(scenario, world)

    assert [] == played.faults


@pytest.mark.parametrize("name", ["zh-refund-with-order", "en-wants-a-person"])
async def test_script_shows_its_key_to_a_gateway_that_asks(name: str, tmp_path: Path) -> None:
    """Reviews, people's words and the worker's sends carry the key of the settings (R-003-18)."""
    file = key_file(tmp_path, {"all": {"keys": [DESK], "may": ["decide", "deliver"]}})
    scenario = load(SCENARIOS / f"{name}.yaml")
    scenario = scenario.model_copy(update={"expect": scenario.expect.model_copy(update={"health": None})})

    async with _world(producer_key_file=file, gateway_key=DESK) as world:
        played = await play(scenario, world)

    assert [] == played.faults


async def test_script_without_a_key_says_so(tmp_path: Path) -> None:
    """A gateway that asks for a key ends the script with the answer, which names the setting."""
    async with _world(producer_key_file=key_file(tmp_path)) as world:
        with pytest.raises(WorldError, match=r"GET http://.*/v1/requests: 401 .*INTERLOCK_GATEWAY_KEY"):
            await world.review()


async def test_the_shop_is_shown_no_key() -> None:
    """The key goes to the gateway's address and to no other."""
    shown: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        shown.append(request.headers.get("authorization"))
        return httpx.Response(200, json={})

    settings = Settings(gateway_url="http://gateway", shop_url="http://gateway.shop", gateway_key=DESK)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        ends = Ends(settings, client, LogTail(LocalInterlock(settings, [], {}, MemoryKeyStore(), SystemClock())))
        await ends.post("http://gateway.shop/faults", {})
        await ends.post("http://gateway/v1/decisions", {})

    assert [None, f"Bearer {DESK}"] == shown


async def test_what_the_gateway_refuses_is_told() -> None:
    """A refused post names method, address, status and answer."""
    scenario = load(SCENARIOS / "en-logistics.yaml").model_copy(update={"sender": " x"})

    async with _world() as world:
        with pytest.raises(WorldError, match=r"POST http://.*/v1/receipts: 4\d\d "):
            await world._ends.post(f"{world._ends.settings.gateway_url}/v1/receipts", {"conversation": scenario.sender})
