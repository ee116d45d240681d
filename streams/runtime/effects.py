"""Declared calls and sends, run outside the lanes: only if pending in committed state, never after the deadline."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schemas.step import State
from streams.metrics import MetricsPort
from streams.runtime.crashpoints import crash
from streams.runtime.ports import Clock, Effect, EffectHandler, Fact

log = logging.getLogger(__name__)

RETRY_S = 5.0  # a handler that raised is our bug: asked again at this pace, with the alarm of its log line


class EffectRunner:
    """The effects of one partition (promise 6)."""

    def __init__(
        self,
        partition: int,
        handlers: Mapping[str, EffectHandler],
        clock: Clock,
        read: Callable[[str], State | None],
        publish: Callable[[Fact], None],
        metrics: MetricsPort,
    ) -> None:
        self._partition = str(partition)
        self._handlers = handlers
        self._clock = clock
        self._read = read
        self._publish = publish
        self._metrics = metrics
        # by kind, for the gauge
        self._running: Counter[str] = Counter()
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def committed(self, before: State, after: State) -> None:
        """Start what a committed decision declared."""
        # the same object: a state shares with the one before it what the decision did not touch
        if after["pending"] is before["pending"]:
            return
        for effect_id, pending in after["pending"].items():
            if effect_id not in before["pending"]:
                self._start(after["conversation"], effect_id, pending, taken_over=False)

    def recovered(self, state: State) -> None:
        """Look after what an earlier owner declared: asked or repeated once it can't run any more."""
        for effect_id, pending in state["pending"].items():
            if pending.get("stopped"):
                continue  # its outcome is known, and a dead letter
            self._start(state["conversation"], effect_id, pending, taken_over=True)

    def _start(self, conversation: str, effect_id: str, pending: Mapping[str, Any], *, taken_over: bool) -> None:
        effect = Effect(
            conversation,
            effect_id,
            pending["kind"],
            pending["key"],
            pending["declared_at"],
            pending["deadline"],
            pending["timeout_ms"],
            pending["request"],
        )
        task = asyncio.create_task(self._run(effect, taken_over=taken_over))
        self._tasks[conversation, effect_id] = task
        task.add_done_callback(lambda _: self._tasks.pop((conversation, effect_id), None))

    async def _run(self, effect: Effect, *, taken_over: bool) -> None:
        if taken_over:  # the one before us may still be at it until then
            await asyncio.sleep(max(0, effect.deadline + effect.timeout_ms - self._clock.now_ms()) / 1000)
        # looked up each time: a fact from elsewhere, such as a person's word, may have settled it meanwhile
        while self._pending(effect):
            try:
                crash(f"effect.{effect.kind}.before")
                facts = await self._measured(effect, taken_over=taken_over)
                crash(f"effect.{effect.kind}.after")
            except Exception:
                log.exception("the %s handler failed on effect %s; it is asked again", effect.kind, effect.id)
                taken_over = True  # it may have happened: only ask, or repeat with the same key
                await asyncio.sleep(RETRY_S)
                continue
            # not settled here: the decision on the fact does that, so a crash before it leaves the effect pending
            for fact in facts:
                self._publish(fact)
            return

    async def _measured(self, effect: Effect, *, taken_over: bool) -> Sequence[Fact]:
        handler, started = self._handlers[effect.kind], self._clock.now_ms()
        self._count(effect.kind, 1)
        try:
            return await (handler.resolve(effect) if taken_over else handler.run(effect))
        finally:
            self._count(effect.kind, -1)
            seconds = (self._clock.now_ms() - started) / 1000
            self._metrics.observe("interlock_effect_seconds", max(0.0, seconds), kind=effect.kind)

    def _count(self, kind: str, change: int) -> None:
        self._running[kind] += change
        self._metrics.gauge("interlock_effects_running", self._running[kind], partition=self._partition, kind=kind)

    def _pending(self, effect: Effect) -> bool:
        state = self._read(effect.conversation)
        pending = None if state is None else state["pending"].get(effect.id)
        return pending is not None and pending["key"] == effect.key

    async def close(self) -> None:
        """Cancel what runs; its outcome is the next owner's to find out."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
