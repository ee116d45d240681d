"""The example shop: its rules, its strict checks, its idempotency keys and its faults."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.tools.spec import load_tools
from streams.demo.shop import seed
from streams.demo.shop.app import build_shop

NOW = 1_790_000_000_000


@contextlib.asynccontextmanager
async def client(
    path: str = ":memory:", sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a shop in this process."""
    app = build_shop(path, now_ms=lambda: NOW, sleep=sleep)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as found,
    ):
        yield found


def refund(**changes: Any) -> dict[str, Any]:
    """A refund of order 1001."""
    return {"order_id": "1001", "customer_id": "c-zh-refund", "amount_fen": 5_000, "reason": "broken", **changes}


async def post(shop: httpx.AsyncClient, path: str, body: dict[str, Any], key: str = "k-1") -> httpx.Response:
    """POST with an idempotency key."""
    return await shop.post(path, json=body, headers={"Idempotency-Key": key})


async def ledger(shop: httpx.AsyncClient) -> list[dict[str, Any]]:
    """All effects."""
    effects: list[dict[str, Any]] = (await shop.get("/ledger")).json()["effects"]
    return effects


async def test_an_order_is_shown_to_its_customer_only() -> None:
    """The owner sees the order, another customer 403, and an unknown number is 404."""
    async with client() as shop:
        own = await shop.get("/orders/1001", params={"customer_id": "c-zh-refund"})
        other = await shop.get("/orders/1001", params={"customer_id": "c-zh-notmine"})
        none = await shop.get("/orders/9999", params={"customer_id": "c-zh-refund"})

    assert (200, 5_000, 0) == (own.status_code, own.json()["amount_fen"], own.json()["refunded_fen"])
    assert (403, "not_owner") == (other.status_code, other.json()["error"]["code"])
    assert (404, "order_not_found") == (none.status_code, none.json()["error"]["code"])


async def test_a_refund_is_done_and_shows_before_and_after() -> None:
    """A refund answers 201 with the amounts before and after, and changes the order."""
    async with client() as shop:
        answer = await post(shop, "/refunds", refund(amount_fen=2_000))
        order = await shop.get("/orders/1001", params={"customer_id": "c-zh-refund"})

    assert (201, "accepted") == (answer.status_code, answer.json()["status"])
    assert ({"refunded_fen": 0}, {"refunded_fen": 2_000}) == (answer.json()["before"], answer.json()["after"])
    assert 2_000 == order.json()["refunded_fen"]


@pytest.mark.parametrize(("changes", "status", "code"), [
    ({"order_id": "9999"}, 404, "order_not_found"),
    ({"customer_id": "c-zh-notmine"}, 403, "not_owner"),
    ({"amount_fen": 5_001}, 422, "over_amount"),
    ({"order_id": "1015", "customer_id": "c-zh-late"}, 409, "out_of_period"),
    ({"order_id": "1016", "customer_id": "c-zh-done"}, 409, "already_refunded"),
    ({"order_id": "1017", "customer_id": "c-zh-partly", "amount_fen": 12_001}, 422, "over_amount"),
])  # fmt: skip
async def test_a_refund_against_the_rules_is_refused(changes: dict[str, Any], status: int, code: str) -> None:
    """Each rule of refunds has its code (R-003-17), and nothing happens."""
    async with client() as shop:
        answer = await post(shop, "/refunds", refund(**changes))

        assert (status, code) == (answer.status_code, answer.json()["error"]["code"])
        assert [] == await ledger(shop)


@pytest.mark.parametrize(("changes", "field"), [
    ({"amount_fen": 50.0}, "amount_fen"), ({"amount_fen": "5000"}, "amount_fen"), ({"amount_fen": True}, "amount_fen"),
    ({"amount_fen": 0}, "amount_fen"), ({"amount_fen": -1}, "amount_fen"), ({"amount_fen": 2**63}, "amount_fen"),
    ({"order_id": ""}, "order_id"), ({"order_id": "10 01"}, "order_id"), ({"order_id": 1001}, "order_id"),
    ({"customer_id": ""}, "customer_id"), ({"reason": "x" * 501}, "reason"), ({"extra": 1}, "extra"),
])  # fmt: skip
async def test_a_wrong_field_is_named(changes: dict[str, Any], field: str) -> None:
    """Input is checked strictly: 422 names the field, and nothing happens."""
    async with client() as shop:
        answer = await post(shop, "/refunds", refund(**changes))

        assert (422, field) == (answer.status_code, answer.json()["error"]["field"])
        assert [] == await ledger(shop)


async def test_a_write_without_a_key_or_with_broken_json_is_refused() -> None:
    """No idempotency key, no effect; a body that is no JSON or too large is refused, too."""
    async with client() as shop:
        keyless = await shop.post("/refunds", json=refund())
        broken = await shop.post("/refunds", content=b"{", headers={"Idempotency-Key": "k"})
        large = await post(shop, "/refunds", refund(reason="x" * 70_000))
        nobody = await shop.get("/orders/1001")

        assert "Idempotency-Key" == keyless.json()["error"]["field"]
        assert [422, 422, 413, 422] == [one.status_code for one in (keyless, broken, large, nobody)]
        assert [] == await ledger(shop)


async def test_twenty_at_once_with_one_key_are_one_refund() -> None:
    """The same key with the same body gives the same answer, once done, also side by side (A15, H07)."""
    async with client() as shop:
        answers = await asyncio.gather(*(post(shop, "/refunds", refund()) for _ in range(20)))

        assert 1 == len({one.text for one in answers})
        assert 19 == sum(one.headers.get("Idempotency-Replayed") == "true" for one in answers)
        assert ["k-1"] == [one["key"] for one in await ledger(shop)]


async def test_a_key_is_remembered_across_restarts(tmp_path: Path) -> None:
    """After a restart on the same file the key gives the old answer, and another body is refused."""
    path = str(tmp_path / "shop.sqlite")
    async with client(path) as shop:
        first = await post(shop, "/refunds", refund())
    async with client(path) as shop:
        again = await post(shop, "/refunds", refund())
        other = await post(shop, "/refunds", refund(amount_fen=1))

        assert (201, first.text, "true") == (again.status_code, again.text, again.headers["Idempotency-Replayed"])
        assert (409, "key_reused") == (other.status_code, other.json()["error"]["code"])
        assert 1 == len(await ledger(shop))


async def test_two_processes_on_one_file_share_the_keys(tmp_path: Path) -> None:
    """Two shops over one file do a key once, so a second server is no second refund (A15)."""
    path = str(tmp_path / "shop.sqlite")
    async with client(path) as one, client(path) as two:
        answers = await asyncio.gather(*(post(shop, "/refunds", refund()) for shop in (one, two) * 5))

        assert 1 == len({answer.text for answer in answers})
        assert 1 == len(await ledger(one))


async def test_whether_a_key_happened_can_be_asked() -> None:
    """/effects/{key} says what happened under the key, or that nothing did (promise 6)."""
    async with client() as shop:
        before = await shop.get("/effects/k-1")
        done = await post(shop, "/refunds", refund())
        after = await shop.get("/effects/k-1")

    assert (404, {"key": "k-1", "happened": False}) == (before.status_code, before.json())
    assert {"key": "k-1", "happened": True, "status": 201, "response": done.json()} == after.json()


async def test_a_refused_request_leaves_its_key_unused() -> None:
    """A refusal is no effect: the same key can be used for a request that is right."""
    async with client() as shop:
        await post(shop, "/refunds", refund(amount_fen=9_000))
        answer = await post(shop, "/refunds", refund())

    assert 201 == answer.status_code


async def test_an_address_changes_until_the_order_is_shipped() -> None:
    """An unshipped order takes a new address with before and after; a shipped one does not."""
    new = {"address": "示例市新路2号"}
    async with client() as shop:
        done = await post(shop, "/orders/1006/address", {"customer_id": "c-zh-address", **new})
        late = await post(shop, "/orders/1007/address", {"customer_id": "c-zh-shipped", **new}, "k-2")
        order = await shop.get("/orders/1006", params={"customer_id": "c-zh-address"})

    assert (200, "changed", new["address"]) == (
        done.status_code, done.json()["status"], done.json()["after"]["address"])  # fmt: skip
    assert new["address"] == order.json()["address"] != done.json()["before"]["address"]
    assert (409, "already_shipped") == (late.status_code, late.json()["error"]["code"])


async def test_logistics_and_orders_are_listed() -> None:
    """A parcel has events in both languages; an unshipped order has none; orders come newest first."""
    async with client() as shop:
        parcel = (await shop.get("/orders/1008/logistics", params={"customer_id": "c-zh-logistics"})).json()
        none = (await shop.get("/orders/1019/logistics", params={"customer_id": "c-zh-noparcel"})).json()
        orders = (await shop.get("/customers/c-zh-many/orders")).json()["orders"]
        customer = (await shop.get("/customers/c-zh-refund")).json()

    assert 2 == len(parcel["events"])
    assert {"at", "text_zh", "text_en"} == set(parcel["events"][0])
    assert ([], "") == (none["events"], none["tracking_no"])
    assert ["1022", "1021", "1020"] == [one["order_id"] for one in orders]
    assert "gold" == customer["level"]


async def test_an_injected_error_comes_as_often_as_asked() -> None:
    """A fault hits the next matching requests only, and a 5xx fault does nothing."""
    async with client() as shop:
        await shop.post("/faults", json={"path_prefix": "/refunds", "kind": "error", "status": 503, "times": 2})
        answers = [(await post(shop, "/refunds", refund())).status_code for _ in range(3)]
        other = await shop.get("/customers/c-zh-refund")

        assert [503, 503, 201] == answers
        assert 200 == other.status_code
        assert {"faults": []} == (await shop.get("/faults")).json()


async def test_a_fault_can_be_for_one_order() -> None:
    """With `contains` a fault leaves other customers' requests alone."""
    async with client() as shop:
        await shop.post("/faults", json={"kind": "error", "contains": "1014"})
        fine = await post(shop, "/refunds", refund())
        hit = await post(shop, "/refunds", refund(order_id="1014", customer_id="c-zh-timeout"), "k-2")

    assert (201, 503) == (fine.status_code, hit.status_code)


async def test_a_lost_response_has_acted() -> None:
    """The refund is done, its answer never arrives, and the same key tells (A13)."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.Event().wait()

    async with client(sleep=sleep) as shop:
        await shop.post("/faults", json={"path_prefix": "/refunds", "kind": "lost_response"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await post(shop, "/refunds", refund())

        assert (await shop.get("/effects/k-1")).json()["happened"]
        assert [60] == slept


async def test_a_delay_comes_before_the_effect_and_faults_can_be_cleared() -> None:
    """A delayed request waits as long as asked, then acts; DELETE clears what is left."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with client(sleep=sleep) as shop:
        await shop.post("/faults", json={"kind": "delay", "delay_ms": 2_500, "times": 9})
        answer = await post(shop, "/refunds", refund())
        cleared = await shop.delete("/faults")
        wrong = await shop.post("/faults", json={"kind": "explode"})

    assert ([2.5], 201, {"faults": []}) == (slept, answer.status_code, cleared.json())
    assert "kind" == wrong.json()["error"]["field"]


async def test_the_tool_files_fit_the_shop() -> None:
    """Every tool's path is served: none answers 404 or 405 of the router (R-002-25)."""
    async with client() as shop:
        for spec in load_tools().values():
            path = spec.path.format(order_id="1001", customer_id="c-zh-refund")
            answer = await shop.request(spec.method, path, params={"customer_id": "c-zh-refund"})

            assert answer.status_code in {200, 422}, spec.name


def test_the_seed_is_the_same_at_every_start() -> None:
    """Ids are fixed and unique, every order's customer exists, and the kinds that scenarios need are there."""
    orders, customers = seed.orders(), seed.customers()

    assert orders == seed.orders()
    assert len(orders) == len({one.order_id for one in orders})
    assert {one.customer_id for one in orders} == {one.customer_id for one in customers}
    assert {"paid", "shipped", "delivered", "closed"} == {one.status for one in orders}
    assert {"gold", "standard"} == {one.level for one in customers}
    assert ("1001", "OD100001") == (seed.order_number("zh", 1), seed.order_number("en", 1))


@pytest.mark.slow
def test_the_command_serves_until_sigterm(tmp_path: Path) -> None:
    """`interlock shop` says where it is, answers there, and ends with 0 on SIGTERM."""
    environment = {**os.environ, "INTERLOCK_DATA_DIR": str(tmp_path), "INTERLOCK_SHOP_PORT": "0"}
    command = [sys.executable, "-m", "streams.cli", "shop"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split(" at ")[1].split(". ")[0]
        client = httpx.Client(transport=httpx.HTTPTransport(retries=5))
        assert {"status": "ok"} == client.get(f"{url}/healthz").json()
        process.send_signal(signal.SIGTERM)

        assert 0 == process.wait(10)
