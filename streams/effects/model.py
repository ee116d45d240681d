"""Asks a model for its form, on any OpenAI-compatible server: a question, one re-ask, one deadline (R-000-09).

Which form it is says the request's `tool`; without one it is the reading of a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import orjson
from pydantic import ValidationError

from agents.models.form import BrokenFormError
from agents.models.question import READING, Question
from agents.remembering.question import REMEMBERING
from agents.understanding.normalize import masked
from schemas.base import Model
from schemas.tools import MODEL, TokenUsage, ToolError, ToolResult
from streams.effects.faults import BROKEN
from streams.runtime.ports import Clock, Effect, Fact

TOPIC = "tools.results"
MAX_ANSWER = 256 * 1024
MAX_TOKENS = 400  # of an answer: the form takes about 120
RAW_CHARS = 2_000  # of an answer that is kept as it came
MAX_WORDS = 300
QUESTIONS = {question.tool: question for question in (READING, REMEMBERING)}
_NO_FUNCTIONS = frozenset({400, 404, 415, 422, 500, 501})  # how servers answer that don't know `tools`

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelServer:
    """Where the model is: `url` ends before `/chat/completions`; empty: there is none."""

    url: str = ""
    key: str = field(default="", repr=False)
    name: str = ""


@dataclass(slots=True)
class _Asked:
    """What came of asking: the form or the last fault, the answers as they came, and what they cost."""

    question: Question
    form: Model | None = None
    fault: ToolError = field(default_factory=lambda: ToolError(code="timeout", message="no answer in time"))
    raw: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # of each of them: what the re-ask told the model
    attempts: int = 0
    usage: TokenUsage | None = None
    model: str = ""
    functions: bool = True

    @property
    def status(self) -> Literal["success", "timeout", "failure"]:
        """As the result says it."""
        if self.form is not None:
            return "success"
        return "timeout" if self.fault.code == "timeout" else "failure"


class ModelHandler:
    """The "model" effect handler. What it is told to send is all that it sends: the masked messages of the effect."""

    def __init__(self, client: httpx.AsyncClient, server: ModelServer, clock: Clock) -> None:
        self._client = client
        self._server = server
        self._clock = clock

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler. Not after the deadline: then the message has gone on without a model."""
        return [await self._ask(effect, effect.deadline)]

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler: a question is harmless, so it is asked again; the first answer that is recorded counts."""
        return [await self._ask(effect, self._clock.now_ms() + effect.timeout_ms)]

    async def _ask(self, effect: Effect, until: int) -> Fact:
        begun, asked = self._clock.now_ms(), _Asked(QUESTIONS[effect.request.get("tool", MODEL)])
        left = until - begun
        if not self._server.url:
            asked.fault = ToolError(code="no_model", message="no model is set: INTERLOCK_MODEL_URL is empty")
        elif left > 0:
            try:
                async with asyncio.timeout(left / 1000):  # of both questions together
                    await self._twice(effect, asked)
            except TimeoutError:
                asked.fault = ToolError(code="timeout", message=f"no form within {left} ms")
        return self._fact(effect, asked, begun)

    async def _twice(self, effect: Effect, asked: _Asked) -> None:
        """The question, and where the answer is no form, once more with its fault (R-000-09)."""
        messages: list[Any] = list(effect.request["messages"])
        for _ in range(2):
            asked.attempts += 1
            try:
                raw = await self._once(messages, asked)
                asked.form = asked.question.read(raw)
            except _NoAnswerError as failed:
                asked.fault = failed.error
                if not failed.without_functions or not asked.functions:
                    return
                asked.functions = False
            except BrokenFormError as broken:
                asked.fault = ToolError(code="broken_form", message=str(broken)[:MAX_WORDS])
                asked.raw.append(masked(raw)[:RAW_CHARS])
                asked.faults.append(asked.fault.message)
                messages = [*messages, *asked.question.again(asked.raw[-1], asked.fault.message)]
            else:
                return

    async def _once(self, messages: Sequence[Mapping[str, Any]], asked: _Asked) -> str:
        """The text of one answer. Raises _NoAnswerError."""
        body: dict[str, Any] = {"model": self._server.name, "messages": messages, "temperature": 0,
                                "max_tokens": MAX_TOKENS}  # fmt: skip
        if asked.functions:
            choice = {"type": "function", "function": {"name": asked.question.function}}
            body |= {"tools": [asked.question.schema()], "tool_choice": choice}
        headers = {"Authorization": f"Bearer {self._server.key}"} if self._server.key else {}
        url = f"{self._server.url.rstrip('/')}/chat/completions"
        try:
            async with self._client.stream("POST", url, json=body, headers=headers, timeout=None) as response:
                content = b""
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER:
                        raise _no_answer(code="too_long", words=f"more than {MAX_ANSWER} bytes")
        except BROKEN as error:
            raise _no_answer(code="unreachable", words=f"{type(error).__name__}: {error}") from error
        if response.status_code >= 400:
            raise _no_answer(code=f"http_{response.status_code}", words=f"answered {response.status_code}",
                             without_functions=response.status_code in _NO_FUNCTIONS)  # fmt: skip
        return _text_of(content, asked)

    def _fact(self, effect: Effect, asked: _Asked, begun: int) -> Fact:
        now, request = self._clock.now_ms(), effect.request
        data: dict[str, Any] = {
            "message_id": request["message_id"], "prompt": request["prompt"],
            "model": asked.model or request["model"], "functions": asked.functions,
            "form": None if asked.form is None else _masked(asked.form.model_dump(mode="json")), "raw_text": asked.raw,
            "faults": asked.faults,
        }  # fmt: skip
        if asked.form is None:
            log.warning("model %s: %s: %s", data["model"], asked.fault.code, asked.fault.message)
        result = ToolResult(
            result_id=f"{effect.id}:r", call_id=effect.id, tool=asked.question.tool, status=asked.status, data=data,
            error=None if asked.form is not None else asked.fault, attempts=asked.attempts,
            duration_ms=max(0, now - begun), finished_at=now, token_usage=asked.usage,
            confirmed_by="answer" if asked.form is not None else "none",
        )  # fmt: skip
        return Fact(TOPIC, effect.conversation, result.result_id, result)


def _masked(value: Any) -> Any:
    """The form as it is recorded: what a model makes up may look like somebody's number."""
    if isinstance(value, dict):
        return {name: _masked(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_masked(part) for part in value]
    return masked(value) if isinstance(value, str) else value


class _NoAnswerError(Exception):
    """Nothing to read a form from; `without_functions`: another try without function calls may have one."""

    def __init__(self, error: ToolError, *, without_functions: bool) -> None:
        super().__init__(error.message)
        self.error, self.without_functions = error, without_functions


def _no_answer(*, code: str, words: str, without_functions: bool = False) -> _NoAnswerError:
    return _NoAnswerError(ToolError(code=code, message=words[:MAX_WORDS]), without_functions=without_functions)


def _text_of(content: bytes, asked: _Asked) -> str:
    """The arguments of the function call, else the words of the answer; what it cost is noted on the way.

    Of two calls, neither is chosen: together they are no form, and it is asked for once more.
    """
    try:
        body = orjson.loads(content)
        message = body["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        name = asked.question.function
        filled = [call["function"]["arguments"] for call in calls if call["function"]["name"] == name]
        found = "\n".join(map(_text, filled)) if filled else message.get("content")
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise _no_answer(code="bad_answer", words=f"no chat completion: {type(error).__name__}") from error
    _note(body, asked)
    return _text(found)


def _text(found: Any) -> str:
    """As text: some servers parse the arguments themselves."""
    if isinstance(found, dict):
        return orjson.dumps(found).decode()
    return found if isinstance(found, str) else ""


def _note(body: Mapping[str, Any], asked: _Asked) -> None:
    if isinstance(body.get("model"), str):
        asked.model = body["model"][:100]
    used = body.get("usage")
    with contextlib.suppress(AttributeError, ValidationError):  # a server need not say, nor say it well
        spent = TokenUsage(prompt=used.get("prompt_tokens"), completion=used.get("completion_tokens"))  # type: ignore[union-attr]
        known = asked.usage or TokenUsage(prompt=0, completion=0)
        asked.usage = TokenUsage(prompt=known.prompt + spent.prompt, completion=known.completion + spent.completion)
