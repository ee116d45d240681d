"""A customer's profile as a prompt takes it: whole where it fits its budget, else the newest of it (R-003-22)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from memory.prompt import PROFILE_TOKENS
from memory.summaries import MOST_CHARS
from memory.tokens import count
from memory.windows import cut_to

ADDRESSES = 3
LINE_TOKENS = 60  # of one order, problem or address in a profile that does not fit whole
_REST_TOKENS = 60  # the line that counts what was left out


def summarised(profile: Mapping[str, Any], budget: int = PROFILE_TOKENS) -> dict[str, Any]:
    """The profile within the budget: all of it, or else its head, then orders and problems in turn, newest first.

    `left_out` counts the rest, orders by their status; nothing is left out silently.
    """
    if count(text_of(profile)) <= budget:
        return {**profile, "left_out": {}}
    addresses = [cut_to(one, LINE_TOKENS) for one in profile["addresses"][:ADDRESSES]]
    kept: dict[str, Any] = {**profile, "name": cut_to(profile["name"], LINE_TOKENS), "addresses": addresses,
                            "level": cut_to(profile["level"], LINE_TOKENS), "orders": [], "problems": []}  # fmt: skip
    orders = [{**one, "items": _short(one["items"])} for one in profile["orders"]]
    problems = [_short(one) for one in profile["problems"]]
    room = budget - _REST_TOKENS - count(text_of(kept))
    for place in range(max(len(orders), len(problems))):
        for name, line in (("orders", orders[place : place + 1]), ("problems", problems[place : place + 1])):
            cost = sum(count(_line(name, one)) + 1 for one in line)
            if line and cost <= room:
                kept[name] += line
                room -= cost
    kept["left_out"] = _left_out(profile, kept)
    return kept


def text_of(profile: Mapping[str, Any], known: Iterable[str] = ()) -> str:
    """The profile in lines; `known` is what the memory writer has learnt since, and stands before the shop's word."""
    head = [f"{name}: {profile[name]}" for name in ("name", "level") if profile.get(name)]
    left = ", ".join(f"{number} {name}" for name, number in (profile.get("left_out") or {}).items())
    rows = [_line(kind, one) for kind in ("addresses", "orders", "problems") for one in profile.get(kind, ())]
    return "\n".join([*head, *known, *rows, *([f"not shown: {left}"] if left else [])])


def _line(kind: str, one: Any) -> str:
    if kind == "orders":
        return f"order {one['order_id']} {one['status']}: {one['items']}"
    return f"{'address' if kind == 'addresses' else 'earlier'}: {one}"


def _short(text: str) -> str:
    return cut_to(text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 1].rstrip() + "…", LINE_TOKENS)


def _left_out(whole: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, int]:
    shown = {one["order_id"] for one in kept["orders"]}
    statuses = Counter(f"{one['status']} orders" for one in whole["orders"] if one["order_id"] not in shown)
    counts = {"problems": len(whole["problems"]) - len(kept["problems"]),
              "addresses": len(whole["addresses"]) - len(kept["addresses"])}  # fmt: skip
    return dict(statuses.most_common(4)) | {name: number for name, number in counts.items() if number}
