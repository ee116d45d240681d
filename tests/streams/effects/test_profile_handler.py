"""The CRM over real sockets: what it answers, and what becomes of an answer that is none."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from agents.tools.spec import load_tools
from memory.facts.embedded import EmbeddedFacts
from memory.sealing import MemoryKeyStore
from schemas.tools import ToolResult
from streams.clock import SystemClock
from streams.effects.profile import CrmProfiles, ProfileHandler, worded
from streams.runtime.ports import Effect
from tests.streams.effects.test_real_sockets import Behave, answer, service

pytestmark = pytest.mark.slow  # real sockets, and a service that hangs
GOOD: dict[str, Any] = {
    "customer_id": "u-1", "name": "王小明", "level": "gold", "addresses": ["上海市浦东新区世纪大道1号301室"],
    "orders": [{"order_id": "1001", "status": "paid", "items": [{"name": "Cup", "colour": "white", "quantity": 2}]}],
    "problems": [{"problem": "refund", "order_id": "1000", "solution": "电话13812345678回访"}],
}  # fmt: skip
BROKEN = [
    ("{", "customer_id is missing in the answer"), ([GOOD], "customer_id is missing in the answer"),
    ({**GOOD, "customer_id": "u-2"}, "customer_id is not the one that was asked for"),
    ({**GOOD, "orders": "none"}, "a broken answer: TypeError"), ({**GOOD, "orders": [{}]}, "a broken answer: KeyError"),
    ({"error": {"code": "busy", "message": "later"}}, "later"),
]  # fmt: skip


async def loaded(behave: Behave, *, late: bool = False, take_over: bool = False, timeout_ms: int = 300) -> ToolResult:
    """The result of loading the profile of u-1 there."""
    clock, now = SystemClock(), SystemClock().now_ms()
    request = {"call_id": "profile-s", "tool": "crm.profile", "shop": "demo", "customer": "demo/web/u-1", "top": 5}
    deadline = now - 1 if late else now + 9_000
    effect = Effect("demo/web/u-1", "profile-s", "profile", "k", now, deadline, timeout_ms, request)
    async with service(behave) as url, httpx.AsyncClient() as client:
        profiles = CrmProfiles(load_tools()["get_profile"], client, url)
        handler = ProfileHandler(profiles, EmbeddedFacts(None), MemoryKeyStore(), clock)
        (fact,) = await (handler.resolve(effect) if take_over else handler.run(effect))
    assert isinstance(fact.value, ToolResult)
    return fact.value


def _says(body: object, status: int = 200) -> Behave:
    async def behave(_path: str, writer: asyncio.StreamWriter) -> None:
        answer(writer, status, body)

    return behave


def test_a_profile_is_masked_and_sealed() -> None:
    """Names and addresses are masked, phones in free text, too; the seal has the clear ones (promise 9)."""
    result = asyncio.run(loaded(_says(GOOD)))
    profile = result.data["profile"]

    assert [{"order_id": "1001", "status": "paid", "items": "white Cup x2"}] == profile["orders"]
    assert ["refund 1000: 电话138****5678回访"] == profile["problems"]
    assert "小明" not in profile["name"]
    assert "世纪大道" not in profile["addresses"][0]
    assert result.seal is not None


@pytest.mark.parametrize(("body", "why"), BROKEN)
def test_an_answer_that_is_no_profile_of_this_customer(body: object, why: str) -> None:
    """Another customer's record, or no record at all, is not taken, and the result says why (promise 10)."""
    result = asyncio.run(loaded(_says(body)))

    assert ("success", why) == (result.status, result.data["unavailable"]["crm"].removeprefix("get_profile: "))
    assert "profile" not in result.data
    assert [] == result.data["facts"]


def test_a_service_that_fails_is_asked_once_more() -> None:
    """A 5xx may pass: one repeat, and no third call to a service that is in trouble (R-002-27)."""
    asked: list[str] = []

    async def behave(path: str, writer: asyncio.StreamWriter) -> None:
        asked.append(path)
        answer(writer, 200 if len(asked) == 2 else 503, GOOD)

    assert "gold" == asyncio.run(loaded(behave)).data["profile"]["level"]
    assert ["/customers/u-1/profile"] * 2 == asked
    failed = asyncio.run(loaded(_says({}, 500)))
    assert {"crm": "the service answered 500"} == failed.data["unavailable"]


def test_a_service_that_hangs_is_left() -> None:
    """The time that the effect gives is all that a CRM gets, and what else was loaded is kept."""

    async def behave(_path: str, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    result = asyncio.run(loaded(behave))
    assert ({"crm": "no answer in 300 ms"}, []) == (result.data["unavailable"], result.data["facts"])
    assert result.duration_ms < 2_000


def test_nothing_is_loaded_after_the_deadline_but_by_a_successor() -> None:
    """A load that nobody began in time is not begun; a successor repeats one that may have been (promise 6)."""
    assert ("cancelled", {}) == ((late := asyncio.run(loaded(_says(GOOD), late=True))).status, late.data)
    assert "profile" in asyncio.run(loaded(_says(GOOD), late=True, take_over=True)).data


def test_a_customer_whom_the_shop_does_not_know() -> None:
    """A 404 is an empty profile and no failure; a missing list is an empty one."""
    result = asyncio.run(loaded(_says({"error": {"code": "customer_not_found", "message": "none"}}, 404)))

    assert ({}, worded({})) == (result.data["unavailable"], result.data["profile"])
    assert None is result.seal
