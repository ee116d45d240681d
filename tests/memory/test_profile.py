"""A profile within its budget of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.profile import summarised, text_of
from memory.tokens import count

TEXTS = st.text(max_size=120)
ORDERS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({
    "order_id": st.integers(1000, 9999).map(str), "items": TEXTS, "status": st.sampled_from(["paid", "closed"]),
})  # fmt: skip
PROFILES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({
    "name": TEXTS, "level": TEXTS, "addresses": st.lists(TEXTS, max_size=5), "problems": st.lists(TEXTS, max_size=20),
    "orders": st.lists(ORDERS, max_size=20, unique_by=lambda one: str(one["order_id"])),
})  # fmt: skip


def _large(orders: int = 60, problems: int = 20) -> dict[str, Any]:
    return {
        "name": "王*", "level": "gold", "addresses": [f"上海市第{number}区****" for number in range(8)],
        "orders": [{"order_id": str(2000 - number), "status": "delivered" if number % 3 else "closed",
                    "items": f"white Cup M x{number}, " + "blue Coat L x1, " * 6} for number in range(orders)],
        "problems": [f"refund {1900 - number}: accepted after a review by a colleague" for number in range(problems)],
    }  # fmt: skip


def test_what_fits_stays_whole() -> None:
    """A profile within 800 tokens is not touched (R-003-23)."""
    small = _large(orders=2, problems=1)

    assert {**small, "left_out": {}} == summarised(small)


def test_a_large_profile_is_summarised() -> None:
    """3,000 tokens become at most 800: the newest orders and problems, the rest counted (R-003-22, R-003-23)."""
    large = _large()
    short = summarised(large)

    assert count(text_of(large)) > 3_000
    assert 600 < count(text_of(short)) <= 800
    assert large["orders"][0]["order_id"] == short["orders"][0]["order_id"]
    assert large["problems"][0][:40] == short["problems"][0][:40]
    assert 3 == len(short["addresses"])
    assert "not shown: " in text_of(short)


@settings(max_examples=40, deadline=None)
@given(PROFILES)
def test_no_profile_is_above_its_budget_and_nothing_is_left_out_silently(profile: Mapping[str, Any]) -> None:
    """Whatever a CRM says fits 800 tokens, and what is kept and what is counted are all that there was (promise 10)."""
    short = summarised(profile)
    left = sum(number for name, number in short["left_out"].items() if name.endswith("orders"))

    assert count(text_of(short)) <= 800
    assert len(profile["orders"]) == len(short["orders"]) + left
    assert len(profile["problems"]) == len(short["problems"]) + short["left_out"].get("problems", 0)


@pytest.mark.parametrize("known", [(), ("快递偏好：顺丰", "收货地址：上海市****")])
def test_what_was_learnt_since_stands_first(known: tuple[str, ...]) -> None:
    """The memory writer's values come before the shop's, so that the newer word is read first (R-003-22)."""
    lines = text_of(_large(1, 0), known).split("\n")

    assert ["name: 王*", "level: gold", *known, "address: 上海市第0区****"] == lines[: 3 + len(known)]
