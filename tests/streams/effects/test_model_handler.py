"""Asking a model over a real socket: good answers, every kind of bad one, slow ones, and what is recorded."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest
from httpx_aiohttp import HttpxAiohttpClient

from agents.models.form import function_schema
from agents.models.prompt import PROTOCOL, VERSION, messages
from memory.windows import choose
from schemas.tools import MODEL, ToolResult
from streams.clock import SystemClock
from streams.effects.model import MAX_ANSWER, ModelHandler, ModelServer
from streams.runtime.ports import Effect
from tests.models.stub import Told, completion, form, stub

pytestmark = pytest.mark.slow  # real sockets
GOOD = form("logistics", "没影")
TEXT = "东西还是没影"


async def ask(url: str, *, ms: int = 3_000, client: type[httpx.AsyncClient] = HttpxAiohttpClient, key: str = "",
              late: bool = False, **more: Any) -> ToolResult:  # fmt: skip
    """The fact that asking that server ends in; `more` of the request: a question other than the reading."""
    sent = messages(TEXT, choose([], TEXT, new_intent=True), "", ())
    request = {"message_id": "m-1", "model": "small", "prompt": VERSION, "messages": sent, **more}
    async with client() as opened:
        now = SystemClock().now_ms()
        effect = Effect("a/b/c", "model-1", "model", "model-1", now, now if late else now + ms, ms, request)
        handler = ModelHandler(opened, ModelServer(url, key, "small"), SystemClock())
        (fact,) = await (handler.resolve(effect) if late else handler.run(effect))
    assert ("tools.results", "a/b/c", "model-1:r") == (fact.topic, fact.conversation, fact.id)
    assert isinstance(fact.value, ToolResult)
    return fact.value


def code(result: ToolResult) -> tuple[str, str]:
    """Status and error."""
    return result.status, result.error.code if result.error else ""


@pytest.mark.parametrize("client", [httpx.AsyncClient, HttpxAiohttpClient])
async def test_a_form_is_a_success_with_all_that_it_cost(client: type[httpx.AsyncClient]) -> None:
    """The answer is recorded with model, prompt version, tokens and latency (R-004-04)."""
    with stub(completion(GOOD)) as server:
        result = await ask(server.url, client=client)

    assert ("success", MODEL, 1) == (result.status, result.tool, result.attempts)
    assert "logistics" == result.data["form"]["intent"]
    recorded = [result.data[name] for name in ("model", "prompt", "message_id", "raw_text")]
    assert ["stub-1", VERSION, "m-1", []] == recorded
    assert result.token_usage is not None
    assert (700, 60) == (result.token_usage.prompt, result.token_usage.completion)
    assert result.duration_ms > 0


async def test_the_protocol_is_the_system_message_and_the_schema_the_shape() -> None:
    """Every call has the protocol as its system message, and one function that must be called (R-000-02, R-004-20)."""
    with stub(completion("rubbish"), completion(GOOD)) as server:
        await ask(server.url, key="k-1")

    for asked in server.asked:
        assert {"role": "system", "content": PROTOCOL} == asked["messages"][0]
        assert [function_schema()] == asked["tools"]
        assert "read_message" == asked["tool_choice"]["function"]["name"]
        assert ("small", 0) == (asked["model"], asked["temperature"])
    assert ("/v1/chat/completions", "Bearer k-1") == (server.headers[0]["path"], server.headers[0]["authorization"])


BROKEN: dict[str, Any] = {
    "no JSON": completion('{"intent": "logistics", '),
    "cut off": completion('{"intent": "logistics", "evidence": ["没影"], "plan": ["look_'),
    "wrong types": completion({**GOOD, "confidence": "0.9"}),
    "a field too many": completion({**GOOD, "explanation": "the customer asks about a parcel"}),
    "a field missing": completion({"intent": "logistics"}),
    "an intent of its own": completion(form("steal", "没影")),
    "three levels": completion({**GOOD, "evidence": [{"quote": ["没影"]}]}),
    "words": completion(content="The customer wants to know where the parcel is."),
    "nothing": completion(content=""),
    "a list": completion([GOOD]),
    "null": completion("null"),
    "two calls": completion(GOOD, times=2),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_form_is_asked_for_once_more(name: str) -> None:
    """The raw text is kept, the fault is told to the model, and the second form counts (R-000-09, X8)."""
    with stub(BROKEN[name], completion(GOOD)) as server:
        result = await ask(server.url)

    assert ("success", 2, 1) == (result.status, result.attempts, len(result.data["raw_text"]))
    added = server.asked[1]["messages"][2:]
    assert ["assistant", "user"] == [one["role"] for one in added]
    assert result.data["raw_text"][0] == added[0]["content"]
    assert result.data["faults"][0] in added[1]["content"]


@pytest.mark.parametrize("name", BROKEN)
async def test_a_form_that_stays_broken_is_no_form(name: str) -> None:
    """Asked twice and not a third time; both raw texts are kept, and the message goes on without (R-000-09)."""
    with stub(BROKEN[name]) as server:
        result = await ask(server.url)

    assert ("failure", "broken_form") == code(result)
    assert (2, 2, 2, None) == (len(server.asked), result.attempts, len(result.data["raw_text"]), result.data["form"])


async def test_a_server_without_functions_is_read_by_its_words() -> None:
    """A server that refuses `tools` is asked without; its JSON is read out of fences and thoughts (R-004-20)."""

    def old(asked: dict[str, Any]) -> Told:
        fenced = f"<think>{{hm}}</think>Here:\n```json\n{orjson.dumps(GOOD).decode()}\n```"
        return Told({"error": "tools: unknown"}, 400) if "tools" in asked else completion(content=fenced)

    with stub(old) as server:
        result = await ask(server.url)

    assert ("success", 2, False) == (result.status, len(server.asked), result.data["functions"])


@pytest.mark.parametrize(("told", "expected"), [
    (Told({"error": "x"}, 503), "http_503"), (Told({"error": "x"}, 401), "http_401"), (Told(b"<html>"), "bad_answer"),
    (Told({"choices": []}), "bad_answer"), (Told({"choices": [{"message": None}]}), "bad_answer"),
    (Told(b"[1]"), "bad_answer"), (Told(b"x" * (MAX_ANSWER + 1)), "too_long"), (Told(b"", 302), "bad_answer"),
], ids=range(8))  # fmt: skip
async def test_no_answer_is_a_failure(told: Told, expected: str) -> None:
    """Whatever the server does instead of answering, one fact says so, and nothing is asked again and again."""
    with stub(told) as server:
        assert ("failure", expected) == code(await ask(server.url))
        assert 1 == len(server.asked)


async def test_a_broken_server_is_asked_once_without_functions() -> None:
    """A 500 may be about the functions: once more without them, and then no more."""
    with stub(Told({"error": "x"}, 500)) as server:
        assert ("failure", "http_500") == code(await ask(server.url))
        assert [True, False] == ["tools" in asked for asked in server.asked]


@pytest.mark.parametrize("client", [httpx.AsyncClient, HttpxAiohttpClient])
async def test_a_slow_model_is_not_waited_for(client: type[httpx.AsyncClient]) -> None:
    """Both questions share one deadline: then the fact says timeout (design 3a)."""
    with stub(completion("rubbish"), Told(seconds=2)) as server:
        result = await ask(server.url, ms=300, client=client)

    assert ("timeout", "timeout") == code(result)
    assert 2 == result.attempts
    assert result.duration_ms < 1_500
    assert ["rubbish"] == result.data["raw_text"]


async def test_nobody_listens() -> None:
    """A refused connection is a failure at once."""
    with stub(completion(GOOD)) as server:
        url = server.url
    assert ("failure", "unreachable") == code(await ask(url))


async def test_no_model_is_set() -> None:
    """A question that an owner with a model declared is answered by one without: it fails, and nothing waits."""
    assert ("failure", "no_model") == code(await ask(""))


async def test_a_successor_asks_again() -> None:
    """A question changes nothing, so one whose owner died is simply asked again (promise 6)."""
    with stub(completion(GOOD)) as server:
        assert "success" == (await ask(server.url, late=True)).status


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": "many"}, {"prompt_tokens": -1, "completion_tokens": 2}])
async def test_a_server_need_not_count_well(usage: Any) -> None:
    """What a server says of tokens is taken only when it is two counts."""
    with stub(completion(GOOD, usage=usage)) as server:
        result = await ask(server.url)
    assert ("success", None) == (result.status, result.token_usage)


async def test_what_a_model_makes_up_is_masked() -> None:
    """A phone that a model makes up is masked before it is kept, in a raw text and in a form (promise 9)."""
    made_up = form("refund", "13812345678", order_ids=["6222021234567890128"], inferences=["a@example.com"])
    for told in (completion(content="call 13812345678 now"), completion(made_up)):
        with stub(told) as server:
            shown = (await ask(server.url)).model_dump_json()
        assert not any(value in shown for value in ("13812345678", "6222021234567890128", "a@example.com"))
