"""Drafts: what counts as a change, and that a replayed change gives the same bytes."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.bus import empty, pointer, unpointer
from schemas import codec
from schemas.state import Change, Diff
from schemas.step import MISSING, Draft, Input, look, put, same
from schemas.system import SystemEvent

T0 = 1_767_578_400_000


def draft(**anchor: Any) -> Draft:
    """A draft over a state whose memory holds these values."""
    state = empty("shop/web/c")
    state["memory"]["anchor"] = anchor
    state["now"] = T0
    return Draft(state, Input("system.events", 3, 7, T0 - 5, "shop/web/c", "e-1", "interlock.system.events.v1", None))


J03 = [(1, True), (0, False), (1, 1.0), (1.0, True), (None, False), ("1", 1), ([1], [True]), ({"a": 1}, {"a": 1.0})]


@pytest.mark.parametrize(("before", "after"), [pair for one, two in J03 for pair in ((one, two), (two, one))])
def test_j03_equal_in_python_is_a_change_in_json(before: Any, after: Any) -> None:
    """Case J03: 1, 1.0 and true are three values; each change between them is in the diff, and replays to the byte."""
    one = draft(value=before)
    one.set(after, "memory", "anchor", "value")
    decision = one.finish()
    ((path, old, value),) = decision.changes
    place = path[3:]  # an object over an object changes only the key that differs
    assert (look({"value": before}, ("value", *place)), look({"value": after}, ("value", *place))) == (old, value)
    stored = codec.encode(Change(path=pointer(path), before=old, after=value))
    change = orjson.loads(stored)
    replayed = put(one.origin, unpointer(change["path"]), change["after"])
    assert orjson.dumps(decision.state) == orjson.dumps(replayed)


def test_j03_no_change_is_no_diff() -> None:
    """Case J03: the same value again is no change."""
    one = draft(value={"a": [1, 1.0, True, None]})
    one.set({"a": [1, 1.0, True, None]}, "memory", "anchor", "value")
    assert () == one.finish().changes


VALUES: list[Any] = [None, True, False, 0, 1, 0.0, 1.0, "", "1", [], [0], [False], {}, {"a": 0}, {"a": None}]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(range(len(VALUES)), repeat=2)))
def test_j03_same_is_json_equality(left: int, right: int) -> None:
    """Case J03: two values are the same exactly when their JSON text is."""
    assert (orjson.dumps(VALUES[left]) == orjson.dumps(VALUES[right])) == same(VALUES[left], VALUES[right])


def test_null_and_missing_are_two_things() -> None:
    """A diff tells a value that became null from one that went, and the record keeps them apart byte for byte."""
    changes = (
        Change(path="/a", before=1, after=None),
        Change(path="/b", before=1),
        Change(path="/c", after=None),
    )
    written = [codec.encode(change) for change in changes]
    assert [
        b'{"path":"/a","before":1,"after":null}',
        b'{"path":"/b","before":1}',
        b'{"path":"/c","after":null}',
    ] == written
    assert [written[1]] == [codec.encode(Change.model_validate_json(written[1]))]


def test_a_diff_of_a_deletion() -> None:
    """Deleting gives a change without `after`; deleting what is not there gives none."""
    one = draft(value=1)
    one.delete("memory", "anchor", "value")
    one.delete("memory", "anchor", "other")
    ((path, before, after),) = one.finish().changes
    assert ("value", 1, MISSING) == (path[-1], before, after)
    assert "value" not in one.finish().state["memory"]["anchor"]


def test_a_missing_parent_comes_with_the_change() -> None:
    """A value below what is not there yet is one change at the first missing place."""
    one = draft()
    one.set(5, "memory", "anchor", "a", "b", "c")
    assert ((("memory", "anchor", "a"), MISSING, {"b": {"c": 5}}),) == one.finish().changes


def test_a_parents_change_covers_its_children() -> None:
    """Where a value and something inside it changed, the outer change says it all, once."""
    one = draft(value={"a": 1, "b": 2})
    one.set(9, "memory", "anchor", "value", "a")
    one.set([7], "memory", "anchor", "value")
    assert ((("memory", "anchor", "value"), {"a": 1, "b": 2}, [7]),) == one.finish().changes


def test_an_object_over_an_object_changes_what_differs() -> None:
    """Only the keys that differ are in the diff, in an order that every process gives (promise 5)."""
    one = draft(value={"a": 1, "b": 2, "c": {"d": 4, "e": 5}})
    one.set({"a": 1, "c": {"d": 4, "e": 6}, "f": 7}, "memory", "anchor", "value")
    changes = [(path[2:], before, after) for path, before, after in one.finish().changes]
    assert [(("value", "b"), 2, MISSING), (("value", "c", "e"), 5, 6), (("value", "f"), MISSING, 7)] == changes


def test_back_and_forth_is_no_change() -> None:
    """What a decision set and set back is not in its diff."""
    one = draft(value=1)
    one.set(2, "memory", "anchor", "value")
    one.set(1, "memory", "anchor", "value")
    assert () == one.finish().changes


def test_the_old_state_is_untouched() -> None:
    """A draft never changes the state that it began with."""
    one = draft(value={"a": [1]})
    before = orjson.dumps(one.origin)
    one.set([2], "memory", "anchor", "value", "a")
    one.set("x", "memory", "anchor", "new", "deep")
    one.delete("memory", "summaries")
    assert before == orjson.dumps(one.origin)


def test_now_never_goes_back() -> None:
    """Now is the later of the cause's append time and the state's last now (promise 5)."""
    assert T0 == draft().now


def test_ids_are_derived() -> None:
    """The same cause on the same state gives the same ids, in the same order (promise 5)."""
    one, two = draft(), draft()
    ids = [one.new_id("r"), one.new_id("r")]
    assert ids == [two.new_id("r"), two.new_id("r")]
    assert ids[0] != ids[1]


def test_effects_and_timers_are_state() -> None:
    """A declared effect and a deadline are changes like any other; a second settling says so (promise 6)."""
    one = draft()
    one.effect("call-1", "tool", key="k", timeout_ms=3000, deadline=T0 + 9, request={"tool": "t"})
    one.timer("delivery.resend:r-1", T0 + 30_000, {"attempt": 1})
    paths = [path for path, _, _ in one.finish().changes]
    assert [("pending", "call-1"), ("timers", "delivery.resend:r-1")] == paths
    assert [True, False] == [one.settle("call-1"), one.settle("call-1")]
    one.cancel("delivery.resend:r-1")
    assert () == one.finish().changes


def test_emits_have_ids_in_order() -> None:
    """Each emit's id is derived from conversation, version and index."""
    one = draft()
    event = SystemEvent(event_id="x", kind="checkpoint", subject="s", by="b", at=T0)
    first, second = one.emit("system.events", event), one.emit("system.events", event, key="shop/web/d")
    assert [".1.0", ".1.1"] == [first[-4:], second[-4:]]
    assert ["shop/web/c", "shop/web/d"] == [emit.key for emit in one.finish().emits]


def test_a_decision_needs_a_reason() -> None:
    """A diff without a reason is no diff (R-002-48)."""
    fields = {"conversation": "c", "base": 0, "version": 1, "session_id": None, "now": T0, "changes": [],
              "handled": {}, "unsent": 0, "reasons": [],
              "cause": {"topic": "plans", "partition": 0, "offset": 0, "time": T0, "id": "e", "type": "t"}}  # fmt: skip
    with pytest.raises(ValueError, match="reasons"):
        Diff.model_validate_json(orjson.dumps(fields))


KEYS = st.text(alphabet="ab~/", min_size=1, max_size=4)


@given(st.lists(KEYS, min_size=1, max_size=4), st.integers())
def test_what_is_put_is_found(path: list[str], value: int) -> None:
    """A value is found where it was put, also under keys with a slash or a tilde in them."""
    state = put({}, tuple(path), value)
    assert value == look(state, tuple(path))
    assert tuple(path) == unpointer(pointer(tuple(path)))
