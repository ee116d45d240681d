"""One past step on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.steps import NoStepError, past_step
from memory.tokens import count
from schemas.state import Diff

EXAMPLES = sorted(Path("schemas/examples/state.diffs/v1").glob("*.json"))


def register() -> list[Diff]:
    """The published examples as a register."""
    return [Diff.model_validate_json(path.read_bytes()) for path in EXAMPLES]


def test_a_step_is_fetched_by_its_version() -> None:
    """Reasons, what changed and what was emitted, within one recall's 200 tokens (R-000-26)."""
    diffs = register()
    step = past_step(diffs, diffs[-1].version)

    assert (diffs[-1].version, diffs[-1].cause.id) == (step.version, step.cause)
    assert [reason.rule for reason in diffs[-1].reasons] == [rule for rule, _ in step.reasons]
    assert 200 >= count(step.text)
    assert step.text.startswith(f"step {step.version}, because of")


def test_a_step_is_fetched_by_what_it_rests_on() -> None:
    """The id of a message or record that a reason cites leads to its step (R-000-26)."""
    diffs = register()
    cited = next(one for reason in diffs[0].reasons for one in reason.evidence)

    assert diffs[0].version == past_step(diffs, cited).version


def test_a_step_that_is_not_there_is_named() -> None:
    """Nothing is made up (R-000-26)."""
    with pytest.raises(NoStepError, match="no step 'm-none'"):
        past_step(register(), "m-none")
