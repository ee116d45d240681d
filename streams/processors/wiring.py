"""All processors together: the table in the order in which they run, the handlers of their effects, and the keys."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httpx
from httpx_aiohttp import HttpxAiohttpClient

from agents.planning.pack import load_pack
from memory.sealing import KeyStore, open_key_store, open_seal
from schemas.events import Seal
from streams.clock import SystemClock
from streams.effects.send import SendHandler
from streams.effects.tools import ToolHandler
from streams.metrics import Metrics
from streams.processors import delivery, feedback, perception, planning, session, system, tools
from streams.runtime.ports import Clock, EffectHandler
from streams.runtime.table import Row
from streams.settings import Settings

ALARM_RULES = ("perception.unreadable", "planning.handover", "runtime.step_left_out")  # what the rows' alarms name
CALLS = 1_000  # calls and sends at the same time: a slow tool must not use up the connections of the others


@dataclass(frozen=True, slots=True)
class Table:
    """What a worker runs."""

    rows: tuple[Row, ...]
    keys: KeyStore
    handlers: Mapping[str, EffectHandler]


def rows(settings: Settings, keys: KeyStore) -> tuple[Row, ...]:
    """The processor table; rows of one input topic run in this order inside one decision."""
    return (
        perception.row(settings, keys), planning.row(settings), tools.row(settings), delivery.row(settings),
        feedback.row(settings), session.row(settings), system.row(),
    )  # fmt: skip


def metrics_of(settings: Settings) -> Metrics:
    """A worker's metrics: each tool's outcomes and each rule of an alarm are there at 0, so a first one shows (G05)."""
    return Metrics({"tool": sorted(load_pack(settings.packs).tools), "rule": ALARM_RULES})


def tool_handler(settings: Settings, client: httpx.AsyncClient, keys: KeyStore, clock: Clock) -> ToolHandler:
    """Runs the calls that the tool files describe."""

    def clear(sealed: Seal, conversation: str) -> bytes | None:
        return open_seal(keys, sealed, conversation)

    return ToolHandler(load_pack(settings.packs).tools, client, settings.shop_url, clear, clock)


@contextlib.asynccontextmanager
async def wire(settings: Settings) -> AsyncIterator[Table]:
    """The whole table over HTTP and the key file, closed at the end. Raises OSError when the keys can't be read."""
    clock, keys = SystemClock(), open_key_store(settings.data_dir, settings.master_key_file)
    limits = httpx.Limits(max_connections=CALLS, max_keepalive_connections=CALLS)
    async with HttpxAiohttpClient(limits=limits) as client:
        handlers: dict[str, EffectHandler] = {
            "tool": tool_handler(settings, client, keys, clock),
            "send": SendHandler(client, settings.gateway_url, clock),
        }
        try:
            yield Table(rows(settings, keys), keys, handlers)
        finally:
            keys.close()
