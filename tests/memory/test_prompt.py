"""The budget of a prompt."""

from __future__ import annotations

import pytest

from memory.prompt import PromptError, assemble
from memory.tokens import count
from memory.windows import choose
from tests.memory.talk import parcels


def test_each_part_keeps_to_its_budget() -> None:
    """Profile 800, facts three of 200, and what was shortened is told (R-003-23, R-000-27)."""
    window = choose(parcels(2), "好", new_intent=False)
    prompt = assemble("rules", "会员资料" * 1_000, ["事实" * 400, "b", "c", "d"], window)

    assert 800 >= prompt.tokens["profile"] == count(prompt.profile) > 790
    assert 3 == len(prompt.recalled)
    assert all(200 >= count(fact) for fact in prompt.recalled)
    assert (("profile", "recalled"), window.text) == (prompt.shortened, prompt.window)


def test_what_fits_is_left_as_it_is() -> None:
    """Nothing is shortened that need not be (R-003-23)."""
    prompt = assemble("rules", "gold member", ["a"], choose([], "hi", new_intent=False))

    assert ("rules", "gold member", ("a",), ()) == (prompt.system, prompt.profile, prompt.recalled, prompt.shortened)


def test_a_system_message_above_its_budget_is_refused() -> None:
    """The rules are never cut without a word (R-003-23)."""
    with pytest.raises(PromptError, match="at most 1200; shorten it"):
        assemble("规则" * 1_000, "", [], choose([], "hi", new_intent=False))
