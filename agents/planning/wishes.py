"""What a message asks for and brings: its wishes with their slots, and what its choice number means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from schemas.messages import Address, NormalizedMessage, SecondaryIntent, TargetItem
from schemas.sections import KEPT_CHARS

_DESCRIBES = frozenset({"sku_id", "category"})  # how an order is looked for, as long as it is not known
# One digit: no question offers more than nine choices, and "12" is an amount or a mistake.
_NUMBER = re.compile(
    r"\s*(?:选|第|no\.?|number|option)?\s*(?P<digit>[1-9])\s*(?:个|项|号)?\s*[.。!！)）]?\s*"
    r"|\s*(?:我?选|我?要|就)?第(?P<zh>[一二三四五六七八九])(?:个|项|条|单)?(?:吧|的)?\s*[.。!！]?\s*"
    r"|\s*(?:the\s+)?(?P<en>first|second|third|fourth|fifth)(?:\s+(?:one|option|choice|order))?(?:\s+please)?\s*[.!]?\s*",
    re.IGNORECASE,
)
_LONGEST_NUMBER = 64  # characters of a message that is a number and nothing else
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def slots_of(item: TargetItem | None, amount: int | None, address: Address | None) -> dict[str, Any]:
    """Slots by the names that the flows use; only what was said."""
    slots: dict[str, Any] = {
        "order_id": item.order_id if item else None, "asked_fen": amount,
        "address": address.text if address else None, "phone": address.phone if address else None,
        "sku_id": item.sku_id if item else None, "category": item.category if item else None,
        "colour": item.colour if item else None, "size": item.size if item else None,
    }  # fmt: skip
    return {name: value for name, value in slots.items() if value not in (None, "")}


def usable(names: Sequence[str], given: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a flow with slots of these names can use; what an item is like tells nothing once its order is known."""
    left_out = _DESCRIBES if given.get("order_id") or (known or {}).get("order_id") else frozenset[str]()
    return {
        name: value for name, value in given.items() if name in names and name not in left_out and value is not None
    }


def primary(message: NormalizedMessage) -> dict[str, Any]:
    """The slots of the message's first wish."""
    slots = slots_of(message.target_item, message.amount, message.address)
    if message.reason:
        slots["reason"] = message.reason
    return slots


def wish(message: NormalizedMessage, intent: str, slots: Mapping[str, Any]) -> dict[str, Any]:
    """A wish as it waits in the queue."""
    return {
        "kind": "wish", "intent": intent, "slots": dict(slots), "message_id": message.ref.message_id,
        "text": message.text[:KEPT_CHARS], "seal": message.seal.model_dump(mode="json") if message.seal else None,
    }  # fmt: skip


def others(message: NormalizedMessage) -> list[dict[str, Any]]:
    """Its further wishes. A plea to be quick is none: it means the wish beside it."""
    return [wish(message, one.intent, secondary(one))
            for one in message.secondary_intents if one.intent != "hurry_up"]  # fmt: skip


def wishes(message: NormalizedMessage) -> list[dict[str, Any]]:
    """All wishes of a compound message, each with its own slots (F01)."""
    further = others(message)
    if message.intent == "hurry_up" and further:
        return further
    if _said_of_all(message):  # "refund 1001 and 1002, both are broken"
        for one in further:
            if one["intent"] == message.intent:
                one["slots"]["reason"] = message.reason
    return [wish(message, message.intent, primary(message)), *further]


def _said_of_all(message: NormalizedMessage) -> bool:
    """Whether the only reason of a message stands behind all its orders."""
    reasons = [found for found in message.evidence if found.field == "reason"]
    last = max((found.end for found in message.evidence if found.field == "order_id"), default=0)
    return message.reason is not None and len(reasons) == 1 and 0 < last <= reasons[0].start


def waiting(message: NormalizedMessage) -> dict[str, Any]:
    """A whole message as it waits in the queue: what it is read for later, and no more of it."""
    text = message.text[:KEPT_CHARS]
    kept = message.model_copy(update={"text": text, "evidence": tuple(
        found for found in message.evidence if found.field == "choice"  # all that is asked of a reading's evidence
    )})  # fmt: skip
    return {"kind": "message", "message_id": message.ref.message_id, "text": text, "intent": message.intent,
            "message": kept.model_dump(mode="json")}  # fmt: skip


def secondary(one: SecondaryIntent) -> dict[str, Any]:
    """The slots of another wish in the same message."""
    return slots_of(one.target_item, one.amount, one.address)


def choice_number(message: NormalizedMessage) -> int | None:
    """The number that the message is, when it is nothing else."""
    for found in message.evidence:
        if found.field == "choice" and found.value.isascii() and found.value.isdigit():
            return int(found.value)
    plain = _NUMBER.fullmatch(message.text) if len(message.text) <= _LONGEST_NUMBER else None
    if plain is None:
        return None
    if plain["en"]:
        return _ORDINALS.index(plain["en"].lower()) + 1
    return int(plain["digit"]) if plain["digit"] else "一二三四五六七八九".index(plain["zh"]) + 1


def chosen(choices: Sequence[Mapping[str, Any]], message: NormalizedMessage) -> Mapping[str, Any] | None:
    """What the message's number stands for among the choices that were offered."""
    number = choice_number(message)
    return choices[number - 1] if number is not None and number <= len(choices) else None
