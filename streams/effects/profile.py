"""Loads what a shop knows of a customer, and the newest facts beside it, when a session starts (R-003-22)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
import orjson

from agents.tools.spec import ToolSpec
from memory.facts.port import FactStore
from memory.masking import hide, mask
from memory.sealing import KeyStore, seal
from streams.effects import answers
from streams.effects.answers import MAX_ROWS
from streams.effects.faults import BROKEN
from streams.effects.recall import UNAVAILABLE, outcome, short, unavailable
from streams.effects.request import NotSentError, exchange, request_of
from streams.runtime.ports import Clock, Effect, Fact

UNKNOWN = 404  # the shop does not know this customer: nothing is wrong, and nothing is known
AGAIN_MS = 100  # pause before the one repeat of a load that broke
_DESCRIBED = ("colour", "name", "size")


class ProfileUnavailableError(Exception):
    """The CRM is down, too slow, or answers something that is no profile; the message says what."""


class Profiles(Protocol):
    """The port of a shop's customer records."""

    async def load(self, customer_id: str) -> Mapping[str, Any]:
        """`name`, `level`, `addresses`, `orders`, `problems`, in clear; empty for somebody whom the shop does not know.

        Raises ProfileUnavailableError.
        """
        ...


@dataclass(frozen=True, slots=True)
class CrmProfiles:
    """The port over HTTP, described by a tool file: `get_profile.yaml`, or a pack's own."""

    spec: ToolSpec
    client: httpx.AsyncClient
    base_url: str
    token: str | None = None

    async def load(self, customer_id: str) -> Mapping[str, Any]:
        """See Profiles. One repeat where no answer came or the service failed; time is the caller's to bound."""
        args, answer = {"customer_id": customer_id}, await self._answer(customer_id)
        if isinstance(answer, str):
            await asyncio.sleep(AGAIN_MS / 1000)
            answer = await self._answer(customer_id)
        if isinstance(answer, str):
            raise ProfileUnavailableError(answer)
        return self._body(args, answer)

    async def _answer(self, customer_id: str) -> answers.Answer | str:
        """The answer, or why there is none."""
        try:
            http = request_of(self.spec, {"customer_id": customer_id}, self.base_url, token=self.token)
            answer = await exchange(self.client, http)
        except NotSentError as error:
            raise ProfileUnavailableError(error.error.message) from error
        except BROKEN as error:
            return f"no answer: {type(error).__name__}"
        return answer if answer.status < 500 else f"the service answered {answer.status}"

    def _body(self, args: Mapping[str, Any], answer: answers.Answer) -> Mapping[str, Any]:
        refused = answers.refusal(answer)
        if answer.status == UNKNOWN:
            return {}
        # also an answer about another customer: it is no profile of this one
        found = refused or answers.output(self.spec, args, answer.body)
        if not isinstance(found, dict):
            raise ProfileUnavailableError(found.message)
        return found


class ProfileHandler:
    """The "profile" effect handler: customer record and facts side by side, each with its own fate."""

    def __init__(self, profiles: Profiles, store: FactStore, keys: KeyStore, clock: Clock) -> None:
        self._profiles, self._store, self._keys, self._clock = profiles, store, keys, clock

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler."""
        if self._clock.now_ms() >= effect.deadline:
            return [outcome(effect, self._clock, "cancelled", error="its deadline had passed")]
        return await self._load(effect)

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler: reading changes nothing, so it is simply done again."""
        return await self._load(effect)

    async def _load(self, effect: Effect) -> Sequence[Fact]:
        profile, facts = await asyncio.gather(self._profile(effect), self._facts(effect))
        missing = {name: why for name, why in (("crm", profile), ("facts", facts)) if isinstance(why, str)}
        data: dict[str, Any] = {"unavailable": missing}
        told = []
        if not isinstance(facts, str):
            data["facts"] = facts
            told.append(f"{len(facts)} facts")
        sealed = None
        if not isinstance(profile, str):
            data["profile"], clear = recorded(profile)
            told.append(f"{len(data['profile']['orders'])} orders")
            if clear:
                text = orjson.dumps(clear, option=orjson.OPT_SORT_KEYS)
                sealed = seal(self._keys, effect.conversation, text, context=f"{effect.id}|profile".encode())
        summary = ", ".join([*told, *(f"{name} unavailable" for name in missing)])
        return [outcome(effect, self._clock, "success", data, seal=sealed, summary=summary)]

    async def _profile(self, effect: Effect) -> Mapping[str, Any] | str:
        """The record as it may be read on, or why it is not there."""
        try:
            async with asyncio.timeout(effect.timeout_ms / 1000):
                return worded(await self._profiles.load(effect.conversation.split("/")[2]))
        except TimeoutError:
            return f"no answer in {effect.timeout_ms} ms"
        except ProfileUnavailableError as error:
            return str(error)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            return f"a broken answer: {type(error).__name__}"

    async def _facts(self, effect: Effect) -> list[dict[str, Any]] | str:
        asked = effect.request
        try:
            async with asyncio.timeout(effect.timeout_ms / 1000):
                hits = await self._store.search(asked["shop"], "", customer=asked["customer"], top=asked["top"])
        except (TimeoutError, *UNAVAILABLE) as error:
            return unavailable(error, effect.timeout_ms)[2]
        return [short(hit.fact) for hit in hits]


def worded(given: Mapping[str, Any]) -> dict[str, Any]:
    """A record in the shop's fields as short words, the newest first. Raises what a broken one makes."""
    orders = [{"order_id": str(one["order_id"]), "status": str(one.get("status", "")), "items": _items(one)}
              for one in _rows(given.get("orders"))]  # fmt: skip
    problems = [f"{one['problem']} {one.get('order_id', '')}".rstrip() + f": {one.get('solution') or 'open'}"
                for one in _rows(given.get("problems"))]  # fmt: skip
    return {"name": str(given.get("name") or ""), "level": str(given.get("level") or ""), "orders": orders,
            "addresses": [str(one) for one in _rows(given.get("addresses"))], "problems": problems}  # fmt: skip


def _rows(given: Any) -> list[Any]:
    if not isinstance(given, list | None):
        message = f"a list was expected, not {type(given).__name__}"
        raise TypeError(message)
    return (given or [])[:MAX_ROWS]


def _items(order: Mapping[str, Any]) -> str:
    words = (" ".join(str(item[part]) for part in _DESCRIBED if item.get(part)) + f" x{item.get('quantity', 1)}"
             for item in _rows(order.get("items")))  # fmt: skip
    return ", ".join(words)


def recorded(profile: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The profile as it may be recorded, and what is masked in it, in clear (promise 9)."""
    name, addresses = profile["name"], profile["addresses"]
    orders = [{**one, "items": mask(one["items"])[0]} for one in profile["orders"]]
    shown = {**profile, "name": hide("name", name), "addresses": [hide("address", one) for one in addresses],
             "orders": orders, "problems": [mask(one)[0] for one in profile["problems"]]}  # fmt: skip
    return shown, {"name": name, "addresses": addresses} if name or addresses else {}
