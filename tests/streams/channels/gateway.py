"""The gateway with its channels in memory, spoken to over HTTP, on a broker that can be stopped."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from memory.sealing import MemoryKeyStore
from streams.channels.port import Push
from streams.channels.spool import Spool
from streams.gateway.app import Gateway
from streams.gateway.outbox import Outbox
from streams.metrics import RecordedMetrics
from streams.runtime.local import LocalLog
from streams.settings import Settings
from tests.streams.channels import wechat_side as side
from tests.streams.gateway.local import Broker, FixedClock, Web


class Channels(Web):
    """The gateway, its ends, and clients of its channels."""

    async def push(self, push: Push, channel: str = "wechat/demo") -> httpx.Response:
        """A channel's push over HTTP."""
        return await self.client.post(f"/v1/channels/{channel}", params=dict(push.query), content=push.body,
                                      headers=dict(push.headers))  # fmt: skip

    def refusals(self, kind: str) -> float:
        """The counter of attacks."""
        return self.metrics.value("interlock_security_refusals_total", kind)


@contextlib.asynccontextmanager
async def channels(spool: Path | None = None, dirs: tuple[Path, ...] = (), keys: Path | None = None,
                   **account: Any) -> AsyncIterator[Channels]:  # fmt: skip
    """A gateway in this process, its spool in a file or in memory."""
    clock, metrics = FixedClock(), RecordedMetrics()
    broker, outbox, kept = Broker(LocalLog(clock)), Outbox(None, clock.now_ms), Spool(spool)
    settings = Settings(bootstrap_servers="none", channels={"wechat": side.options(**account)}, channel_dirs=dirs,
                        producer_key_file=keys)  # fmt: skip
    gateway = Gateway(settings, broker, outbox, MemoryKeyStore(), clock, metrics, kept)
    app = gateway.app()
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        yield Channels(client, gateway, broker, clock, metrics)
    outbox.close()
    kept.close()
