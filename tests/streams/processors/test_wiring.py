"""What the tool files name is looked for when a worker starts, not when a customer waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agents.planning.pack import load_pack
from agents.tools.spec import SpecError, ToolSpec
from memory.sealing import MemoryKeyStore
from streams.clock import SystemClock
from streams.demo.run import environment
from streams.processors.wiring import check_tools, tool_handler, wire
from streams.serving import bind, serve
from streams.settings import Settings
from tests.streams.effects.test_send_handler import effect

TOOL = load_pack().tools["get_order"]
URLS = {"shop_url": "http://shop"}


def tool(**changes: object) -> dict[str, ToolSpec]:
    """One tool with some fields changed."""
    return {"get_order": ToolSpec.model_validate({**TOOL.model_dump(), **changes})}


CRM = {"prod": {"base_url": "crm_url"}}
BEARER = {"kind": "bearer", "token_setting": "crm_token"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"environments": {"staging": {"base_url": "shop_url"}}}, "environments: 'prod' is missing"),
        ({"environments": CRM}, r"environments\.prod\.base_url: 'crm_url' is none of shop_url; set it in INTERLOCK_"),
        ({"auth": BEARER}, r"auth\.token_setting: there is no token 'crm_token'; set it in INTERLOCK_TOOL_TOKENS"),
    ],
)
def test_what_a_tool_file_names_must_be_set(changes: dict[str, object], words: str) -> None:
    """File, field and the variable to set are named (promise 10)."""
    with pytest.raises(SpecError, match=f"^tool get_order.yaml: {words}"):
        check_tools(tool(**changes), "prod", URLS, {})


def test_a_tool_of_another_service_needs_only_settings() -> None:
    """An address and a token for a new tool are settings: no line of a processor changes."""
    check_tools(tool(environments=CRM, auth=BEARER), "prod", {**URLS, "crm_url": "http://crm"}, {"crm_token": "t"})


def test_children_read_the_same_addresses_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo hands its settings to processes as variables: mappings come out as they went in."""
    settings = Settings(tool_urls={"crm_url": "http://crm"}, tool_tokens={"crm_token": "t"})
    for name, value in environment(settings).items():
        monkeypatch.setenv(name, value)
    read = Settings()
    assert (settings.tool_urls, settings.tool_tokens) == (read.tool_urls, read.tool_tokens)
    assert "crm_token" not in repr(read)


async def test_the_built_in_tools_are_complete() -> None:
    """The packaged files need nothing but the shop's address, in either environment."""
    async with httpx.AsyncClient() as client:
        for name in ("prod", "staging"):
            tool_handler(Settings(tool_environment=name), client, MemoryKeyStore(), SystemClock())


async def test_a_worker_shows_the_gateway_its_key(tmp_path: Path) -> None:
    """What the table of a real worker sends carries INTERLOCK_GATEWAY_KEY, over a real socket."""
    shown: list[str] = []

    async def outbox(request: Request) -> Response:
        shown.append(request.headers.get("authorization", ""))
        return JSONResponse({"message_id": "m-1", "at": SystemClock().now_ms()}, 202)

    listener, stop = bind("127.0.0.1", 0, "x"), asyncio.Event()
    app = Starlette(routes=[Route("/v1/outbox", outbox, methods=["POST"])])
    serving = asyncio.create_task(serve(app, listener, stop=stop))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = Settings(data_dir=tmp_path, gateway_url=url, gateway_key="k" * 40)
    async with wire(settings) as table:
        (fact,) = await table.handlers["send"].run(effect(SystemClock().now_ms()))
    stop.set()
    await serving

    assert ([f"Bearer {'k' * 40}"], "sent") == (shown, getattr(fact.value, "state", ""))
