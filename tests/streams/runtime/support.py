"""A tiny step table and a pipeline on virtual time, for the runtime's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson

from memory.sealing import MemoryKeyStore
from schemas.events import ChannelEvent, MessageBody
from schemas.plans import ExecutionPlan, FallbackAction
from schemas.step import Draft, Input
from schemas.system import SystemEvent, TimerFired
from schemas.tools import ToolResult
from streams.processors import system
from streams.runtime.local import LocalInterlock
from streams.runtime.ports import Effect, EffectHandler, Fact, Outgoing, Record
from streams.runtime.table import Row
from streams.runtime.virtual import run_virtual, virtual_clock
from streams.settings import Settings

WHO = "demo/web/u1"


def settings(**values: Any) -> Settings:
    """Settings with the test's own values."""
    return Settings().model_copy(update={"partitions": 4, **values})


def event(number: int, sender: str = "u1", text: str = "hello") -> ChannelEvent:
    """A customer's message; its number names it."""
    body = MessageBody(kind="message", message_id=f"m-{number}", text=text)
    return ChannelEvent(id=str(number), shop="demo", channel="web", sender=sender, body=body, event_id=f"ev-{number}")


def plan(note: str) -> ExecutionPlan:
    """A plan that carries a note."""
    fallback = FallbackAction(type="inform", reason=note)
    return ExecutionPlan(plan_id="p", version=1, session_id="s", flow="echo", node="start", status="open", tasks=(),
                         exit_conditions=("done",), fallback_action=fallback)  # fmt: skip


def note_step(draft: Draft, cause: Input) -> None:
    """Keeps each text in the anchor, and acts on the words "plan", "timer", "call" and "boom"."""
    text = cause.value.body.text
    if text == "boom":
        raise LookupError(text)
    draft.set([*draft.get("memory", "summaries"), text], "memory", "summaries")
    draft.reason("test.heard", text, cause.id)
    draft.set(draft.now, "actions", "last_online")
    if text == "plan":
        draft.emit("plans", plan(text))
    if text == "huge":
        draft.emit("plans", plan("x" * 20_000).model_copy(update={"exit_conditions": ("y" * 20_000,) * 60}))
    if text.startswith("timer"):
        draft.timer("test.wake", draft.now + int(text.removeprefix("timer") or 5_000), {"said": text})
    if text == "call":
        draft.effect("c-1", "tool", key="k-1", timeout_ms=3_000, deadline=draft.now + 10_000, request={"n": 1})


def fact_step(draft: Draft, cause: Input) -> None:
    """Counts timers that fired, and settles the call of a result."""
    if isinstance(cause.value, TimerFired):
        draft.set(draft.get("planning", "turns") + 1, "planning", "turns")
        draft.reason("test.timer", cause.value.name)
    elif isinstance(cause.value, ToolResult):
        known = draft.settle(cause.value.call_id)
        draft.set([*draft.get("memory", "summaries"), cause.value.status], "memory", "summaries")
        draft.reason("test.settled" if known else "test.repeated", cause.value.status, cause.id)


def rows() -> list[Row]:
    """The test table: perception-like, fact-like, and the runtime's own system row."""
    return [
        Row("notes", ("channel.events",), note_step, "test", "none", "none"),
        Row("facts", ("timers.fired", "tools.results"), fact_step, "test", "none", "none"),
        system.row(),
    ]


class SlowTool:
    """An effect handler that takes virtual time; it counts what it did by key."""

    def __init__(self, seconds: float = 3.0) -> None:
        self.seconds = seconds
        self.done: list[str] = []
        self.asked: list[str] = []

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """Wait, act, tell."""
        await asyncio.sleep(self.seconds)
        self.done.append(effect.key)
        return [self._fact(effect, "success")]

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """Ask whether the key happened."""
        self.asked.append(effect.key)
        return [self._fact(effect, "success" if effect.key in self.done else "unknown")]

    def _fact(self, effect: Effect, status: Any) -> Fact:
        now = virtual_clock().now_ms()
        result = ToolResult(result_id=f"{effect.id}:r", call_id=effect.id, tool="slow", status=status, finished_at=now)
        return Fact("tools.results", effect.conversation, result.result_id, result)


def pipeline(handlers: Mapping[str, EffectHandler] | None = None, **values: Any) -> LocalInterlock:
    """A whole pipeline on the running virtual loop, with the test table."""
    return LocalInterlock(settings(**values), rows(), handlers or {}, MemoryKeyStore(), virtual_clock())


def run(
    test: Callable[[LocalInterlock], Awaitable[None]],
    handlers: Mapping[str, EffectHandler] | None = None,
    **values: Any,
) -> None:
    """Run a test body on a fresh pipeline and virtual clock."""

    async def main() -> None:
        lock = pipeline(handlers, **values)
        await test(lock)
        await lock.close()

    run_virtual(main())


async def say(lock: LocalInterlock, number: int, text: str = "hello", sender: str = "u1") -> Record:
    """The customer says something."""
    message = event(number, sender, text)
    return await lock.publish("channel.events", message.conversation, message, message.event_id)


def rubbish(
    lock: LocalInterlock,
    count: int,
    value: bytes | None = b"{bad",
    key: bytes | None = WHO.encode(),
    topic: str = "channel.events",
) -> None:
    """Records that nobody can read, in the customer's partition."""
    for _ in range(count):
        lock.log.append(Outgoing(topic, lock.partition_of(WHO), key, value, ()))


async def resume(lock: LocalInterlock, topic: str) -> None:
    """The operator's command."""
    home = f"~{lock.partition_of(WHO)}"
    word = SystemEvent(event_id=f"resume-{topic}-{virtual_clock().now_ms()}", kind="partition_resumed", subject=topic,
                       by="op", at=virtual_clock().now_ms())  # fmt: skip
    await lock.publish("system.events", home, word, word.event_id)
    await lock.settle()


def heard(lock: LocalInterlock, conversation: str = WHO) -> list[str]:
    """What the conversation's state says it heard."""
    state = lock.state(conversation)
    return [] if state is None else list(state["memory"]["summaries"])


def reasons(lock: LocalInterlock, conversation: str = WHO) -> list[str]:
    """The first rule of each of the conversation's diffs."""
    return [diff["reasons"][0]["rule"] for diff in lock.diffs(conversation)]


def values(lock: LocalInterlock, topic: str) -> list[Any]:
    """The topic's values as JSON."""
    return [None if record.value is None else orjson.loads(record.value) for record in lock.log.records(topic)]
