"""The question what to remember over a real socket: the same handler, deadline and re-ask, with a form of its own."""

from __future__ import annotations

from typing import Any

import pytest

from agents.remembering.question import FUNCTION, VERSION, function_schema, messages
from schemas.tools import WRITER, ToolResult
from tests.models.stub import Told, completion, stub
from tests.streams.effects.test_model_handler import ask, code

pytestmark = pytest.mark.slow  # real sockets
TEXT = "我的包裹一律走顺丰"
GOOD = {"preference": {"key": "carrier", "stance": "like", "value": "顺丰", "evidence": "一律走顺丰"}}


async def remember(url: str, **more: Any) -> ToolResult:
    """The fact that asking that server what to remember ends in."""
    return await ask(url, tool=WRITER, prompt=VERSION, **{"messages": messages(TEXT), **more})


async def test_a_form_is_a_success_under_its_own_name() -> None:
    """The outcome names the question, and the function that must be called is the question's (R-004-20)."""
    with stub(completion(GOOD, function=FUNCTION)) as server:
        result = await remember(server.url)

    assert ("success", WRITER, 1) == (result.status, result.tool, result.attempts)
    assert GOOD["preference"] == result.data["form"]["preference"]
    assert ("stub-1", VERSION) == (result.data["model"], result.data["prompt"])
    assert result.token_usage is not None
    assert (700, 60) == (result.token_usage.prompt, result.token_usage.completion)
    (asked,) = server.asked
    assert ([function_schema()], FUNCTION) == (asked["tools"], asked["tool_choice"]["function"]["name"])


BROKEN = {
    "a field too many": completion({**GOOD, "x": 1}, function=FUNCTION),
    "words": completion(content="The customer likes SF."),
    "two calls": completion(GOOD, function=FUNCTION, times=2),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_form_is_asked_for_once_more(name: str) -> None:
    """The raw text is kept, and the model is told the fault in this question's words (R-000-09)."""
    with stub(BROKEN[name], completion(GOOD, function=FUNCTION)) as server:
        result = await remember(server.url)

    assert ("success", 2, 1) == (result.status, result.attempts, len(result.data["raw_text"]))
    said = server.asked[1]["messages"][-1]["content"]
    assert result.data["faults"][0] in said
    assert f"Call {FUNCTION} once more" in said


async def test_a_slow_model_is_not_waited_for() -> None:
    """Its deadline is the whole of it, and nobody waits even for that (R-003-21)."""
    with stub(Told(seconds=2)) as server:
        result = await remember(server.url, ms=300)
    assert ("timeout", "timeout", WRITER) == (*code(result), result.tool)
    assert result.duration_ms < 1_500


async def test_nobody_listens() -> None:
    """A refused connection and a model that is not set are failures at once."""
    with stub(completion(GOOD, function=FUNCTION)) as server:
        url = server.url
    assert ("failure", "unreachable", WRITER) == (*code(gone := await remember(url)), gone.tool)
    assert ("failure", "no_model") == code(await remember(""))


async def test_what_a_model_makes_up_is_masked() -> None:
    """A phone that it makes up is masked before it is recorded, at any level of the form (promise 9)."""
    made_up = {"complaint": {"value": "13812345678", "evidence": "call 13812345678"}}
    with stub(completion(made_up, function=FUNCTION)) as server:
        result = await remember(server.url)
    assert "success" == result.status
    assert "13812345678" not in result.model_dump_json()
