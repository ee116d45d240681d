"""A whole system in memory for scenarios, chat and tests: pipeline, shop, channel and reviewer, on a virtual clock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import httpx

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import FactStore
from memory.sealing import KeyStore, MemoryKeyStore
from streams.demo.shop.app import build_shop
from streams.effects.unseal import Unsealing
from streams.metrics import MetricsPort
from streams.processors.wiring import memory_handlers, model_handler, rows, tool_handler
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import EffectHandler
from streams.runtime.virtual import run_virtual, virtual_clock
from streams.scenario.facts import keep_facts
from streams.scenario.format import Scenario
from streams.scenario.memory import Inbox, MemoryWorld
from streams.scenario.player import Played, play
from streams.settings import Settings

SHOP_URL = "http://shop"


@contextlib.asynccontextmanager
async def local_world(
    settings: Settings,
    model: EffectHandler | None = None,
    facts: FactStore | None = None,
    keys: KeyStore | None = None,
    metrics: MetricsPort | None = None,
) -> AsyncIterator[MemoryWorld]:
    """A world of its own, stopped at the end. Raises RuntimeError outside `run_virtual`.

    `model` answers for the model of the settings; without one none is asked, as no socket works on a virtual clock.
    `facts` and `keys` are in memory unless given.
    """
    clock = virtual_clock()
    keys = MemoryKeyStore() if keys is None else keys
    settings = settings.model_copy(update={"shop_url": SHOP_URL, **({} if model else {"model_url": ""})})
    shop = build_shop(":memory:", now_ms=clock.now_ms)
    inbox = Inbox(clock)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(shop), base_url=SHOP_URL) as client:
        tools = tool_handler(settings, client, keys, clock)
        handlers: dict[str, EffectHandler] = {"tool": tools, "send": Unsealing(inbox, keys)}
        handlers["model"] = model or model_handler(settings, client, clock)
        store = facts or EmbeddedFacts(None)
        handlers |= memory_handlers(settings, client, keys, clock, store)
        interlock = LocalInterlock(settings, rows(settings, keys), handlers, keys, clock, metrics)
        keep_facts(interlock.log, store)
        world = MemoryWorld(interlock, inbox, keys, clock, settings, client)
        reviewer = asyncio.create_task(world.review())
        try:
            yield world
        finally:
            reviewer.cancel()
            await interlock.close()
            await store.close()


def play_in_memory(scenarios: Sequence[Scenario], settings: Settings) -> list[Played]:
    """All scenarios side by side in one world; costs milliseconds, whatever they wait for."""

    async def run() -> list[Played]:
        async with local_world(settings) as world:
            return list(await asyncio.gather(*(play(scenario, world) for scenario in scenarios)))

    return run_virtual(run())
