"""Asks the store of facts what is known of a customer: in bounded time an answer, or why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from memory.facts.port import Fact as Known
from memory.facts.port import FactsError, FactStore, FactsUnavailableError
from memory.windows import RECALLED_TOKENS, cut_to
from schemas.tools import ToolError, ToolResult
from streams.runtime.ports import Clock, Effect, Fact

TOPIC = "tools.results"
LOOKED_AT = 12  # of the nearest facts: one that names an order or an article goes before one that does not
_THINGS = ("order_id", "sku_id")
_WORDS = 300  # characters of an error that are kept

# a store that is down or not as it should be; anything else is our bug, and the message's own deadline ends it
UNAVAILABLE = (FactsUnavailableError, FactsError, OSError)

Status = Literal["success", "timeout", "failure", "cancelled"]


class RecallHandler:
    """The "recall" effect handler."""

    def __init__(self, store: FactStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler. Not asked after its deadline: the message has gone on without it."""
        if self._clock.now_ms() >= effect.deadline:
            return [outcome(effect, self._clock, "cancelled", error="its deadline had passed")]
        return await self._ask(effect)

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler: a search changes nothing, so it is simply made again."""
        return await self._ask(effect)

    async def _ask(self, effect: Effect) -> Sequence[Fact]:
        asked = effect.request
        try:
            async with asyncio.timeout(effect.timeout_ms / 1000):
                found = await self._found(asked["shop"], asked["customer"], asked["text"])
        except (TimeoutError, *UNAVAILABLE) as error:
            return [outcome(effect, self._clock, *unavailable(error, effect.timeout_ms))]
        facts = [short(one) for one in chosen(found, asked["top"])]
        return [outcome(effect, self._clock, "success", {"facts": facts}, summary=f"{len(facts)} facts")]

    async def _found(self, shop: str, customer: str, text: str) -> list[Known]:
        """The nearest, then the newest: "the one from last time" has no word in common with what it means."""
        near = [hit.fact for hit in await self._store.search(shop, text, customer=customer, top=LOOKED_AT)]
        if len(near) >= LOOKED_AT:
            return near
        seen = {one.write_id for one in near}
        newest = await self._store.search(shop, "", customer=customer, top=LOOKED_AT)
        return [*near, *(hit.fact for hit in newest if hit.fact.write_id not in seen)]


def unavailable(error: BaseException, timeout_ms: int) -> tuple[Status, None, str]:
    """Status, data and words of an outcome without an answer."""
    if isinstance(error, TimeoutError):
        return "timeout", None, f"no answer in {timeout_ms} ms"
    return "failure", None, str(error)[:_WORDS] or type(error).__name__


def chosen(found: Sequence[Known], most: int) -> list[Known]:
    """The nearest, and among them at least one that names a thing, if there is one: "the one from last time"."""
    kept = list(found[:most])
    things = [one for one in found if any(one.fields.get(name) for name in _THINGS)]
    if things and not any(one in things for one in kept):
        kept[-1:] = things[:1]
    return kept


def short(fact: Known) -> dict[str, Any]:
    """A fact as it is recorded: its summary within its share of a prompt (R-003-23), its key fields without a seal."""
    fields = {name: value for name, value in fact.fields.items() if name not in ("summary", "seal")}
    return {"key": fact.key, "kind": fact.kind, "summary": cut_to(fact.summary, RECALLED_TOKENS), "fields": fields,
            "write_id": fact.write_id, "at": fact.at}  # fmt: skip


def outcome(effect: Effect, clock: Clock, status: Status, data: dict[str, Any] | None = None, error: str = "",
            **more: Any) -> Fact:  # fmt: skip
    """The fact on tools.results that ends the effect."""
    now, call_id = clock.now_ms(), str(effect.request["call_id"])
    result = ToolResult(
        result_id=f"{call_id}:r", call_id=call_id, tool=str(effect.request["tool"]), status=status, data=data or {},
        error=ToolError(code="unavailable", message=error) if error else None, finished_at=now,
        duration_ms=max(0, now - effect.declared_at), confirmed_by="answer" if status == "success" else "none", **more,
    )  # fmt: skip
    return Fact(TOPIC, effect.conversation, result.result_id, result)
