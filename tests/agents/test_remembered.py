"""Results that nobody asked for, broken ones and late ones: what is remembered of a customer is not theirs to set."""

from __future__ import annotations

from typing import Any

import pytest

from agents.remembered import make_step, profile_text
from memory.bus import empty
from schemas.step import Draft, Input
from schemas.tools import PROFILE, ToolResult

WHO = "demo/web/u-1"
GOOD = {"profile": {"name": "王*", "level": "gold", "addresses": [], "problems": [],
                    "orders": [{"order_id": "1001", "status": "paid", "items": "Cup x1"}]}, "facts": []}  # fmt: skip
BROKEN: tuple[dict[str, Any], ...] = (
    {}, {"profile": {}}, {"profile": [], "facts": []}, {**GOOD, "facts": [{"key": "k"}]}, {**GOOD, "facts": 3},
    {**GOOD, "unavailable": ["crm"]}, {**GOOD, "profile": {**GOOD["profile"], "orders": [1]}},  # type: ignore[dict-item]
)  # fmt: skip


def _told(data: dict[str, Any], *, asked: bool = True, state: dict[str, Any] | None = None) -> Draft:
    """The decision on a result with this data."""
    before = dict(state or empty(WHO))
    if asked:
        before["pending"] = {"profile-s": {"kind": "profile"}}
    result = ToolResult(result_id="profile-s:r", call_id="profile-s", tool=PROFILE, status="success", data=data,
                        finished_at=1_767_578_400_000)  # fmt: skip
    cause = Input("tools.results", 0, 1, 1_767_578_400_000, WHO, "r-1", "t", result)
    draft = Draft(before, cause)
    make_step(2_000)(draft, cause)
    return draft


def _rules(draft: Draft) -> list[str]:
    return [rule for rule, _, _ in draft.finish().reasons]


def test_a_result_that_nobody_asked_for_changes_nothing() -> None:
    """A profile that somebody publishes, or one that comes twice, is not believed (promise 6)."""
    draft = _told(GOOD, asked=False)

    assert ["memory.profile_repeated"] == _rules(draft)
    assert [] == list(draft.finish().changes)


@pytest.mark.parametrize("data", BROKEN)
def test_a_broken_answer_is_no_profile(data: dict[str, Any]) -> None:
    """The question is over, the record says that the answer was broken, and nothing of it is kept (promise 10)."""
    draft = _told(data)

    assert ["memory.profile_unavailable"] == _rules(draft)
    assert [("pending", "profile-s")] == [path for path, _, _ in draft.finish().changes]


def test_the_text_of_a_prompt_lays_what_was_learnt_over_the_record() -> None:
    """The prompt's profile has the memory writer's values, without those that were taken back (R-003-22, R-003-23)."""
    known = {"preference/carrier": {"value": {"summary": "快递偏好：顺丰"}}, "address/delivery": {"value": None}}
    state = {**empty(WHO), "memory": {"anchor": {}, "summaries": [], "known": known}}
    after = _told(GOOD, state=state).finish().state

    assert "name: 王*\nlevel: gold\n快递偏好：顺丰\norder 1001 paid: Cup x1" == profile_text(after)
    assert "" == profile_text(empty(WHO))
