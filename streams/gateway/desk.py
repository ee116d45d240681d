"""Where events come in: one, a batch that is taken whole, a batch item by item, and CloudEvents (R-003-05).

A client that was offline hands in its queue at once: each item is accepted or refused by itself, so that one bad
event does not hold up the others. Items keep their order, and the same id again is the same event (A15).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from memory.sealing import KeyStore
from schemas import codec
from schemas.cloudevents import child
from schemas.errors import BadRecordError
from schemas.events import RawEvent
from streams import foreign
from streams.gateway import reading
from streams.gateway.access import Access
from streams.gateway.reading import RefusedError
from streams.intake import TOPIC, intake
from streams.runtime.ports import Fact

Publish = Callable[[Fact, str], Awaitable[bool]]
"""`(fact, traceparent)`: True once the broker has it, False for a repeat. Raises RefusedError."""
Read = Callable[[Any], tuple[RawEvent, str]]
"""An item to its event and trace. Raises BadRecordError."""
_SHARED = ("shop", "channel", "sender")  # what a batch may say once for all its items


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one item: its event id and whether it was a repeat, or why it was refused."""

    event_id: str = ""
    repeated: bool = False
    error: RefusedError | None = None


class Desk:
    """Intake in front of the broker; `refused` counts the items of a batch that were not taken."""

    def __init__(self, publish: Publish, keys: KeyStore, access: Access,
                 refused: Callable[[RefusedError], None]) -> None:  # fmt: skip
        self._publish, self._keys, self._access, self._refused = publish, keys, access, refused

    async def events(self, request: Request) -> Response:
        """POST /v1/events: one event, or a list that is taken whole or not at all."""
        data = await reading.read_json(request)
        raws, trace = reading.read_events(data), request.headers.get("traceparent", "")
        self._access.one_customer(request.headers, raws)
        taken = await asyncio.gather(*(self._take(raw, trace) for raw in raws))
        if isinstance(data, list):
            return JSONResponse({"event_ids": [one.event_id for one in taken]}, 202)
        return JSONResponse({"event_id": taken[0].event_id}, 202)

    async def batch(self, request: Request) -> Response:
        """POST /v1/batch: `{"events": […], "shop"?, "channel"?, "sender"?}` or a list, item by item."""
        data = await reading.read_json(request)
        shared: dict[str, Any] = {}
        if isinstance(data, dict):
            shared = {name: data[name] for name in _SHARED if name in data}
            unknown = sorted(data.keys() - {*_SHARED, "events"})
            if unknown:
                raise RefusedError(422, "unknown_field", "a batch has shop, channel, sender and events", unknown[0])
            data = data.get("events")
        items = [{**shared, **one} if isinstance(one, dict) else one for one in _items(data)]
        trace = request.headers.get("traceparent", "")
        found = [_tried(item, lambda item: (codec.validate(RawEvent, item), trace)) for item in items]
        # as a whole: a service whose key is wrong must not take its events for refused ones, and drop them
        self._access.one_customer(request.headers, [one[0] for one in found if not isinstance(one, RefusedError)])
        return await self._each(items, found)

    async def cloudevents(self, request: Request) -> Response:
        """POST /v1/cloudevents: structured, batched or binary, by its content type."""
        self._access.need(request.headers, "publish", "a CloudEvent")
        kind = foreign.media_type(request.headers.get("content-type", ""))
        if kind == foreign.BATCHED:
            items = _items(await reading.read_json(request), least=0)
            found = [_tried(item, lambda item: _traced(foreign.of_structured(item), request)) for item in items]
            return await self._each(items, found)
        if kind.startswith("application/cloudevents") and kind != foreign.STRUCTURED:
            message = f"expected {foreign.STRUCTURED} or {foreign.BATCHED}, or binary mode with ce-* headers"
            raise RefusedError(415, "wrong_value", message, "content-type")
        try:
            if kind == foreign.STRUCTURED:
                raw, trace = _traced(foreign.of_structured(await reading.read_json(request)), request)
            else:
                raw, trace = foreign.of_headers(request.headers.raw, await reading.read_body(request))
        except BadRecordError as error:
            raise reading.refused(error) from None
        taken = await self._take(raw, trace)
        return JSONResponse({"event_id": taken.event_id, "repeated": taken.repeated}, 202)

    async def _each(self, items: Sequence[Any], found: Sequence[tuple[RawEvent, str] | RefusedError]) -> Response:
        taken = await asyncio.gather(*map(self._taken, found))
        errors = [one.error for one in taken if one.error is not None]
        if errors and len(errors) == len(taken) and all(error.status >= 500 for error in errors):
            raise errors[0]  # the broker is away: the whole batch may come again
        for error in errors:
            self._refused(error)
        results = [_result(index, item, one) for index, (item, one) in enumerate(zip(items, taken, strict=True))]
        body = {"accepted": len(taken) - len(errors), "refused": len(errors), "results": results}
        return JSONResponse(body, 207 if errors else 202)

    async def _taken(self, found: tuple[RawEvent, str] | RefusedError) -> Taken:
        if isinstance(found, RefusedError):
            return Taken(error=found)
        try:
            return await self._take(*found)
        except RefusedError as error:
            return Taken(error=error)

    async def _take(self, raw: RawEvent, trace: str) -> Taken:
        event = intake(raw, self._keys)
        fact = Fact(TOPIC, event.conversation, event.event_id, event)
        new = await self._publish(fact, child(trace, fact.id))
        return Taken(event.event_id, repeated=not new)


def _tried(item: Any, read: Read) -> tuple[RawEvent, str] | RefusedError:
    try:
        return read(item)
    except BadRecordError as error:
        return reading.refused(error)


def _traced(found: tuple[RawEvent, str], request: Request) -> tuple[RawEvent, str]:
    """The envelope's trace, else the request's."""
    raw, trace = found
    return raw, trace or request.headers.get("traceparent", "")


def _items(data: Any, least: int = 1) -> list[Any]:
    if not isinstance(data, list):
        raise RefusedError(422, "wrong_type", "expected a list of events", "events")
    if not least <= len(data) <= reading.MAX_BATCH:
        message = f"a batch has {least} to {reading.MAX_BATCH} events, this one {len(data)}"
        raise RefusedError(422, "wrong_value", message, "events")
    return data


def _result(index: int, item: Any, taken: Taken) -> dict[str, Any]:
    """One item's line: its place and, where it has one, its own id; `retry` says that the same item may be taken."""
    name = item.get("id") if isinstance(item, dict) else None
    line: dict[str, Any] = {"index": index, **({"id": name} if isinstance(name, str) else {})}
    if taken.error is None:
        return {**line, "event_id": taken.event_id, "repeated": taken.repeated}
    return {**line, "error": {**reading.words(taken.error), "retry": taken.error.status >= 500}}
