"""What came of a conversation is read from its records, and each difference from the script is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from schemas.tools import PROFILE
from streams.scenario.expect import Observation, Row, differences
from streams.scenario.format import Expect, Refund, Say, Scenario


def _scenario(**expect: Any) -> Scenario:
    return Scenario(
        name="one", title="One", language="en", sender="c-1", steps=(Say(kind="say", text="hi"),),
        expect=Expect(**{"outcome": "answered", **expect}),
    )  # fmt: skip


def _message(number: int, template: str = "greeting") -> Row:
    return {"message_id": f"m-{number}", "template_id": template}


def _seen(*templates: str, **records: Sequence[Row]) -> Observation:
    messages = [_message(number, template) for number, template in enumerate(templates, 1)]
    topics = {name.replace("_", "."): list(rows) for name, rows in records.items()}
    return Observation({"actions.outbound": messages, **topics})


def _effect(amount: int = 100) -> dict[str, Any]:
    return {"kind": "refund", "order_id": "1001", "amount_fen": amount}


OPEN = {"plan_id": "p", "flow": "refund", "status": "open"}
FAILED = {**OPEN, "status": "failed"}


@pytest.mark.parametrize(
    ("outcome", "records"),
    [
        ("open", {}),
        ("handed_over", {"human_requests": [{"kind": "handover"}], "plans": [FAILED]}),
        ("cancelled", {"plans": [OPEN, {**OPEN, "status": "cancelled"}]}),
        ("abandoned", {"plans": [OPEN]}),
        ("explained", {"plans": [OPEN, FAILED]}),
    ],
)
def test_outcome_follows_from_the_records(outcome: str, records: dict[str, Any]) -> None:
    """A hand-over beats all, and a plan counts by its last version."""
    assert outcome == _seen(**records).outcome


def test_effect_in_the_shop_decides_the_outcome() -> None:
    """A refund in the shop's ledger is a refunded conversation, whatever the messages claim."""
    claimed, done = _seen("refund.done"), _seen("refund.done")
    done.effects.append(_effect())

    assert "answered" == claimed.outcome
    assert "refunded" == done.outcome


def test_refund_done_twice_is_a_difference() -> None:
    """The shop must hold each expected refund exactly once."""
    scenario = _scenario(outcome="refunded", refunds=(Refund(order_id="1001", amount_fen=100),))
    seen = Observation(effects=[_effect(), _effect()])

    assert ["refund ('1001', 100): 2 times, expected 1"] == differences(scenario, seen)
    assert ["refund ('1001', 100): 0 times, expected 1"] == differences(scenario, Observation())[1:]
    assert [] == differences(scenario, Observation(effects=[_effect()]))


def test_unexpected_refund_is_a_difference() -> None:
    """What the script does not name must not happen."""
    found = differences(_scenario(outcome="refunded"), Observation(effects=[_effect(7)]))

    assert ["refund ('1001', 7): 1 times, expected 0"] == found


def test_templates_must_come_in_order() -> None:
    """Named templates come in their order, others between them allowed; a forbidden one is told."""
    seen = _seen("refund.ask_order", "greeting", "refund.done")

    assert [] == differences(_scenario(says=("refund.ask_order", "refund.done")), seen)
    assert (
        "refund.ask_order not said in its turn"
        in differences(_scenario(says=("greeting", "refund.ask_order")), seen)[0]
    )
    assert ["refund.done was said"] == differences(_scenario(never_says=("refund.done",)), seen)


def test_resend_is_no_new_message() -> None:
    """A message that was sent again counts once, by its id (R-002-31)."""
    seen = Observation({"actions.outbound": [_message(1, "a"), _message(2, "b"), _message(1, "a")]})

    assert ["a", "b"] == seen.templates
    assert [] == differences(_scenario(max_messages=2), seen)
    assert ["2 messages, at most 1"] == differences(_scenario(max_messages=1), seen)


def test_intents_must_be_understood_in_order() -> None:
    """Intents are compared as the pipeline understood them."""
    seen = _seen("x", messages_normalized=[{"intent": "refund"}, {"intent": "deny"}])

    assert [] == differences(_scenario(intents=("refund", "deny")), seen)
    assert "intent refund not understood in its turn" in differences(_scenario(intents=("deny", "refund")), seen)[0]


def test_delivery_is_a_floor() -> None:
    """Every message reaches at least the expected state."""
    states = [{"message_id": "m-1", "state": "sent"}, {"message_id": "m-1", "state": "read"}]
    seen = _seen("x", delivery_states=states)

    assert [] == differences(_scenario(delivery="displayed"), seen)
    assert ["1 of 1 messages did not reach read"] == differences(
        _scenario(delivery="read"), _seen("x", delivery_states=states[:1])
    )
    assert ["0 of 0 messages did not reach read"] == differences(_scenario(delivery="read"), _seen("x"))


def test_health_counts_by_last_revision() -> None:
    """A window's score is that of its last revision, and lies in the expected range."""
    scores = [{"window_start": 1, "score": 20}, {"window_start": 1, "score": 90}]

    assert [] == differences(_scenario(health=(80, 100)), _seen("x", feedback_health=scores))
    assert ["health 20 outside 80..100"] == differences(
        _scenario(health=(80, 100)), _seen("x", feedback_health=scores[:1])
    )


def _write(number: int, key: str, after: Any = "x") -> Row:
    return {"write_id": f"w-{number}", "key": f"demo/web/c-1/{key}", "value_after": after}


def _profile(*facts: Row) -> Row:
    return {"tool": PROFILE, "data": {"facts": list(facts)}}


def test_what_is_remembered_is_what_the_register_says() -> None:
    """A key counts when it was written with a value, by kind and subject (R-004-08)."""
    seen = _seen("greeting", memory_writes=[_write(1, "preference/carrier"), _write(2, "item/current", None)])

    assert [] == differences(_scenario(remembers=("preference/carrier",)), seen)
    assert ["item/current not remembered; remembered: preference/carrier"] == differences(
        _scenario(remembers=("item/current",)), seen
    )


def test_what_is_recalled_came_from_the_stores() -> None:
    """A fact of a session's profile counts by its write in the register; what nobody applied is not recalled."""
    writes = [_write(1, "preference/carrier")]
    fact = {"key": "preference/carrier", "write_id": "w-1"}
    wanted = _scenario(recalls=("preference/carrier",))

    assert [] == differences(wanted, _seen("hi", memory_writes=writes, tools_results=[_profile(), _profile(fact)]))
    for facts in ([], [{**fact, "write_id": "w-9"}]):
        assert ["preference/carrier not recalled in a later session; recalled: nothing"] == differences(
            wanted, _seen("hi", memory_writes=writes, tools_results=[_profile(*facts)])
        )
