"""What a conversation's state shows as turns: its messages, and the orders and items that each of them shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from agents.understanding.fold import fold
from agents.understanding.lexicon import View, lexicon
from agents.understanding.orders import orders
from agents.understanding.port import Context
from agents.understanding.references import CHOICE, DESCRIBING, OF_THING
from agents.understanding.slots import sensitive, slots
from memory.turns import Role, Said, Thing, Turn

TURNS = 200  # that windows look at; the state holds fewer
_LABELLED = re.compile(r"\s*(?P<id>(?=[A-Za-z]{0,6}[0-9])[A-Za-z0-9]{4,20})(?P<items>.*)", re.DOTALL)


def turns(state: Mapping[str, Any], but: str | None = None) -> tuple[Turn, ...]:
    """Both sides' messages by turn, oldest first, without what the customer took back (case B11).

    `but` is the message that is being read: what an edit replaces is no longer said.
    """
    heard = sorted((one for one in state["perception"]["messages"].values()
                    if not one["recalled"] and one["message_id"] != but),
                   key=lambda one: (one["at"], one["message_id"]))[-TURNS:]  # fmt: skip
    asked = {one["message_id"]: [Said(one["message_id"], "customer", one["text"], one["at"], named(one["text"]))]
             for one in heard}  # fmt: skip
    for message_id, sent in state["actions"]["messages"].items():
        # By what it answers: the customer's clock and ours need not agree.
        home = sent["in_reply_to"] if sent["in_reply_to"] in asked else _before(heard, sent["queued_at"])
        if home is not None:
            asked[home].append(Said(message_id, "agent", sent["text"], sent["queued_at"], tuple(shown(sent))))
    return tuple(Turn(at, tuple(asked[one["message_id"]]), one["intent"]) for at, one in enumerate(heard, 1))


def _before(heard: list[Any], at: int) -> str | None:
    return next((one["message_id"] for one in reversed(heard) if one["at"] <= at), None)


@lru_cache(maxsize=16_384)
def named(text: str) -> tuple[Thing, ...]:
    """The orders that a customer's text names. What the customer says of them is no fact, so they have no values."""
    folded = fold(text).text
    closed = [hit[2:] for hit in sensitive(folded)]
    return tuple(Thing("order", hit[1]) for hit in orders(folded, closed))


def shown(sent: Mapping[str, Any]) -> Iterator[Thing]:
    """What one of our messages shows: the order that it is about, and the list that it offers."""
    params = sent.get("params") or {}
    order_id = params.get("order_id")
    if isinstance(order_id, str) and order_id:
        yield Thing("order", order_id, described(str(params.get("items") or "")))
    for choice in sent.get("choices") or ():
        match = _LABELLED.fullmatch(choice["label"])
        role: Role = "offered"
        if match:
            yield Thing("order", match["id"], described(match["items"]), role, choice["number"])
        else:
            yield Thing(CHOICE, choice["label"], {}, role, choice["number"])


def known(state: Mapping[str, Any]) -> Iterator[Thing]:
    """What the flows under way know of orders, from the shop's answers."""
    for flow in state["planning"]["flows"]:
        order_id, items = flow["slots"].get("order_id"), flow["slots"].get("items")
        if isinstance(order_id, str) and isinstance(items, str):
            yield Thing("order", order_id, described(items))


def recalled(facts: Iterable[Mapping[str, Any]]) -> Iterator[Thing]:
    """The orders and articles that facts of earlier sessions are about (R-002-10)."""
    for fact in facts:
        fields = fact["fields"]
        values = {name: value for name in OF_THING if isinstance(value := fields.get(name), str) and value}
        order_id, sku_id = values.pop("order_id", ""), values.get("sku_id", "")
        if order_id or sku_id:
            yield Thing("order" if order_id else "item", order_id or sku_id, values)


def profiled(state: Mapping[str, Any]) -> list[Thing]:
    """What the shop's own record of the customer names: their orders, and the things of the newest facts (R-003-22)."""
    profile = state["memory"].get("profile") or {}
    orders = [Thing("order", one["order_id"], described(one["items"])) for one in profile.get("orders", ())]
    return [*orders, *recalled(profile.get("facts", ()))]


@lru_cache(maxsize=4_096)
def described(items: str) -> Mapping[str, str]:
    """Category, colour and size of an order's items in words, where it is one thing; of several none is certain."""
    values: dict[str, set[str]] = {}
    for name, value, _, _ in slots(View(fold(items).text), Context(), lexicon(), []):
        if name in DESCRIBING:
            values.setdefault(name, set()).add(value)
    return {name: next(iter(some)) for name, some in values.items() if len(some) == 1}
