"""The tool handler against the real shop on a virtual clock: one key, hard limits, and asking when in doubt."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest

from agents.tools.spec import ToolSpec, load_tools
from memory.sealing import MemoryKeyStore, open_seal, seal
from schemas.events import Seal
from schemas.tools import ToolCall, ToolResult
from streams.demo.shop.app import build_shop
from streams.effects.tools import ToolHandler
from streams.runtime.ports import Effect
from streams.runtime.virtual import run_virtual, virtual_clock

CONVERSATION = "acme/web/c-zh-refund"
REFUND = {"order_id": "1001", "customer_id": "c-zh-refund", "amount_fen": 5_000, "reason": "broken"}
SPECS = load_tools()


@dataclass
class Bench:
    """A shop, a handler, and every request that left."""

    shop: httpx.AsyncClient
    handler: ToolHandler
    keys: MemoryKeyStore
    requests: list[httpx.Request] = field(default_factory=list)

    def effect(self, tool: str = "create_refund", args: dict[str, Any] | None = None, **changes: Any) -> Effect:
        """A declared call, due in 15 s."""
        spec, now = SPECS[tool], virtual_clock().now_ms()
        call = ToolCall(
            call_id="call-1", session_id="s-1", plan_id="p-1", task_id="t-1", skill=spec.skill, tool=tool,
            risk=spec.risk, args=args or REFUND, args_hash="0" * 64, idempotency_key="key-1", purpose="test",
            expectation="success", declared_at=now, deadline=now + 15_000, timeout_ms=3_000,
            args_sensitive=changes.pop("args_sensitive", ()), seal=changes.pop("seal", None),
        )  # fmt: skip
        values = {"declared_at": now, "deadline": now + 15_000, "timeout_ms": 3_000, **changes}
        return Effect(CONVERSATION, "call-1", "tool", "key-1", request=call.model_dump(mode="json"), **values)

    async def run(self, effect: Effect | None = None) -> ToolResult:
        """Run it; the one result."""
        return _only(await self.handler.run(effect or self.effect()))

    async def fault(self, kind: str, path: str = "/refunds", **more: Any) -> None:
        """Spoil the next requests to a path."""
        answer = await self.shop.post("/faults", json={"path_prefix": path, "kind": kind, **more})
        assert answer.status_code == 200

    async def ledger(self) -> list[dict[str, Any]]:
        """What the shop did."""
        effects: list[dict[str, Any]] = (await self.shop.get("/ledger")).json()["effects"]
        return effects

    def paths(self) -> list[str]:
        """Paths of the handler's requests, in order."""
        return [request.url.path for request in self.requests]


def _only(facts: Any) -> ToolResult:
    (fact,) = facts
    assert (fact.topic, fact.conversation, fact.id) == ("tools.results", CONVERSATION, "call-1:r")
    assert isinstance(fact.value, ToolResult)
    return fact.value


@contextlib.asynccontextmanager
async def bench(specs: dict[str, ToolSpec] | None = None) -> AsyncIterator[Bench]:
    """A shop in this process, and a handler that speaks HTTP to it."""
    keys = MemoryKeyStore()
    app = build_shop(":memory:", now_ms=virtual_clock().now_ms)
    sent: list[httpx.Request] = []

    async def note(request: httpx.Request) -> None:
        sent.append(request)

    def opener(sealed: Seal, owner: str) -> bytes | None:
        return open_seal(keys, sealed, owner)

    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as shop,
        httpx.AsyncClient(transport=transport, event_hooks={"request": [note]}) as client,
    ):
        handler = ToolHandler(specs or SPECS, client, {"shop_url": "http://shop/"}, opener, virtual_clock())
        yield Bench(shop, handler, keys, sent)


def virtual(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run an async test on a virtual clock."""

    def run() -> None:
        async def main() -> None:
            await test()

        run_virtual(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@virtual
async def test_a_refund_succeeds_with_before_and_after() -> None:
    """A success has the declared shape, and shows what it changed (R-004-06)."""
    async with bench() as b:
        result = await b.run()

        assert ("success", "answer", 1, False) == (
            result.status, result.confirmed_by, result.attempts, result.duplicate)  # fmt: skip
        assert ({"refunded_fen": 0}, {"refunded_fen": 5_000}) == (result.before, result.after)
        assert "accepted" == result.data["status"]
        assert ["key-1"] == [one["key"] for one in await b.ledger()]


@virtual
async def test_a_query_sends_its_arguments_where_the_file_says() -> None:
    """Path and query fields come from the tool's file, and a query carries no key (R-002-25)."""
    async with bench() as b:
        result = await b.run(b.effect("get_order", {"order_id": "1001", "customer_id": "c-zh-refund"}))

        assert ("success", None) == (result.status, result.before)
        assert "http://shop/orders/1001?customer_id=c-zh-refund" == str(b.requests[0].url)
        assert "Idempotency-Key" not in b.requests[0].headers


@virtual
async def test_a_refusal_keeps_the_shops_code() -> None:
    """A 4xx is a failure with the shop's code, and is not tried again (R-003-17)."""
    async with bench() as b:
        result = await b.run(b.effect(args={**REFUND, "amount_fen": 9_999}))

        assert ("failure", 1, "none") == (result.status, result.attempts, result.confirmed_by)
        assert result.error is not None
        assert "over_amount" == result.error.code
        assert [] == await b.ledger()


@virtual
async def test_a_lost_answer_is_confirmed_and_not_repeated() -> None:
    """The shop acted and its answer is lost: asking tells, one refund in the ledger, success (A13)."""
    async with bench() as b:
        await b.fault("lost_response")
        result = await b.run()

        assert ("success", "query", 1) == (result.status, result.confirmed_by, result.attempts)
        assert {"refunded_fen": 5_000} == result.after
        assert ["/refunds", "/effects/key-1"] == b.paths()
        assert 1 == len(await b.ledger())


@virtual
async def test_every_attempt_has_the_same_key() -> None:
    """A retry carries the key of the first attempt, so two answers are one refund (H07)."""
    async with bench() as b:
        await b.fault("lost_response")
        await b.fault("error", "/effects", times=9)
        result = await b.run()

        assert ("success", "answer", 2, True) == (
            result.status, result.confirmed_by, result.attempts, result.duplicate)  # fmt: skip
        assert {"key-1"} == {one.headers["Idempotency-Key"] for one in b.requests if one.method == "POST"}
        assert 1 == len(await b.ledger())


@virtual
async def test_what_can_neither_be_answered_nor_asked_is_unknown() -> None:
    """Lost answers and no way to ask: unknown, never a success (A13)."""
    async with bench() as b:
        await b.fault("lost_response", times=9)
        await b.fault("error", "/effects", times=9)
        result = await b.run()

        assert ("unknown", "none") == (result.status, result.confirmed_by)
        assert 1 == len(await b.ledger())


@virtual
async def test_a_failure_of_the_service_is_retried_twice() -> None:
    """5xx: at most two retries, 100 and 200 ms apart (R-002-27)."""
    async with bench() as b:
        await b.fault("error", times=2)
        begun = virtual_clock().now_ms()
        result = await b.run()

        assert ("success", 3) == (result.status, result.attempts)
        assert 300 == virtual_clock().now_ms() - begun


@virtual
async def test_a_third_failure_ends_it() -> None:
    """After two retries the call failed; nothing happened, which the shop confirmed."""
    async with bench() as b:
        await b.fault("error", times=9, status=500)
        result = await b.run()

        assert ("failure", 3) == (result.status, result.attempts)
        assert result.error is not None
        assert "http_500" == result.error.code
        assert [] == await b.ledger()


@virtual
async def test_a_slow_tool_is_cut_off_at_its_limit() -> None:
    """No attempt waits longer than 3 s, and all together no longer than 5 s (R-003-15, R-003-21)."""
    async with bench() as b:
        await b.fault("delay", "/orders", delay_ms=60_000, times=9)
        begun = virtual_clock().now_ms()
        result = await b.run(b.effect("get_order", {"order_id": "1001", "customer_id": "c-zh-refund"}))

        assert ("timeout", 2) == (result.status, result.attempts)
        assert 5_000 == virtual_clock().now_ms() - begun == result.duration_ms


@virtual
async def test_the_deadline_ends_attempts_and_retries() -> None:
    """A tool of 3 s with 1 s left ends after 1 s, with one attempt (H09)."""
    async with bench() as b:
        await b.fault("delay", "/orders", delay_ms=3_000, times=9)
        begun = virtual_clock().now_ms()
        effect = b.effect("get_order", {"order_id": "1001", "customer_id": "c-zh-refund"}, deadline=begun + 1_000)
        result = await b.run(effect)

        assert ("timeout", 1) == (result.status, result.attempts)
        assert 1_000 == virtual_clock().now_ms() - begun


@virtual
async def test_a_cancelled_call_is_not_retried() -> None:
    """A cancellation goes through at once: one request, no retry, no question (H09)."""
    async with bench() as b:
        await b.fault("delay", delay_ms=3_000, times=9)
        running = asyncio.create_task(b.handler.run(b.effect()))
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(10)

        assert ["/refunds"] == b.paths()


@virtual
async def test_after_the_deadline_nothing_is_started() -> None:
    """A call whose deadline has passed is cancelled, and no request leaves (promise 6)."""
    async with bench() as b:
        result = await b.run(b.effect(deadline=virtual_clock().now_ms()))

        assert ("cancelled", 0) == (result.status, result.attempts)
        assert result.error is not None
        assert "deadline" == result.error.code
        assert [] == b.requests


@virtual
async def test_a_successor_asks_before_it_repeats() -> None:
    """A pending refund that happened is not sent again (promise 6, H07)."""
    async with bench() as b:
        await b.run()
        b.requests.clear()
        result = _only(await b.handler.resolve(b.effect()))

        assert ("success", "query", 0) == (result.status, result.confirmed_by, result.attempts)
        assert ["/effects/key-1"] == b.paths()
        assert 1 == len(await b.ledger())


@virtual
async def test_a_successor_repeats_with_the_same_key_what_did_not_happen() -> None:
    """What the shop never saw is done by the successor, once, under the declared key."""
    async with bench() as b:
        effect = b.effect()
        await asyncio.sleep(60)
        result = _only(await b.handler.resolve(effect))

        assert "success" == result.status
        assert ["/effects/key-1", "/refunds"] == b.paths()
        assert ["key-1"] == [one["key"] for one in await b.ledger()]


@virtual
async def test_sealed_arguments_are_opened_for_the_request_only() -> None:
    """The shop gets the clear address and phone; the result and its snapshot have them masked (promise 9, R-000-12)."""
    async with bench() as b:
        clear = {"address": "示例市新路2号 13912345678", "phone": "13912345678"}
        args = {"order_id": "1006", "customer_id": "c-zh-address", "address": "示例市新路2号 139****5678",
                "phone": "139****5678"}  # fmt: skip
        sealed = seal(b.keys, CONVERSATION, orjson.dumps(clear))
        effect = b.effect("change_address", args, seal=sealed, args_sensitive=("address", "phone"))
        result = await b.run(effect)
        order = await b.shop.get("/orders/1006", params={"customer_id": "c-zh-address"})

        assert (clear["address"], clear["phone"]) == (order.json()["address"], order.json()["phone"])
        assert ("success", "示例市**** ***********") == (result.status, (result.after or {})["address"])
        assert not any(value in result.model_dump_json() for value in ("13912345678", "新路2号"))


@virtual
async def test_a_seal_of_an_earlier_value_replaces_nothing() -> None:
    """What was confirmed is sent, not what an older message had sealed; a masked value of another is not."""
    async with bench() as b:
        args = {"order_id": "1006", "customer_id": "c-zh-address", "address": "示例市新路3号"}
        clear = {"address": "示例市旧路1号 13912345678", "phone": "13912345678"}
        sealed = seal(b.keys, CONVERSATION, orjson.dumps(clear))
        both = {"seal": sealed, "args_sensitive": ("address", "phone")}
        masked = await b.run(b.effect("change_address", {**args, "phone": "138****0000"}, **both))
        await b.run(b.effect("change_address", args, **both))
        order = await b.shop.get("/orders/1006", params={"customer_id": "c-zh-address"})

        assert "seal_lost" == (masked.error.code if masked.error else "")
        assert "示例市新路3号" == order.json()["address"]


@virtual
async def test_without_its_key_a_sealed_argument_is_never_sent_masked() -> None:
    """A forgotten customer's call fails instead of sending stars to the shop (promise 9)."""
    async with bench() as b:
        args = {"order_id": "1006", "customer_id": "c-zh-address", "address": "示例市 139****5678"}
        sealed = seal(b.keys, CONVERSATION, b'{"address": "x 13912345678"}')
        b.keys.destroy(CONVERSATION)
        result = await b.run(b.effect("change_address", args, seal=sealed, args_sensitive=("address",)))

        assert ("failure", 0) == (result.status, result.attempts)
        assert result.error is not None
        assert "seal_lost" == result.error.code
        assert [] == b.requests


@virtual
async def test_a_tool_without_a_file_is_a_failure() -> None:
    """A call to a tool that no file describes is not sent."""
    async with bench({"get_order": SPECS["get_order"]}) as b:
        result = await b.run()

        assert result.error is not None
        assert ("failure", "unknown_tool") == (result.status, result.error.code)
