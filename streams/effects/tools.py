"""Runs a declared tool call over HTTP: one key, a hard time-out, two retries, and in doubt it asks (H07, H09, A13)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

import httpx
import orjson

from agents.tools.spec import Tools, ToolSpec
from schemas import codec
from schemas.tools import ToolCall, ToolError, ToolResult
from streams.effects import answers
from streams.effects.answers import Answer
from streams.effects.faults import BROKEN, never_left, timed_out
from streams.effects.request import HttpCall, NotSentError, Opener, build, exchange
from streams.runtime.ports import Clock, Effect, Fact

TOPIC = "tools.results"
BUDGET_MS = 5_000  # all attempts together: nobody waits longer (R-003-21)
HARD_MS = 3_000  # one attempt
ASK_MS = 1_000  # asking whether a key happened
MAX_WORDS = 500

Status = Literal["success", "failure", "timeout", "unknown", "cancelled"]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Run:
    """One call under way."""

    effect: Effect
    call: ToolCall
    spec: ToolSpec
    base: str
    http: HttpCall
    begun: int
    until: int
    attempts: int = 0
    error: ToolError = field(default_factory=lambda: ToolError(code="timeout", message="no answer in time"))
    reached: bool = False  # an attempt left this machine: it may have been done
    happened: bool | None = None  # what the service said when it was asked last; None: it could not say


class _NoAnswerError(Exception):
    """A time-out, a broken connection or a 5xx: worth another attempt (R-002-27)."""

    def __init__(self, error: ToolError, *, reached: bool) -> None:
        super().__init__(error.message)
        self.error, self.reached = error, reached


class ToolHandler:
    """The "tool" effect handler. `base_url` is one for all tools, or one a setting that the tool files name."""

    def __init__(self, specs: Tools, client: httpx.AsyncClient, base_url: str | Mapping[str, str], opener: Opener,
                 clock: Clock, *, environment: str = "prod", hard_ms: int = HARD_MS,
                 tokens: Mapping[str, str] | None = None) -> None:  # fmt: skip
        self._specs = specs
        self._client = client
        self._base_url = base_url
        self._opener = opener
        self._clock = clock
        self._environment = environment
        self._hard_ms = hard_ms
        self._tokens = tokens or {}

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler. Not started after the deadline; a cancellation goes through at once (H09)."""
        # checked here, not by the runner: only now is it about to leave
        now = self._clock.now_ms()
        if now >= effect.deadline:
            error = ToolError(code="deadline", message="not started: its deadline had passed")
            return [_fact(effect, self._plain(effect, "cancelled", error))]
        return await self._carry_out(effect, min(effect.deadline, now + BUDGET_MS), fresh=True)

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler: ask first, else repeat with the same key; a change that has none is unknown."""
        return await self._carry_out(effect, self._clock.now_ms() + BUDGET_MS, fresh=False)

    async def _carry_out(self, effect: Effect, until: int, *, fresh: bool) -> Sequence[Fact]:
        try:
            run = self._prepare(effect, until)
        except NotSentError as error:
            status: Status = "failure" if fresh else "unknown"  # an owner before may have sent it
            return [_fact(effect, self._plain(effect, status, error.error))]
        result = None if fresh else await self._take_over(run)
        return [_fact(effect, result or await self._attempt_all(run))]

    def _prepare(self, effect: Effect, until: int) -> _Run:
        call = codec.validate(ToolCall, dict(effect.request))
        spec = self._specs.get(call.tool)
        environment = None if spec is None else spec.environments.get(self._environment)  # type: ignore[call-overload]
        if spec is None or environment is None:
            message = f"{call.tool} has no file, or no environment {self._environment}"
            raise NotSentError(ToolError(code="unknown_tool", message=message))
        base = self._base_url if isinstance(self._base_url, str) else self._base_url[environment.base_url]
        token = self._tokens.get(spec.auth.token_setting or "")
        http = build(spec, call, base, effect.conversation, self._opener, token)
        return _Run(effect, call, spec, base.rstrip("/"), http, self._clock.now_ms(), until)

    async def _take_over(self, run: _Run) -> ToolResult | None:
        """What the owner before left behind: the outcome, or None when it must be (re)done."""
        # a query changes nothing: it is simply made again
        if run.spec.risk == "query":
            return None
        done = await self._look(run)
        if done is not None:
            return done
        if run.spec.idempotency != "key":
            run.error = ToolError(code="unknown", message="it can be neither asked nor repeated")
            return self._result(run, "unknown")
        return None

    async def _attempt_all(self, run: _Run) -> ToolResult:
        retries = run.spec.retries
        for number in range(retries.max + 1):
            run.attempts += 1
            try:
                answer = await self._attempt(run)
            except _NoAnswerError as failed:
                run.error = failed.error
                done = await self._look(run) if failed.reached else None
                if done is not None:
                    return done
            else:
                return await self._judge(run, answer)
            pause = retries.base_ms * 2**number
            if number == retries.max or self._clock.now_ms() + pause >= run.until:
                break
            await asyncio.sleep(pause / 1000)
        return self._given_up(run)

    async def _attempt(self, run: _Run) -> Answer:
        """One request within its time. Raises _NoAnswerError."""
        left = min(self._hard_ms, run.effect.timeout_ms, run.spec.timeout_ms, run.until - self._clock.now_ms())
        try:
            async with asyncio.timeout(max(left, 1) / 1000):
                answer = await exchange(self._client, run.http)
        except (TimeoutError, *BROKEN) as error:
            if never_left(error):
                raise _no_answer(code="unreachable", words=f"no connection: {error}", reached=False) from error
            if timed_out(error):
                raise _no_answer(code="timeout", words=f"no answer in {left} ms", reached=True) from error
            raise _no_answer(code="connection_lost", words=f"the connection broke: {error}", reached=True) from error
        if answer.status >= 500:
            raise _no_answer(code=f"http_{answer.status}", words=f"the service answered {answer.status}", reached=True)
        return answer

    async def _judge(self, run: _Run, answer: Answer) -> ToolResult:
        """A refusal is a failure, also inside a 200; a success has the declared shape."""
        refused = answers.refusal(answer)
        if refused is not None:
            run.error = refused
            return self._result(run, "failure")
        found = answers.output(run.spec, run.call.args, answer.body)
        if isinstance(found, dict):
            return self._result(run, "success", found, duplicate=answer.replayed)
        run.error = found
        done = await self._look(run)
        if done is not None:
            return done
        run.error = found
        return self._result(run, "unknown" if run.spec.risk != "query" and run.happened is None else "failure")

    def _given_up(self, run: _Run) -> ToolResult:
        """Out of attempts or time: unknown only where a change may have happened and the service can't say."""
        if run.spec.risk != "query" and run.reached and run.happened is None:
            return self._result(run, "unknown")
        return self._result(run, "timeout" if run.error.code == "timeout" else "failure")

    async def _look(self, run: _Run) -> ToolResult | None:
        """After an attempt that may have been done: the outcome when the service says that it was (A13)."""
        run.reached = True
        if run.spec.risk == "query":
            return None
        answer = await self._ask(run)
        run.happened = None if answer is None else bool(answer)
        return self._confirmed(run, answer) if isinstance(answer, dict) else None

    async def _ask(self, run: _Run) -> dict[str, Any] | bool | None:
        """Did the key happen? Its stored answer, False, or None when that can't be asked."""
        if run.spec.confirm_path is None:
            return None
        url = run.base + run.spec.confirm_path.format(key=quote(run.call.idempotency_key, safe=""))
        question = HttpCall("GET", url, {}, None, {name: run.http.headers[name] for name in run.http.headers
                                                   if name == "Authorization"})  # fmt: skip
        try:
            async with asyncio.timeout(ASK_MS / 1000):
                answer = await exchange(self._client, question)
            told = orjson.loads(answer.body)
            happened = told["happened"]
        except (TimeoutError, *BROKEN, orjson.JSONDecodeError, KeyError, TypeError) as error:
            log.warning("%s: whether %s happened can't be asked: %r", run.spec.name, run.call.call_id, error)
            return None
        if happened is True and answer.status == 200:
            response = told.get("response")
            return response if isinstance(response, dict) else {}  # it happened, and nobody says what: unknown
        return False if happened is False else None

    def _confirmed(self, run: _Run, happened: Mapping[str, Any]) -> ToolResult:
        found = answers.output(run.spec, run.call.args, orjson.dumps(happened))
        if isinstance(found, dict):
            return self._result(run, "success", found, confirmed_by="query")
        run.error = found
        return self._result(run, "unknown")

    def _result(self, run: _Run, status: Status, data: Mapping[str, Any] | None = None, *, duplicate: bool = False,
                confirmed_by: Literal["answer", "query"] = "answer") -> ToolResult:  # fmt: skip
        now = self._clock.now_ms()
        shown = answers.recorded(run.spec, data or {})
        success = status == "success"
        return ToolResult(
            result_id=f"{run.call.call_id}:r", call_id=run.call.call_id, tool=run.call.tool, status=status, data=shown,
            before=_snapshot(shown, "before"), after=_snapshot(shown, "after"), error=None if success else run.error,
            attempts=run.attempts, duration_ms=max(0, now - run.begun), finished_at=now, duplicate=duplicate,
            confirmed_by=confirmed_by if success else "none",
        )  # fmt: skip

    def _plain(self, effect: Effect, status: Status, error: ToolError) -> ToolResult:
        """The result of a call that was never sent."""
        call_id, tool = str(effect.request["call_id"]), str(effect.request["tool"])
        return ToolResult(result_id=f"{call_id}:r", call_id=call_id, tool=tool, status=status, error=error, attempts=0,
                          finished_at=self._clock.now_ms(), confirmed_by="none")  # fmt: skip


def _no_answer(*, code: str, words: str, reached: bool) -> _NoAnswerError:
    return _NoAnswerError(ToolError(code=code, message=words[:MAX_WORDS]), reached=reached)


def _snapshot(data: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    value = data.get(name)
    return value if isinstance(value, dict) else None


def _fact(effect: Effect, result: ToolResult) -> Fact:
    return Fact(TOPIC, effect.conversation, result.result_id, result)
