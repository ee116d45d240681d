"""Business rules over tool results."""

from __future__ import annotations

from typing import Any

import pytest

from agents.flows.checks import CHECKS, MAX_CHOICES, order_text
from tests.agents.support import T0, order, parcel


@pytest.mark.parametrize(("event", "code", "slots", "changes"), [
    ("ok", "", {}, {}),
    ("ok", "", {"asked_fen": 19900}, {}),
    ("over_amount", "over_amount", {"asked_fen": 19901}, {}),
    ("over_amount", "over_amount", {"asked_fen": 9951}, {"refunded_fen": 9950}),
    ("over_amount", "no_amount", {"asked_fen": 0}, {}),
    ("violates", "already_refunded", {}, {"refunded_fen": 19900}),
    ("violates", "out_of_period", {}, {"refundable_until": T0 - 1}),
    ("ok", "", {}, {"refundable_until": T0}),
    ("violates", "closed", {}, {"status": "closed"}),
])  # fmt: skip
def test_what_may_be_refunded(event: str, code: str, slots: dict[str, Any], changes: dict[str, Any]) -> None:
    """Not refunded before, in its period, and no more than is left, each with its own code (R-003-17)."""
    outcome = CHECKS["refundable"](slots, {**order(), **changes}, T0)

    assert (event, code) == (outcome.event, outcome.code)


def test_the_amount_is_what_is_left_unless_less_is_asked() -> None:
    """Without an amount, all that was not refunded yet; with one, exactly that."""
    partly = order(refunded_fen=9900)

    assert 10000 == CHECKS["refundable"]({}, partly, T0).slots["amount_fen"]
    assert 5000 == CHECKS["refundable"]({"asked_fen": 5000}, partly, T0).slots["amount_fen"]


@pytest.mark.parametrize(("event", "code", "status"), [
    ("ok", "", "paid"),
    ("violates", "already_shipped", "shipped"),
    ("violates", "already_shipped", "delivered"),
    ("violates", "closed", "closed"),
])  # fmt: skip
def test_when_an_address_may_change(event: str, code: str, status: str) -> None:
    """Only before the parcel leaves."""
    outcome = CHECKS["changeable"]({}, order(status=status), T0)

    assert (event, code) == (outcome.event, outcome.code)


def test_orders_become_numbered_choices() -> None:
    """At most five, each standing for its order number."""
    data = {"orders": [order(str(number)) for number in range(1001, 1009)]}

    choices = CHECKS["choose_order"]({}, data, T0).slots["choices"]

    assert MAX_CHOICES == len(choices)
    assert {"label": "1001 保温杯 x1", "slot": "order_id", "value": "1001"} == choices[0]


def test_no_orders_is_said() -> None:
    """An empty list is an event of its own."""
    assert "none" == CHECKS["choose_order"]({}, {"orders": []}, T0).event


def test_the_latest_event_is_told() -> None:
    """Carrier, number and the last event in both languages; without events that is said."""
    outcome = CHECKS["tracking"]({}, parcel(), T0)

    assert ("SF", "SF123") == (outcome.slots["carrier"], outcome.slots["tracking_no"])
    assert ("已到达上海", "Arrived in Shanghai") == (outcome.slots["event_zh"], outcome.slots["event_en"])
    assert "no_events" == CHECKS["tracking"]({}, {**parcel(), "events": []}, T0).code


def test_what_was_refunded_is_told() -> None:
    """A refund on record and none have different wording."""
    assert "refunded" == CHECKS["refund_state"]({}, order(refunded_fen=1), T0).code
    assert "" == CHECKS["refund_state"]({}, order(), T0).code


@pytest.mark.parametrize(("event", "data"), [
    ("ok", {"order_id": "1001", "amount_fen": 100}),
    ("uncertain", {"order_id": "1001", "amount_fen": 99}),
    ("uncertain", {"order_id": "1002", "amount_fen": 100}),
])  # fmt: skip
def test_the_shop_must_have_accepted_what_was_confirmed(event: str, data: dict[str, Any]) -> None:
    """An answer for another order or amount is no known success (R-003-39)."""
    slots = {"order_id": "1001", "amount_fen": 100}

    assert event == CHECKS["refund_accepted"](slots, {"refund_id": "rf-1", **data}, T0).event


def test_an_order_without_items_is_named_by_its_number() -> None:
    """There is always something to call an order by."""
    assert "1001" == order_text({"order_id": "1001", "items": []})
    assert "A x2, B x1" == order_text({"items": [{"name": "A", "quantity": 2}, {"name": "B"}]})
