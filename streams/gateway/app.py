"""The web channel's HTTP API.

POST /v1/events     one RawEvent or a list of up to 500          202 {"event_id"} or {"event_ids"}
POST /v1/batch      up to 500 events, each by itself             202 or 207 {"accepted", "refused", "results"}
POST /v1/cloudevents  structured, batched or binary              as /v1/events or /v1/batch
POST /v1/outbox     {"conversation", fields of OutboundMessage}  202 {"message_id", "repeated", "at"}
POST /v1/receipts   {"conversation", fields of Receipt}          202 {"receipt_id"}
POST /v1/decisions  {"conversation", fields of HumanDecision}    202 {"decision_id"}
GET  /v1/requests   /v1/stream?shop=&channel=&sender=   /healthz   /metrics

What needs a producer key, where there are any, is in `streams/gateway/access.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memory.sealing import KeyStore
from schemas.delivery import OutboundMessage, Receipt
from schemas.people import HumanDecision
from streams.channels.courier import Courier
from streams.channels.mount import Mounted
from streams.channels.registry import load
from streams.channels.spool import Spool
from streams.clock import fresh_id
from streams.gateway import reading
from streams.gateway.access import Access, KeyRefusedError, Right
from streams.gateway.board import Board
from streams.gateway.desk import Desk
from streams.gateway.outbox import Outbox
from streams.gateway.pages import PAGES
from streams.gateway.publisher import Publisher
from streams.gateway.reading import RefusedError
from streams.gateway.stream import Streams
from streams.intake import staff_word
from streams.metrics import Metrics, MetricsPort
from streams.runtime.ports import Clock, Fact, SendPort
from streams.settings import Settings

DAY_MS = 86_400_000
PRUNE_SECONDS = 3_600

Handler = Callable[[Request], Awaitable[Response]]


class Gateway:
    """The handlers, on ports: the send port is Kafka's or the in-memory log's, the rest is handed in."""

    def __init__(self, settings: Settings, send: SendPort, outbox: Outbox, keys: KeyStore, clock: Clock,
                 metrics: MetricsPort | None = None, spool: Spool | None = None) -> None:  # fmt: skip
        self.outbox = outbox
        self.board = Board(clock)
        self.streams = Streams(outbox)
        self.metrics = metrics or Metrics()
        self._settings = settings
        self._publisher = Publisher(send, settings.partitions, clock)
        self._keys = keys
        self._clock = clock
        self.spool = Spool() if spool is None else spool  # an empty one is false
        channels = load(settings)
        self._access = access = Access(settings.producer_key_file, channels)
        self._sent = frozenset(name for name, one in channels.items() if one.sender)  # else a browser shows what we say
        gone = functools.partial(self._gone, "event")
        self._desk = Desk(functools.partial(self._publish, "event"), keys, access, gone)
        self._channels = Mounted(channels, Courier(self._publisher, self.spool), keys, clock, self.metrics, access)

    def app(self) -> Starlette:
        """The ASGI app."""
        routes = [
            Route("/v1/events", self._counted("event", self._desk.events), methods=["POST"]),
            Route("/v1/batch", self._counted("event", self._desk.batch), methods=["POST"]),
            Route("/v1/cloudevents", self._counted("event", self._desk.cloudevents), methods=["POST"]),
            Route("/v1/outbox", self._counted("outbound", self._outbox, "deliver"), methods=["POST"]),
            Route("/v1/receipts", self._counted("receipt", self._receipts), methods=["POST"]),
            Route("/v1/decisions", self._counted("decision", self._decisions, "decide"), methods=["POST"]),
            Route("/v1/requests", self._counted("decision", self._requests, "decide")),
            Route("/v1/stream", self.streams.handle), Route("/healthz", self._health),
            Route("/metrics", self._exposition), *PAGES, *self._channels.routes(),
        ]  # fmt: skip
        paths = ", ".join(f"{'POST' if 'POST' in (one.methods or ()) else 'GET'} {one.path}" for one in routes)

        async def unknown(_request: Request, error: Exception) -> Response:
            status = error.status_code if isinstance(error, HTTPException) else 404
            return reading.answer(RefusedError(status, "no_such_path", f"there are {paths}"))

        handlers = {RefusedError: _refused, 404: unknown, 405: unknown}
        return Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=handlers)

    def _counted(self, kind: str, handler: Handler, right: Right | None = None) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                if right is not None:  # before the body is read
                    self._access.need(request.headers, right, f"{request.method} {request.url.path}")
                return await handler(request)
            except RefusedError as error:
                self._gone(kind, error)
                return reading.answer(error)

        return handle

    def _gone(self, kind: str, error: RefusedError) -> None:
        if isinstance(error, KeyRefusedError):
            self.metrics.count("interlock_security_refusals_total", kind=error.kind)
        outcome = "failed" if error.status >= 500 else "refused"
        self.metrics.count("interlock_gateway_events_total", kind=kind, outcome=outcome)

    def _took(self, kind: str, *, new: bool) -> None:
        self.metrics.count("interlock_gateway_events_total", kind=kind, outcome="accepted" if new else "repeated")

    async def _publish(self, kind: str, fact: Fact, trace: str = "") -> bool:
        new = await self._publisher.publish(fact, trace)
        self._took(kind, new=new)
        return new

    async def _outbox(self, request: Request) -> Response:
        conversation, message = reading.read_addressed(OutboundMessage, await reading.read_json(request))
        try:
            kept = await self.outbox.put(conversation, message)
        except OSError as error:
            raise RefusedError(503, "outbox", str(error)) from error
        self._took("outbound", new=kept.new)
        return JSONResponse({"message_id": message.message_id, "repeated": not kept.new, "at": kept.at}, 202)

    async def _receipts(self, request: Request) -> Response:
        conversation, receipt = reading.read_addressed(Receipt, await reading.read_json(request))
        if receipt.source != "client":  # what a browser saw it may say; a vendor and our own sender are services
            self._access.need(request.headers, "publish", f"a receipt of source {receipt.source}")
        if (channel := conversation.split("/")[1]) in self._sent:
            self._access.need(request.headers, "publish", f"a receipt of {channel}, which has a sender of its own,")
        await self._publish("receipt", Fact("delivery.receipts", conversation, receipt.receipt_id, receipt))
        return JSONResponse({"receipt_id": receipt.receipt_id}, 202)

    async def _decisions(self, request: Request) -> Response:
        made = {"decision_id": fresh_id("decision"), "decided_at": self._clock.now_ms()}
        conversation, decision = reading.read_addressed(HumanDecision, await reading.read_json(request), **made)
        reading.check_decision(decision)
        decision = staff_word(decision, conversation, self._keys)
        await self._publish("decision", Fact("human.decisions", conversation, decision.decision_id, decision))
        return JSONResponse({"decision_id": decision.decision_id}, 202)

    async def _requests(self, _request: Request) -> Response:
        return JSONResponse({"requests": self.board.open()})

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _exposition(self, _request: Request) -> Response:
        self.metrics.gauge("interlock_outbox_messages", len(self.outbox))
        self.metrics.gauge("interlock_spooled_records", len(self.spool))
        text = self.metrics.exposition() if isinstance(self.metrics, Metrics) else b""
        return Response(text, media_type="text/plain; version=0.0.4")

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        pruning = asyncio.create_task(self._prune())
        async with self._channels.running():
            yield
        pruning.cancel()
        self.streams.close()

    async def _prune(self) -> None:
        while True:
            self.outbox.prune(self._clock.now_ms() - self._settings.retention_days * DAY_MS)
            await asyncio.sleep(PRUNE_SECONDS)


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RefusedError):
        raise error
    return reading.answer(error)


def build_gateway(settings: Settings, send: SendPort, outbox: Outbox, keys: KeyStore, clock: Clock,
                  metrics: MetricsPort | None = None) -> Starlette:  # fmt: skip
    """The web channel's app alone; `Gateway` also gives its board and streams."""
    return Gateway(settings, send, outbox, keys, clock, metrics).app()
