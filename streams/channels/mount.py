"""Puts the adapters' doors into the gateway: read, mask and seal, hand over, answer; within a second."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from memory.sealing import KeyStore
from schemas.cloudevents import child
from streams.channels.courier import Courier
from streams.channels.port import Channel, Door, Push, SecurityError, Taken
from streams.gateway import reading
from streams.gateway.access import Access, KeyRefusedError
from streams.gateway.reading import RefusedError
from streams.intake import TOPIC as EVENTS
from streams.intake import intake
from streams.metrics import MetricsPort
from streams.runtime.ports import Clock, Fact

Handler = Callable[[Request], Awaitable[Response]]

RECEIPTS = "delivery.receipts"
READ_SECONDS = 0.5  # a body that comes more slowly than this could not be answered in time


class Mounted:
    """The doors of all channels."""

    def __init__(self, channels: Mapping[str, Channel], courier: Courier, keys: KeyStore, clock: Clock,
                 metrics: MetricsPort, access: Access) -> None:  # fmt: skip
        self._channels, self._courier, self._keys, self._access = channels, courier, keys, access
        self._clock, self._metrics = clock, metrics

    def routes(self) -> list[Route]:
        """A route for each door."""
        return [
            Route(f"/v1/channels/{channel.name}{door.path}", self._handler(channel.name, door), methods=[door.method])
            for channel in self._channels.values() for door in channel.doors
        ]  # fmt: skip

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the gateway serves: what the spool holds is forwarded."""
        forwarding = asyncio.create_task(self._courier.forward())
        try:
            yield
        finally:
            forwarding.cancel()

    def _handler(self, name: str, door: Door) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                if not door.signed:
                    self._access.need(request.headers, "publish", f"a push of {name}")
                taken = door.read(await self._push(request, door))
                new = await self._courier.hand_over(self._facts(taken, request.headers.get("traceparent", "")))
            except RefusedError as error:
                self._refused(name, error)
                return reading.answer(error)
            self._count(name, "accepted" if new else "repeated")
            reply = taken.reply
            return Response(reply.body, reply.status, {"X-Content-Type-Options": "nosniff"}, reply.media_type)

        return handle

    async def _push(self, request: Request, door: Door) -> Push:
        body = b""
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > door.max_bytes:
                        raise RefusedError(413, "too_large", f"a body has at most {door.max_bytes} bytes", "body")
        except (ClientDisconnect, TimeoutError):
            raise RefusedError(400, "cut", "the body was cut off", "body") from None
        return Push(self._clock.now_ms(), body, dict(request.query_params), dict(request.path_params),
                    dict(request.headers))  # fmt: skip

    def _facts(self, taken: Taken, trace: str) -> list[tuple[Fact, str]]:
        events = [intake(raw, self._keys) for raw in taken.events]
        facts = [Fact(EVENTS, event.conversation, event.event_id, event) for event in events]
        facts += [Fact(RECEIPTS, where, receipt.receipt_id, receipt) for where, receipt in taken.receipts]
        return [(fact, child(trace, fact.id)) for fact in facts]

    def _refused(self, name: str, error: RefusedError) -> None:
        if isinstance(error, SecurityError | KeyRefusedError):
            self._metrics.count("interlock_security_refusals_total", kind=error.kind)
        self._count(name, "failed" if error.status >= 500 else "refused")

    def _count(self, name: str, outcome: str) -> None:
        self._metrics.count("interlock_gateway_events_total", kind=name, outcome=outcome)
