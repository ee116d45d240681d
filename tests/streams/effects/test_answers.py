"""What counts as a success, on a service that answers what the test says."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest

from agents.tools.spec import load_tools
from schemas.tools import ToolCall, ToolResult
from streams.effects import answers
from streams.effects.tools import ToolHandler
from streams.runtime.ports import Effect
from streams.runtime.virtual import run_virtual, virtual_clock

SPECS = load_tools()
GOOD = {"refund_id": "RF-1", "order_id": "1001", "amount_fen": 5_000, "status": "accepted"}


def run(answer: httpx.Response | Exception, happened: httpx.Response | None = None) -> ToolResult:
    """The result of a refund whose service answers so; `happened` is what it says when it is asked."""

    def service(request: httpx.Request) -> httpx.Response:
        found = (happened or httpx.Response(503)) if request.url.path.startswith("/effects") else answer
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found.status_code, content=found.content, headers=found.headers)

    async def main() -> ToolResult:
        now = virtual_clock().now_ms()
        call = ToolCall(
            call_id="call-1", session_id="s", plan_id="p", task_id="t", skill="refunds", tool="create_refund",
            risk="money", args={"order_id": "1001", "customer_id": "c", "amount_fen": 5_000, "reason": "x"},
            args_hash="0", idempotency_key="key/1", purpose="", expectation="", declared_at=now,
            deadline=now + 9_000, timeout_ms=3_000,
        )  # fmt: skip
        effect = Effect("a/b/c", "call-1", "tool", "key/1", now, now + 9_000, 3_000, call.model_dump(mode="json"))
        async with httpx.AsyncClient(transport=httpx.MockTransport(service)) as client:
            handler = ToolHandler(SPECS, client, "http://service", lambda _, __: None, virtual_clock())
            (fact,) = await handler.run(effect)
        assert isinstance(fact.value, ToolResult)
        return fact.value

    return run_virtual(main())


def code(result: ToolResult) -> str:
    """The error's code."""
    return result.error.code if result.error else ""


def no(**more: Any) -> httpx.Response:
    """The key did not happen."""
    return httpx.Response(404, json={"key": "key/1", "happened": False, **more})


def test_the_declared_shape_is_a_success() -> None:
    """All required fields with declared values: success (R-003-39)."""
    assert "success" == run(httpx.Response(201, json=GOOD)).status


@pytest.mark.parametrize("body", [
    {**GOOD, "status": "processing"}, {**GOOD, "refund_id": None}, {"ok": True}, [GOOD], "accepted",
    {**GOOD, "amount_fen": 5}, {**GOOD, "order_id": "1002"},
])  # fmt: skip
def test_a_wrong_shape_is_no_success(body: Any) -> None:
    """A 200 without the declared shape, or about something else than was asked, is a failure (R-000-13)."""
    result = run(httpx.Response(200, json=body), no())

    assert ("failure", "bad_output") == (result.status, code(result))


def test_a_wrong_shape_that_cannot_be_asked_about_is_unknown() -> None:
    """A change whose answer can't be read and that can't be asked about is unknown: a person looks."""
    assert "unknown" == run(httpx.Response(200, content=b"<html>")).status


def test_a_200_that_holds_an_error_is_a_failure() -> None:
    """The outer 200 says nothing: the error inside counts (H13)."""
    inner = run(httpx.Response(200, json={"error": {"code": "over_amount", "message": "too much"}}))
    vendor = run(httpx.Response(200, json={"errcode": 45015, "errmsg": "window closed"}))

    assert ("failure", "over_amount") == (inner.status, code(inner))
    assert ("failure", "errcode_45015") == (vendor.status, code(vendor))


def test_nothing_that_never_left_is_unknown() -> None:
    """No connection at all: nothing can have happened, so it is a failure and nobody is asked."""
    result = run(httpx.ConnectError("refused"))

    assert ("failure", "unreachable", 3) == (result.status, code(result), result.attempts)


@pytest.mark.parametrize(("happened", "status"), [(no(), "failure"), (None, "unknown")])
def test_a_broken_connection_is_asked_about(happened: httpx.Response | None, status: str) -> None:
    """A connection that broke may have carried the call: known as not done only if the service says so (A13)."""
    result = run(httpx.ReadError("reset"), happened)

    assert (status, "connection_lost") == (result.status, code(result))


def test_the_key_is_quoted_when_it_is_asked_for() -> None:
    """A key with a slash asks for that key, and a stored answer of the declared shape confirms it."""
    told = httpx.Response(200, json={"key": "key/1", "happened": True, "status": 201, "response": GOOD})
    result = run(httpx.ReadTimeout("late"), told)

    assert ("success", "query") == (result.status, result.confirmed_by)


def test_an_endless_answer_is_cut() -> None:
    """More than 256 KiB is not read: no success."""
    result = run(httpx.Response(200, content=orjson.dumps({**GOOD, "note": "x" * 300_000})), no())

    assert "bad_output" == code(result)


def test_long_lists_are_cut_with_the_rest_as_a_count() -> None:
    """A result keeps 50 rows, and says how many it left out (R-004-07)."""
    shown = answers.recorded(SPECS["list_orders"], {"orders": [{"order_id": str(n)} for n in range(60)]})

    assert (50, 10) == (len(shown["orders"]), shown["orders_omitted"])


def test_personal_fields_are_masked_at_any_depth() -> None:
    """A phone inside a list of orders is masked; an order number that looks like one is not (R-000-12)."""
    shown = answers.recorded(SPECS["list_orders"], {"orders": [{"order_id": "13912345678", "phone": "13912345678"}]})

    assert [{"order_id": "13912345678", "phone": "139****5678"}] == shown["orders"]


@pytest.mark.parametrize(("given", "expected"), [
    ("over_amount", "over_amount"), ("OVER", "over"), ("余额不足", "http_409"), ("", "http_409"),
    (None, "http_409"), (7, "http_409"),
    ("x" * 65, "http_409"), ("_x", "http_409"),
])  # fmt: skip
def test_a_strange_code_becomes_the_status(given: Any, expected: str) -> None:
    """A code that is no name is replaced by the HTTP status."""
    refused = answers.refusal(answers.Answer(409, orjson.dumps({"error": {"code": given}})))

    assert refused is not None
    assert expected == refused.code


@pytest.mark.parametrize("more", [{}, {"response": "done"}, {"response": 5}])
def test_a_yes_without_the_stored_answer_confirms_nothing(more: dict[str, Any]) -> None:
    """The service says that it happened and not what: nobody knows, and it is not asked for ever (H13)."""
    result = run(httpx.ReadTimeout("slow"), httpx.Response(200, json={"happened": True, **more}))
    assert "unknown" == result.status


def test_an_answer_that_can_not_be_unpacked_is_no_bug_of_ours() -> None:
    """A body that is not what its Content-Encoding says: the attempt may have been done, so the service is asked."""
    result = run(httpx.DecodingError("not gzip"), no())
    assert "failure" == result.status
