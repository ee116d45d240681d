"""The web channel in memory: the real app on the in-memory log, spoken to over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import httpx
import orjson

from memory.sealing import MemoryKeyStore
from schemas import codec
from schemas.delivery import OutboundMessage
from streams.gateway.app import Gateway
from streams.gateway.outbox import Outbox
from streams.metrics import RecordedMetrics
from streams.runtime.local import LocalLog
from streams.runtime.ports import Outgoing
from streams.settings import Settings

NOW = 1_790_000_000_000
CONVERSATION = "acme/web/u-1"


class FixedClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def now_ms(self) -> int:
        """See Clock."""
        return self.now


class Broker:
    """A send port over the in-memory log that can be slow or refuse."""

    def __init__(self, log: LocalLog) -> None:
        self.log = log
        self.held: list[tuple[Outgoing, asyncio.Future[int]]] = []
        self.hold = False
        self.error: Exception | None = None

    def send(self, record: Outgoing) -> Awaitable[int]:
        """See SendPort."""
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.error is not None:
            done.set_exception(self.error)
        elif self.hold:
            self.held.append((record, done))
        else:
            done.set_result(self.log.append(record).offset)
        return done

    def release(self) -> None:
        """The broker takes what it held."""
        for record, done in self.held:
            done.set_result(self.log.append(record).offset)
        self.held.clear()


class Web:
    """The gateway, its ends, and a client."""

    def __init__(self, client: httpx.AsyncClient, gateway: Gateway, broker: Broker, clock: FixedClock,
                 metrics: RecordedMetrics) -> None:  # fmt: skip
        self.client, self.gateway, self.broker, self.clock, self.metrics = client, gateway, broker, clock, metrics

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """POST JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        return await self.client.post(path, content=content, headers=headers)

    def values(self, topic: str) -> list[Any]:
        """The models on a topic."""
        return [codec.decode(topic, record.value) for record in self.broker.log.records(topic)]

    def counted(self, kind: str, outcome: str) -> float:
        """The counter of posts."""
        return self.metrics.value("interlock_gateway_events_total", kind, outcome)


@contextlib.asynccontextmanager
async def web(**settings: Any) -> AsyncIterator[Web]:
    """A gateway in this process, with these settings."""
    clock, metrics = FixedClock(), RecordedMetrics()
    broker = Broker(LocalLog(clock))
    outbox = Outbox(None, clock.now_ms)
    gateway = Gateway(Settings(bootstrap_servers="none", **settings), broker, outbox, MemoryKeyStore(), clock, metrics)
    app = gateway.app()
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://web") as client,
    ):
        yield Web(client, gateway, broker, clock, metrics)
    outbox.close()


def event(**changes: Any) -> dict[str, Any]:
    """A text message as a channel posts it."""
    return {"id": "c-1", "shop": "acme", "channel": "web", "sender": "u-1",
            "body": {"kind": "message", "message_id": "m-1", "text": "退款"}, **changes}  # fmt: skip


def outbound(**changes: Any) -> OutboundMessage:
    """A reply."""
    values = {"message_id": "o-1", "session_id": "s-1", "kind": "reply", "template_id": "t.a", "language": "zh",
              "text": "好的", **changes}  # fmt: skip
    return OutboundMessage(**values)
