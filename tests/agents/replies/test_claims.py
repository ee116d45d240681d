"""The claim gate: nothing is said to be done unless a success result shows it."""

from __future__ import annotations

import pytest

from agents.replies.claims import ClaimError, Proofs, render
from agents.replies.templates import load_templates
from schemas.delivery import EvidenceRef

TEMPLATES = load_templates()
PARAMS = {"order_id": "1001", "amount_fen": 5000, "refund_id": "rf-1", "left_fen": 100, "items": "杯子", "reason": "坏"}


def ref(number: str, kind: str = "tool_result") -> EvidenceRef:
    """One piece of evidence."""
    return EvidenceRef(kind=kind, id=number)  # type: ignore[arg-type]


def test_success_is_said_from_a_success_result() -> None:
    """With the success result of that tool in evidence, the success is said and marked as such (R-003-39)."""
    proofs = Proofs({"r-1": ("create_refund", "success")}, [ref("r-1")])

    message = render(TEMPLATES, "refund.success", "zh", PARAMS, proofs)

    assert "退款已受理：订单1001，金额50.00元，退款单号rf-1。" == message.text
    assert message.claims_success
    assert (ref("r-1"),) == message.evidence


@pytest.mark.parametrize("status", ["failure", "timeout", "unknown", "refused", "fallback", "cancelled"])
def test_any_other_outcome_says_no_success(status: str) -> None:
    """Case E07, R-002-28: a fallback, timeout or refusal never carries success wording."""
    proofs = Proofs({"r-1": ("create_refund", status)}, [ref("r-1")])

    with pytest.raises(ClaimError, match="claims the success of create_refund"):
        render(TEMPLATES, "refund.success", "zh", PARAMS, proofs)


def test_no_call_says_no_success() -> None:
    """Case E07: zero calls, no claim; a plan alone is no evidence of a fact."""
    for proofs in (Proofs(), Proofs({}, [ref("p-1", "task_plan")])):
        with pytest.raises(ClaimError, match="states facts without evidence"):
            render(TEMPLATES, "refund.success", "zh", PARAMS, proofs)


def test_another_tools_success_is_no_proof() -> None:
    """That the order could be read does not mean that money was refunded."""
    proofs = Proofs({"r-1": ("get_order", "success")}, [ref("r-1")])

    with pytest.raises(ClaimError, match="create_refund without"):
        render(TEMPLATES, "refund.success", "zh", PARAMS, proofs)


def test_made_up_evidence_is_refused() -> None:
    """Evidence is chosen from the results of this conversation only (R-004-16)."""
    proofs = Proofs({"r-1": ("create_refund", "success")}, [ref("r-1"), ref("r-2")])

    with pytest.raises(ClaimError, match="r-2, which is no result"):
        render(TEMPLATES, "refund.success", "zh", PARAMS, proofs)


def test_choices_are_numbered() -> None:
    """Choices stand under the text, in the language of the message."""
    proofs = Proofs({"r-1": ("get_order", "success")}, [ref("r-1")])

    message = render(TEMPLATES, "refund.confirm", "en", PARAMS, proofs)

    assert ["Confirm the refund", "Change something", "Don't refund"] == [one.label for one in message.choices]
    assert message.text.endswith("1. Confirm the refund\n2. Change something\n3. Don't refund")
    assert not message.claims_success


def test_choices_from_a_tool_are_text() -> None:
    """Labels that come from orders are cleaned like any parameter."""
    message = render(TEMPLATES, "common.choose_order", "zh", {}, Proofs(), ["1001\n杯子"])

    assert message.text.endswith("1. 1001 杯子")


def test_only_declared_parameters_leave() -> None:
    """What the template does not name is not in the message's parameters either."""
    message = render(TEMPLATES, "refund.ask_reason", "zh", {**PARAMS, "secret": "x"}, Proofs())

    assert {"order_id": "1001"} == message.params


def test_made_up_write_is_refused() -> None:
    """That something is noted is said only of a write of this conversation's memory (R-004-15, R-004-16)."""
    cited = [ref("w-1", "memory_write")]

    noted = render(TEMPLATES, "memory.noted", "en", {"noted": "x"}, Proofs({}, cited, frozenset({"w-1"})))

    assert "Noted: x." == noted.text
    with pytest.raises(ClaimError, match="w-1, which is no write"):
        render(TEMPLATES, "memory.noted", "en", {"noted": "x"}, Proofs({}, cited))
    with pytest.raises(ClaimError, match="facts without evidence of kind memory_write"):
        render(TEMPLATES, "memory.noted", "en", {"noted": "x"}, Proofs())
