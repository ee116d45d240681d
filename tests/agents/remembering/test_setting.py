"""What a member of staff sets or sets back in a conversation's memory, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agents.remembering.lexicon import rules
from agents.remembering.step import make_step
from memory.bus import empty
from schemas.cloudevents import root
from schemas.events import Seal
from schemas.memory import MemoryRestore, MemoryWrite
from schemas.people import HumanDecision
from schemas.step import Decision, Draft, Input, State

WHO, T0 = "demo/web/u-1", 1_767_578_400_000
KEY = "preference/carrier"


def decide(state: State, **wanted: Any) -> Decision:
    """One decision of a member of staff."""
    one = MemoryRestore(**{"key": f"{WHO}/{KEY}", "head": None, "now": None, "value": {"summary": "by hand"}, **wanted})
    decision = HumanDecision(decision_id="d-1", kind="memory", by="ann", decided_at=T0, memory=(one,))
    cause = Input("human.decisions", 0, state["version"], T0, WHO, "d-1", "t", decision, root("d-1"))
    draft = Draft(state, cause)
    make_step(lambda *_: Seal(key_id="k", nonce="", sealed=""))(draft, cause)
    return draft.finish()


def refused(decision: Decision) -> str:
    """Why nothing was written."""
    assert () == tuple(decision.emits)
    (reason,) = [text for rule, text, _ in decision.reasons if rule == "memory.refused"]
    return reason


def test_what_staff_set_is_a_write_of_theirs() -> None:
    """It names who set it and what stood before (R-004-08, R-004-11)."""
    decision = decide(empty(WHO))
    (write,) = [emit.value for emit in decision.emits]
    assert isinstance(write, MemoryWrite)
    assert ("staff", None, {"summary": "by hand"}) == (write.source, write.value_before, write.value_after)
    assert "by ann" in write.trigger_context


def test_a_key_of_another_customer_is_refused() -> None:
    """A decision that was filed under this conversation changes no other one's memory, and says so (promise 2)."""
    assert "demo/web/u-2/preference/carrier is another customer's" == refused(
        decide(empty(WHO), key=f"demo/web/u-2/{KEY}")
    )


def test_what_was_written_since_is_not_overwritten() -> None:
    """A rollback knows the write that it saw; when the customer spoke meanwhile, their word stands (R-004-11)."""
    state = decide(empty(WHO)).state
    write_id = state["memory"]["known"][KEY]["write_id"]
    assert f"{KEY} was written again since, by {write_id}" == refused(
        decide(state, head="w-older", value={"summary": "other"})
    )
    assert 1 == len(decide(state, head=write_id, value={"summary": "other"}).emits)


def test_what_has_that_value_already_is_no_write() -> None:
    """Carried out twice it is one write (R-004-11)."""
    state = decide(empty(WHO)).state
    assert f"{KEY} has that value already" == refused(decide(state, head=state["memory"]["known"][KEY]["write_id"]))


@pytest.mark.parametrize("text", ["1" * 20_000, "会" * 20_000, "i will " * 2_800, "3个工作" * 5_000])
def test_a_colleagues_long_text_is_searched_in_bounded_time(text: str) -> None:
    """While one word is looked for, no heartbeat is sent: 20,000 characters of anything cost little (promise 10)."""
    started = time.perf_counter()
    rules().staff_promises.search(text)
    assert time.perf_counter() - started < 0.5
