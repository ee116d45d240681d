"""The shop's HTTP API. Money in fen; an error is `{"error": {"code", "message", "field"?}}`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from schemas.base import Fen
from streams.demo.shop.faults import Fault, Faults
from streams.demo.shop.store import ShopError, Store

MAX_BODY = 64 * 1024
MAX_KEY = 200
OrderId = Annotated[str, Field(pattern="^[A-Za-z0-9-]{1,40}$")]
CustomerId = Annotated[str, Field(min_length=1, max_length=128)]


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class RefundRequest(_Request):
    """POST /refunds."""

    order_id: OrderId
    customer_id: CustomerId
    amount_fen: Annotated[Fen, Field(ge=1)]
    reason: Annotated[str, Field(min_length=1, max_length=500)]


class AddressRequest(_Request):
    """POST /orders/{order_id}/address."""

    customer_id: CustomerId
    address: Annotated[str, Field(min_length=2, max_length=300)]
    phone: Annotated[str, Field(min_length=5, max_length=30)] | None = None


R = TypeVar("R", bound=BaseModel)


class _Api:
    """The handlers; each answers or raises ShopError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def order(self, request: Request) -> Response:
        return JSONResponse(self._store.order(request.path_params["order_id"], _customer(request)))

    async def logistics(self, request: Request) -> Response:
        return JSONResponse(self._store.logistics(request.path_params["order_id"], _customer(request)))

    async def customer(self, request: Request) -> Response:
        return JSONResponse(self._store.customer(request.path_params["customer_id"]))

    async def profile(self, request: Request) -> Response:
        return JSONResponse(self._store.profile(request.path_params["customer_id"]))

    async def orders(self, request: Request) -> Response:
        return JSONResponse({"orders": self._store.orders(request.path_params["customer_id"])})

    async def refund(self, request: Request) -> Response:
        body = await _body(request, RefundRequest)
        return _once(*self._store.refund(_key(request), body.model_dump()))

    async def address(self, request: Request) -> Response:
        body = await _body(request, AddressRequest)
        wanted = {"order_id": request.path_params["order_id"], **body.model_dump(exclude_none=True)}
        return _once(*self._store.change_address(_key(request), wanted))

    async def effect(self, request: Request) -> Response:
        key = request.path_params["key"]
        done = self._store.effect(key)
        if done is None:
            return JSONResponse({"key": key, "happened": False}, 404)
        return JSONResponse({"key": key, "happened": True, "status": done["status"], "response": done["response"]})

    async def ledger(self, request: Request) -> Response:
        return JSONResponse({"effects": self._store.ledger(request.query_params.get("customer_id", ""))})

    async def health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})


def build_shop(
    path: str, *, now_ms: Callable[[], int], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Starlette:
    """The shop over the SQLite file `path` (or `:memory:`), on the clock and sleep that it is given."""
    store = Store(path, now_ms)
    api = _Api(store)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        store.close()

    faults: list[Faults] = []

    class Injected(Faults):
        def __init__(self, app: ASGIApp) -> None:
            super().__init__(app, sleep)
            faults.append(self)

    async def inject(request: Request) -> Response:
        if request.method == "POST":
            faults[0].waiting.append(await _body(request, Fault))
        elif request.method == "DELETE":
            faults[0].waiting.clear()
        return JSONResponse({"faults": [one.model_dump() for one in faults[0].waiting]})

    routes = [
        Route("/orders/{order_id}", api.order), Route("/orders/{order_id}/logistics", api.logistics),
        Route("/orders/{order_id}/address", api.address, methods=["POST"]),
        Route("/customers/{customer_id}", api.customer), Route("/customers/{customer_id}/orders", api.orders),
        Route("/customers/{customer_id}/profile", api.profile),
        Route("/refunds", api.refund, methods=["POST"]), Route("/effects/{key}", api.effect),
        Route("/ledger", api.ledger), Route("/healthz", api.health),
        Route("/faults", inject, methods=["GET", "POST", "DELETE"]),
    ]  # fmt: skip
    return Starlette(routes=routes, lifespan=lifespan, middleware=[Middleware(Injected)],
                     exception_handlers={ShopError: _refused})  # fmt: skip


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ShopError):
        raise error
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.field is not None:
        body["field"] = error.field
    return JSONResponse({"error": body}, error.status)


def _customer(request: Request) -> str:
    customer = request.query_params.get("customer_id", "")
    if not 1 <= len(customer) <= 128:
        raise ShopError(422, "invalid", "customer_id must have 1 to 128 characters", "customer_id")
    return customer


def _key(request: Request) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if not 1 <= len(key) <= MAX_KEY:
        raise ShopError(422, "invalid", f"must have 1 to {MAX_KEY} characters", "Idempotency-Key")
    return key


async def _body(request: Request, model: type[R]) -> R:
    text = await request.body()
    if len(text) > MAX_BODY:
        raise ShopError(413, "too_large", f"at most {MAX_BODY} bytes")
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "body"
        raise ShopError(422, "invalid", first["msg"], field) from error


def _once(status: int, answer: dict[str, Any], replayed: bool) -> Response:  # noqa: FBT001 (spread from a tuple)
    return JSONResponse(answer, status, {"Idempotency-Replayed": "true"} if replayed else None)
