"""Business rules that read a tool's successful result: pure, by name, used by the flows (R-003-17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_CHOICES = 5  # orders offered in one message


@dataclass(frozen=True, slots=True)
class Outcome:
    """The event for the flow, the code that picks the wording, and slots that follow from the result."""

    event: str
    code: str = ""
    slots: Mapping[str, Any] = field(default_factory=dict)


Slots = Mapping[str, Any]
Data = Mapping[str, Any]
Check = Callable[[Slots, Data, int], Outcome]


def order_text(order: Data) -> str:
    """The items of an order in words, as the shop names them: "A x2, B x1"."""
    parts = [f"{item.get('name', '')} x{item.get('quantity', 1)}" for item in order.get("items", [])[:MAX_CHOICES]]
    return ", ".join(parts) or str(order.get("order_id", ""))


def refundable(slots: Slots, data: Data, now: int) -> Outcome:
    """The customer may have this much of this order back now; else the code says why not (R-003-17)."""
    left = data["amount_fen"] - data["refunded_fen"]
    facts = {"items": order_text(data), "left_fen": left, "status": data["status"]}
    # Before the period: "nothing is left" is true for ever, and the more useful word.
    if left <= 0:
        return Outcome("violates", "already_refunded", facts)
    if data["status"] == "closed":
        return Outcome("violates", "closed", facts)
    if data["refundable_until"] < now:
        return Outcome("violates", "out_of_period", facts)
    amount = slots.get("asked_fen")  # what the customer named; without it, all that is left
    if amount is not None and amount > left:
        return Outcome("over_amount", "over_amount", facts)
    if amount is not None and amount <= 0:
        return Outcome("over_amount", "no_amount", facts)
    return Outcome("ok", "", {**facts, "amount_fen": left if amount is None else amount})


def changeable(slots: Slots, data: Data, _now: int) -> Outcome:
    """The parcel has not left yet. `goes_to` is all that would be changed, so that the yes is to all of it."""
    goes_to = ", ".join(slots[name] for name in ("address", "phone") if slots.get(name))
    facts = {"items": order_text(data), "status": data["status"], "goes_to": goes_to}
    if data["status"] == "paid":
        return Outcome("ok", "", facts)
    return Outcome("violates", "closed" if data["status"] == "closed" else "already_shipped", facts)


def choose_order(slots: Slots, data: Data, _now: int) -> Outcome:
    """The customer's own orders as numbered choices; `none` when there are none."""
    known = [order for order in data["orders"] if order.get("order_id")]
    # By what the customer called the item, where that tells orders apart; else all, so that they can still choose.
    orders = ([order for order in known if _holds(order, slots)] or known)[:MAX_CHOICES]
    choices = [{"label": f"{one['order_id']} {order_text(one)}", "slot": "order_id", "value": one["order_id"]}
               for one in orders]  # fmt: skip
    return Outcome("ok" if choices else "none", "" if choices else "no_orders", {"choices": choices})


def _holds(order: Data, slots: Slots) -> bool:
    """The order has the item that was named: by its number, or by what the shop calls such a thing."""
    sku, category = str(slots.get("sku_id") or "").casefold(), slots.get("category")
    items = order.get("items", [])
    if sku:
        return any(str(item.get("sku_id", "")).casefold() == sku for item in items)
    return category is not None and any(item.get("category") == category for item in items)


def tracking(_slots: Slots, data: Data, _now: int) -> Outcome:
    """Where the parcel is: carrier, number, and the latest event in both languages."""
    facts = {"carrier": data["carrier"] or "", "tracking_no": data["tracking_no"] or "", "status": data["status"]}
    if not data["events"]:
        return Outcome("ok", "no_events", facts)
    last = data["events"][-1]
    return Outcome("ok", "", {**facts, "event_zh": last.get("text_zh", ""), "event_en": last.get("text_en", "")})


def refund_state(_slots: Slots, data: Data, _now: int) -> Outcome:
    """How much of the order was refunded so far."""
    code = "refunded" if data["refunded_fen"] else ""
    return Outcome("ok", code, {"items": order_text(data), "refunded_fen": data["refunded_fen"]})


def refund_left(_slots: Slots, data: Data, now: int) -> Outcome:
    """How much could be refunded now, by the order itself."""
    left = data["amount_fen"] - data["refunded_fen"]
    over = left <= 0 or data["status"] == "closed" or data["refundable_until"] < now
    return Outcome("ok", "none_left" if over else "", {"items": order_text(data), "left_fen": max(left, 0)})


def known_order(_slots: Slots, data: Data, _now: int) -> Outcome:
    """The order is the customer's: a person goes on with it, since no flow can."""
    return Outcome("ok", "for_a_person", {"items": order_text(data), "status": data["status"]})


def level(_slots: Slots, data: Data, _now: int) -> Outcome:
    """The customer's level, for a computed estimate."""
    return Outcome("ok", "", {"level": data["level"]})


def refund_accepted(slots: Slots, data: Data, _now: int) -> Outcome:
    """The shop accepted exactly what was confirmed; another order or amount is not known to be right."""
    # Not a failure: the shop did something, only not what was confirmed. A person has to look.
    if data["order_id"] != slots["order_id"] or data["amount_fen"] != slots["amount_fen"]:
        return Outcome("uncertain", "uncertain")
    return Outcome("ok", "", {"refund_id": data["refund_id"]})


CHECKS: Mapping[str, Check] = {
    "refundable": refundable,
    "changeable": changeable,
    "choose_order": choose_order,
    "tracking": tracking,
    "refund_state": refund_state,
    "refund_left": refund_left,
    "known_order": known_order,
    "level": level,
    "refund_accepted": refund_accepted,
}
