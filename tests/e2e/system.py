"""The whole system in one process on real time: the gateway on a socket, the in-memory pipeline behind it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx

from memory.facts.embedded import EmbeddedFacts
from memory.sealing import MemoryKeyStore
from schemas import codec
from schemas.delivery import OutboundMessage
from streams.clock import SystemClock
from streams.demo.shop.app import build_shop
from streams.effects.send import SendHandler
from streams.gateway.app import Gateway
from streams.gateway.outbox import Outbox
from streams.processors.wiring import memory_handlers, rows, tool_handler
from streams.runtime.local import LocalInterlock, LocalSend
from streams.runtime.ports import EffectHandler
from streams.serving import bind, serve
from streams.settings import Settings

SHOP_URL = "http://shop"


class System:
    """What a test may ask of the running system."""

    def __init__(self, url: str, interlock: LocalInterlock, outbox: Outbox) -> None:
        self.url, self.interlock, self.outbox = url, interlock, outbox

    def values(self, topic: str, conversation: str) -> list[Any]:
        """The conversation's models on a topic, in order."""
        key = conversation.encode()
        return [codec.decode(topic, one.value) for one in self.interlock.log.records(topic) if one.key == key]

    def now(self) -> int:
        """UTC milliseconds."""
        return SystemClock().now_ms()

    def bodies(self, conversation: str, kind: str) -> list[Any]:
        """What the customer did of a kind."""
        found = [event.body for event in self.values("channel.events", conversation)]
        return [body for body in found if body.kind == kind]

    def receipts(self, conversation: str, state: str) -> list[str]:
        """The message ids of the client's receipts."""
        found = self.values("delivery.receipts", conversation)
        return [one.message_id for one in found if one.state == state and one.source == "client"]

    async def outbound(self, conversation: str, message: OutboundMessage) -> None:
        """A message of ours, as planning decides one."""
        await self.interlock.publish("actions.outbound", conversation, message, message.message_id)


@contextlib.asynccontextmanager
async def running(settings: Settings | None = None) -> AsyncIterator[System]:
    """The system, ended with the block."""
    listener = bind("127.0.0.1", 0, "INTERLOCK_GATEWAY_PORT")
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    given = settings or Settings(bootstrap_servers="none")
    chosen = given.model_copy(update={"shop_url": SHOP_URL, "gateway_url": url})
    clock, keys, stop = SystemClock(), MemoryKeyStore(), asyncio.Event()
    outbox = Outbox(None, clock.now_ms)
    shop = build_shop(":memory:", now_ms=clock.now_ms)
    async with (
        httpx.AsyncClient(transport=httpx.ASGITransport(shop), base_url=SHOP_URL) as tools,
        httpx.AsyncClient() as web,
    ):
        handlers: dict[str, EffectHandler] = {
            "tool": tool_handler(chosen, tools, keys, clock),
            "send": SendHandler(web, url, clock, gateway_key=chosen.gateway_key),
            **memory_handlers(chosen, tools, keys, clock, EmbeddedFacts(None)),
        }  # fmt: skip
        interlock = LocalInterlock(chosen, rows(chosen, keys), handlers, keys, clock)
        gateway = Gateway(chosen, LocalSend(interlock.log), outbox, keys, clock)
        serving = asyncio.create_task(serve(gateway.app(), listener, gateway.streams.close, stop))
        try:
            yield System(url, interlock, outbox)
        finally:
            stop.set()
            await serving
            await interlock.close()
            outbox.close()
