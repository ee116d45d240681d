"""From a state and an input to a whole decision."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.bus import apply, empty
from schemas.state import Diff
from schemas.step import Draft, Input, Step
from streams.runtime.decide import AHEAD, REDELIVERED, REPEAT, StepFailedError, decide, standing
from streams.runtime.table import Row
from tests.streams.runtime.support import WHO, event, plan, rows


def _input(offset: int = 0, text: str = "hello", **values: Any) -> Input:
    number = values.pop("number", offset)
    return Input(topic="channel.events", partition=1, offset=offset, time=1_767_578_400_000, key=WHO,
                 id=f"ev-{number}", type="t", value=event(number, text=text), **values)  # fmt: skip


def test_diff_names_everything_that_happened() -> None:
    """A diff carries cause, base, version, changes before and after, reasons and emits (promise 3, R-002-14)."""
    decided = decide(rows()[:1], empty(WHO), _input(text="plan"))

    diff = decided.diff
    assert (0, 1) == (diff["base"], diff["version"])
    assert {"path": "/memory/summaries", "before": [], "after": ["plan"]} in diff["changes"]
    assert ["test.heard"] == [reason["rule"] for reason in diff["reasons"]]
    assert [("plans", WHO, [0, 0])] == [(emit["topic"], emit["key"], emit["previous"]) for emit in diff["emits"]]
    Diff.model_validate_json(orjson.dumps(diff | {"handled": {}, "unsent": 0}))


def test_same_state_and_input_decide_the_same() -> None:
    """Two decisions on the same state and input are equal byte for byte (promise 5)."""
    first, second = (decide(rows()[:1], empty(WHO), _input(text="plan")) for _ in range(2))

    assert orjson.dumps(first.diff) == orjson.dumps(second.diff)


def test_emit_names_the_one_before_it() -> None:
    """The second emit on a topic points at the first, over decisions and within one (section 3a, emits)."""

    def two(draft: Draft, _: Input) -> None:
        draft.emit("plans", plan("one"))
        draft.emit("plans", plan("two"))

    table = [Row("two", ("channel.events",), two, "", "", "")]
    first = decide(table, empty(WHO), _input(0))
    second = decide(table, first.after, _input(1))

    assert [[0, 0], [1, 0]] == [emit["previous"] for emit in first.diff["emits"]]
    assert [[1, 1], [2, 0]] == [emit["previous"] for emit in second.diff["emits"]]


def test_emits_to_another_key_are_a_row_of_their_own() -> None:
    """A reader sees the emits to its own key alone, so none points at one to another key (3a, emits; R-003-05)."""

    def both(draft: Draft, _: Input) -> None:
        for key in (None, "demo/web/root", "demo/web/other"):
            draft.emit("plans", plan("one"), key=key)

    table = [Row("both", ("channel.events",), both, "", "", "")]
    first = decide(table, empty(WHO), _input(0))
    second = decide(table, first.after, _input(1))

    assert [[0, 0]] * 3 == [emit["previous"] for emit in first.diff["emits"]]
    assert [[1, 0], [1, 1], [1, 2]] == [emit["previous"] for emit in second.diff["emits"]]


def test_producers_id_is_decided_once() -> None:
    """The same id at another offset changes nothing, and the register says so (cases A15, C11)."""
    first = decide(rows()[:1], empty(WHO), _input(0))
    again = decide(rows()[:1], first.after, _input(1, number=0))

    assert ["runtime.duplicate"] == [reason["rule"] for reason in again.diff["reasons"]]
    assert [] == again.diff["changes"]


def test_record_without_value_runs_no_step() -> None:
    """A null asks for nothing: recorded, acknowledged, no step sees it (case C09)."""
    cause = Input(topic="channel.events", partition=1, offset=3, time=1, key=WHO, id="x", type="null", value=None)

    assert "runtime.null" == decide(rows()[:1], empty(WHO), cause).diff["reasons"][0]["rule"]


def test_failing_step_is_named() -> None:
    """A step that raises is our bug: the error names the row, and not the customer's words."""
    with pytest.raises(StepFailedError, match="step notes failed: LookupError") as caught:
        decide(rows()[:1], empty(WHO), _input(text="boom"))

    assert "boom" not in str(caught.value)


@pytest.mark.parametrize(
    ("position", "previous", "expected"),
    [
        (("a", 3, 0), (2, 1), REPEAT),
        (("a", 4, 0), (3, 0), None),
        (("a", 5, 0), (4, 0), AHEAD),
        (("b", 1, 0), (0, 0), None),
        (("b", 2, 0), (1, 0), AHEAD),
    ],
)
def test_emit_is_taken_in_its_order(position: Any, previous: Any, expected: str | None) -> None:
    """Not above the last position: a repeat; predecessor not handled: left aside (promise 4)."""
    state = empty(WHO)
    state["runtime"] = {**state["runtime"], "heard": {"channel.events|a": [3, 0]}}

    assert standing(state, _input(9, position=position, previous=previous)) == expected


def test_offset_that_was_handled_is_a_repeat() -> None:
    """A redelivered record is known by its offset, whatever its id (case C11)."""
    after = decide(rows()[:1], empty(WHO), _input(7)).after

    assert standing(after, _input(7, number=99)) == REDELIVERED
    assert standing(after, _input(8)) is None


def test_session_begins_with_the_whole_state() -> None:
    """The first diff of a session carries the state before it, so that replay can start there."""

    def begin(draft: Draft, _: Input) -> None:
        draft.set({"id": "s-1", "number": 1}, "session")

    table = [Row("begin", ("channel.events",), begin, "", "", "")]
    first = decide(table, empty(WHO), _input(0))
    second = decide(table, first.after, _input(1))

    assert first.diff["whole"] == empty(WHO)
    assert second.diff["whole"] is None


@given(st.lists(st.sampled_from(["hello", "plan", "timer", "call"]), max_size=12))
def test_diffs_join_up(texts: list[str]) -> None:
    """Applied one after another, diffs give the state after each; every before is the earlier after (promise 3)."""
    state = empty(WHO)
    for offset, text in enumerate(texts):
        decided = decide(rows()[:1], state, _input(offset, text))
        for change in decided.diff["changes"]:
            assert change.get("before") == _at(state, change["path"])
        state = apply(state, orjson.loads(orjson.dumps(decided.diff)))
        assert orjson.dumps(state) == orjson.dumps(decided.after)


def _at(state: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        state = state.get(part) if isinstance(state, dict) else None
    return state


def test_clear_text_reaches_only_the_row_that_may_open_it() -> None:
    """Of two rows on one topic the one that may not open seals sees none, not through the draft either (promise 9)."""
    seen: dict[str, Any] = {}

    def look(name: str) -> Step:
        def step(draft: Draft, cause: Input) -> None:
            seen[name] = (cause.clear, draft.cause.clear)

        return step

    table = [Row("opens", ("channel.events",), look("opens"), "", "", "", opens_seal=True),
             Row("reads", ("channel.events",), look("reads"), "", "", "")]  # fmt: skip
    decide(table, empty(WHO), _input(clear={"text": "13800000000"}))

    assert {"opens": ({"text": "13800000000"}, None), "reads": (None, None)} == seen
