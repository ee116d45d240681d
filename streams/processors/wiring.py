"""All processors together: the table in the order in which they run, the handlers of their effects, and the keys."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httpx
from httpx_aiohttp import HttpxAiohttpClient

from agents.planning.pack import load_pack
from agents.tools.spec import SpecError, Tools
from memory.facts.port import FactStore
from memory.key_file import open_key_store
from memory.sealing import KeyStore, open_seal
from schemas.events import Seal
from streams.channels.registry import senders_of
from streams.clock import SystemClock
from streams.effects.model import ModelHandler, ModelServer
from streams.effects.profile import CrmProfiles, ProfileHandler
from streams.effects.recall import RecallHandler
from streams.effects.send import SendHandler
from streams.effects.tools import ToolHandler
from streams.effects.unseal import Unsealing
from streams.memory_stores import facts_of
from streams.metrics import Metrics
from streams.processors import (
    delivery,
    feedback,
    identity,
    memory,
    perception,
    planning,
    recall,
    session,
    system,
    tools,
)
from streams.runtime.ports import Clock, EffectHandler
from streams.runtime.table import Row
from streams.settings import Settings

# what the rows' alarms name
ALARM_RULES = ("perception.unreadable", "planning.handover", "runtime.step_left_out", "identity.refused",
               "memory.recall_unavailable", "memory.profile_unavailable")  # fmt: skip
PROFILE_TOOL = "get_profile"
CALLS = 1_000  # calls and sends at the same time: a slow tool must not use up the connections of the others


@dataclass(frozen=True, slots=True)
class Table:
    """What a worker runs."""

    rows: tuple[Row, ...]
    keys: KeyStore
    handlers: Mapping[str, EffectHandler]


def rows(settings: Settings, keys: KeyStore) -> tuple[Row, ...]:
    """The processor table; rows of one input topic run in this order inside one decision."""
    return identity.linked(
        perception.row(settings, keys), recall.row(settings), memory.hearing(keys), planning.row(settings),
        tools.row(settings), delivery.row(settings), feedback.row(settings), memory.row(settings, keys),
        session.row(settings), system.row(),
    )  # fmt: skip


def metrics_of(settings: Settings) -> Metrics:
    """A worker's metrics: each tool's outcomes and each rule of an alarm are there at 0, so a first one shows (G05)."""
    return Metrics({"tool": sorted(load_pack(settings.packs).tools), "rule": ALARM_RULES})


def tool_handler(settings: Settings, client: httpx.AsyncClient, keys: KeyStore, clock: Clock) -> ToolHandler:
    """Runs the calls that the tool files describe. Raises SpecError for a file that names what is not set."""

    def clear(sealed: Seal, conversation: str) -> bytes | None:
        return open_seal(keys, sealed, conversation)

    tools, urls = load_pack(settings.packs).tools, {**settings.tool_urls, "shop_url": settings.shop_url}
    check_tools(tools, settings.tool_environment, urls, settings.tool_tokens)
    return ToolHandler(tools, client, urls, clear, clock, environment=settings.tool_environment,
                       tokens=settings.tool_tokens)  # fmt: skip


def model_handler(settings: Settings, client: httpx.AsyncClient, clock: Clock) -> ModelHandler:
    """Asks the model that is set; with none set, what was asked before is answered at once with a failure."""
    server = ModelServer(settings.model_url, settings.model_key, settings.model_name)
    return ModelHandler(client, server, clock)


def memory_handlers(settings: Settings, client: httpx.AsyncClient, keys: KeyStore, clock: Clock,
                    facts: FactStore) -> dict[str, EffectHandler]:  # fmt: skip
    """What asks for the customer's past; the tool file says where their profile is. Raises SpecError as above."""
    spec, urls = load_pack(settings.packs).tools[PROFILE_TOOL], {**settings.tool_urls, "shop_url": settings.shop_url}
    environment = spec.environments[settings.tool_environment]
    token = settings.tool_tokens.get(spec.auth.token_setting or "")
    profiles = CrmProfiles(spec, client, urls[environment.base_url], token)
    return {"profile": ProfileHandler(profiles, facts, keys, clock), "recall": RecallHandler(facts, clock)}


def check_tools(tools: Tools, environment: str, urls: Mapping[str, str], tokens: Mapping[str, str]) -> None:
    """What the tool files name is there, before a customer needs it. Raises SpecError naming file and field."""
    for name, spec in tools.items():
        file, where = f"{name}.yaml", {str(label): one.base_url for label, one in spec.environments.items()}
        if environment not in where:
            problem = f"{environment!r} is missing, which INTERLOCK_TOOL_ENVIRONMENT asks for"
            raise SpecError(file, "environments", problem)
        url, token = where[environment], spec.auth.token_setting or ""
        if url not in urls:
            problem = f"{url!r} is none of {', '.join(sorted(urls))}; set it in INTERLOCK_TOOL_URLS"
            field = f"environments.{environment}.base_url"
            raise SpecError(file, field, problem)
        if spec.auth.kind == "bearer" and not tokens.get(token):
            problem = f"there is no token {token!r}; set it in INTERLOCK_TOOL_TOKENS"
            raise SpecError(file, "auth.token_setting", problem)


@contextlib.asynccontextmanager
async def wire(settings: Settings) -> AsyncIterator[Table]:
    """The whole table over HTTP and the key file, closed at the end. Raises OSError when the keys can't be read."""
    clock, keys = SystemClock(), open_key_store(settings.data_dir, settings.master_key_file)
    limits = httpx.Limits(max_connections=CALLS, max_keepalive_connections=CALLS)
    async with HttpxAiohttpClient(limits=limits) as client:
        sender = SendHandler(client, settings.gateway_url, clock, senders_of(settings, client, clock),
                             settings.gateway_key)  # fmt: skip
        facts = facts_of(settings)
        handlers: dict[str, EffectHandler] = {
            "tool": tool_handler(settings, client, keys, clock),
            **memory_handlers(settings, client, keys, clock, facts),
            "send": Unsealing(sender, keys),
            "model": model_handler(settings, client, clock),
        }
        try:
            yield Table(rows(settings, keys), keys, handlers)
        finally:
            await facts.close()
            keys.close()
