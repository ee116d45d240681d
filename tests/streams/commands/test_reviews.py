"""`interlock reviews` at a gateway that asks for keys."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streams.cli import build
from streams.serving import bind, serve
from tests.streams.gateway.keys import DESK, ORDERS, key_file
from tests.streams.gateway.local import CONVERSATION, web


@pytest.mark.parametrize(("key", "words"), [
    ("", "authorization: GET /v1/requests needs a producer key that may decide"), (ORDERS, "orders's may not"),
    (DESK, ""),
])  # fmt: skip
async def test_people_show_the_key_of_the_settings(
    key: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INTERLOCK_GATEWAY_KEY is shown with every request; what is refused is said in the gateway's words (R-003-18)."""
    listener, stop = bind("127.0.0.1", 0, "x"), asyncio.Event()
    monkeypatch.setenv("INTERLOCK_GATEWAY_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
    monkeypatch.setenv("INTERLOCK_GATEWAY_KEY", key)

    async def reviews(*arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, build(), ["reviews", *arguments])

    async with web(producer_key_file=key_file(tmp_path)) as w:
        serving = asyncio.create_task(serve(w.gateway.app(), listener, stop=stop))
        listed = await reviews("list")
        taken = await reviews("takeover", CONVERSATION, "--by", "li")
        stop.set()
        await serving
        decided = len(w.values("human.decisions"))

    assert words in str(listed.exception)
    assert (int(key == DESK), key == DESK, key == DESK) == (
        decided, taken.exit_code == 0, "Nothing waits" in listed.stdout)  # fmt: skip
