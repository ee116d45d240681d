"""The state bus and the diffs that are its history."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.bus import (
    RECENT_MAX,
    RECENT_MS,
    DiffMismatchError,
    StateBus,
    VersionConflictError,
    apply,
    decode,
    empty,
    encode,
    pointer,
    readable,
    recent_key,
    revert,
    unpointer,
    verify,
)
from schemas.state import ConversationState
from schemas.step import MISSING, Draft, Input

NAME = "shop-1/web/wang"
T0 = 1_767_578_400_000


def cause(version: int, **other: Any) -> Input:
    """The input that leads to a version."""
    named = {"topic": "channel.events", "offset": version, "time": T0 + version, "id": f"ev-{version}", **other}
    return Input(partition=0, key=NAME, type="t", value=None, **named)


def diff_of(draft: Draft, **other: Any) -> dict[str, Any]:
    """A draft's decision as it stands on state.diffs, through JSON."""
    decision, base = draft.finish(), draft.version - 1
    changes = [
        {"path": pointer(path)}
        | ({} if before is MISSING else {"before": before})
        | ({} if after is MISSING else {"after": after})
        for path, before, after in decision.changes
    ]
    origin = {"topic": draft.cause.topic, "partition": 0, "offset": draft.cause.offset, "time": draft.cause.time,
              "id": draft.cause.id, "position": draft.cause.position}  # fmt: skip
    diff = {"conversation": draft.conversation, "base": base, "version": base + 1, "now": draft.now, "cause": origin,
            "changes": changes, "emits": [], "whole": None, **other}  # fmt: skip
    return decode(orjson.dumps(diff))


def history(*edits: tuple[tuple[str, ...], Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """States and diffs of a conversation whose decisions each set (or with MISSING delete) one path."""
    states, diffs = [empty(NAME)], []
    for version, (path, value) in enumerate(edits, start=1):
        draft = Draft(states[-1], cause(version))
        draft.set(value, *path)
        diffs.append(diff_of(draft))
        states.append(apply(states[-1], diffs[-1]))
    return states, diffs


# -- compare-and-set ------------------------------------------------------------------------------------


def test_of_two_writers_one_wins() -> None:
    """Two decisions on version 3: one becomes version 4, the other is a conflict and changes nothing (case J01)."""
    states, _ = history(*((("memory", "anchor", "n"), number) for number in range(3)))
    bus = StateBus()
    bus.load(NAME, encode(states[3]))
    winner, loser = ({**states[3], "version": 4, "memory": {"anchor": {"by": who}, "summaries": []}} for who in "ab")
    bus.write(winner, 3)
    with pytest.raises(VersionConflictError) as conflict:
        bus.write(loser, 3)
    assert (NAME, 3, 4) == (conflict.value.conversation, conflict.value.expected, conflict.value.found)
    assert winner == bus.read(NAME)


@pytest.mark.parametrize(("version", "expected"), [(2, 0), (1, 1), (0, 0), (5, 4)])
def test_a_version_goes_up_by_one_from_what_is_there(version: int, expected: int) -> None:
    """A new conversation starts at version 1 after 0; anything else is a conflict (promise 3)."""
    bus = StateBus()
    with pytest.raises(VersionConflictError):
        bus.write({**empty(NAME), "version": version}, expected)
    assert bus.read(NAME) is None


def test_a_gap_is_refused_and_named() -> None:
    """A diff that does not follow names conversation, its base and the version found (promise 3, R-002-14)."""
    states, diffs = history(*((("memory", "anchor", "n"), number) for number in range(3)))
    with pytest.raises(VersionConflictError, match="shop-1/web/wang: expected version 2, found 1"):
        apply(states[1], diffs[2])
    with pytest.raises(VersionConflictError):
        apply(states[3], diffs[2])
    with pytest.raises(VersionConflictError):
        apply(states[1], {**diffs[1], "version": 3})


def test_cold_and_hot_states_read_the_same() -> None:
    """A state that left the hot ones is read back as it was written, and encodes to the same bytes (R-002-46)."""
    bus = StateBus(hot=2)
    for number in range(5):
        bus.write({**empty(f"shop-1/web/{number}"), "version": 1}, 0)
    assert 5 == len(bus)
    assert {f"shop-1/web/{number}" for number in range(5)} == set(bus)
    for number in range(5):
        expected = {**empty(f"shop-1/web/{number}"), "version": 1}
        assert expected == bus.read(f"shop-1/web/{number}")
        assert encode(expected) == bus.encoded(f"shop-1/web/{number}")


def test_a_loaded_state_replaces_the_decoded_one() -> None:
    """What recovery loads is what is read, also when an older state was decoded before (R-002-15)."""
    bus = StateBus()
    bus.write({**empty(NAME), "version": 1}, 0)
    bus.load(NAME, encode({**empty(NAME), "version": 7}))
    assert 7 == (bus.read(NAME) or {})["version"]
    assert 1 == len(bus)


def test_a_closed_conversation_leaves_memory() -> None:
    """Nothing of a dropped conversation stays, hot or cold (R-002-15)."""
    bus = StateBus(hot=1)
    for name in ("a/b/c", "a/b/d"):
        bus.write({**empty(name), "version": 1}, 0)
        bus.drop(name)
    bus.drop("never/was/here")
    assert (0, [], None) == (len(bus), list(bus), bus.read("a/b/c"))
    with pytest.raises(KeyError):
        bus.encoded("a/b/c")


def test_the_empty_state_is_the_published_model() -> None:
    """Version 0 has every section and passes the contract of state.updates (R-002-12, R-002-46)."""
    assert 0 == ConversationState.model_validate_json(encode(empty(NAME))).version


# -- diffs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), (1, 1.0), (True, 1), (1.0, 1), (0, None), ("1", 1)])
def test_equal_in_python_is_not_equal_in_json(old: object, new: object) -> None:
    """1, 1.0 and true are different values: each change is in a diff, and replay gives the same bytes (case J03)."""
    path = ("memory", "anchor", "confirmed")
    states, diffs = history((path, old), (path, new))
    assert [{"path": "/memory/anchor/confirmed", "before": old, "after": new}] == diffs[1]["changes"]
    assert type(new) is type(diffs[1]["changes"][0]["after"])
    assert encode(states[2]) == encode(apply(decode(encode(states[1])), diffs[1]))


@pytest.mark.parametrize(("old", "new"), [([1], [True]), ({"a": [0, {}]}, {"a": [False, {}]}), ([], {}), ({}, None)])
def test_nested_values_are_compared_as_json_too(old: object, new: object) -> None:
    """A difference deep inside a list or an object gives a diff (case J03)."""
    _, diffs = history((("memory", "anchor", "x"), old), (("memory", "anchor", "x"), new))
    assert 1 == len(diffs[1]["changes"])


@pytest.mark.parametrize(
    ("text", "shown", "path"),
    [
        ("/memory/anchor/get~1an~0order", "memory › anchor › get/an~order", ("memory", "anchor", "get/an~order")),
        ("/memory/anchor/", 'memory › anchor › ""', ("memory", "anchor", "")),
        ("/memory/anchor/~01", "memory › anchor › ~1", ("memory", "anchor", "~1")),
        ("/memory/anchor/a b", "memory › anchor › a b", ("memory", "anchor", "a b")),
    ],
)
def test_keys_with_slashes_tildes_and_nothing(text: str, shown: str, path: tuple[str, ...]) -> None:
    """A key with "/" or "~", or an empty one, goes round and is shown readably (case J05)."""
    states, diffs = history((path, 1), (path, 2), (path, MISSING))
    assert [text] * 3 == [diff["changes"][0]["path"] for diff in diffs]
    assert (path, shown) == (unpointer(text), readable(text))
    assert [1, 2, None] == [state["memory"]["anchor"].get(path[2]) for state in states[1:]]


@given(st.lists(st.text(max_size=5), min_size=1, max_size=5).map(tuple))
def test_every_path_goes_round(path: tuple[str, ...]) -> None:
    """A path written as a pointer reads back as itself (case J05)."""
    assert path == unpointer(pointer(path))


def test_a_null_and_nothing_are_different() -> None:
    """Setting a value to null and deleting it are two changes, forwards and backwards (R-002-14)."""
    path = ("memory", "anchor", "x")
    states, diffs = history((path, None), (path, MISSING))
    assert [{"path": "/memory/anchor/x", "after": None}] == diffs[0]["changes"]
    assert [{"path": "/memory/anchor/x", "before": None}] == diffs[1]["changes"]
    assert {"x": None} == revert(states[2], diffs[1])["memory"]["anchor"]


def test_a_diff_of_another_history_is_found() -> None:
    """A value before that the state does not have is a diff of another history, and is named (promise 3)."""
    states, diffs = history((("memory", "anchor", "x"), 1), (("memory", "anchor", "x"), 2))
    verify(states[1], diffs[1])
    changed = {**states[1], "memory": {"anchor": {"x": True}, "summaries": []}}
    with pytest.raises(DiffMismatchError, match=r"version 2 .* '/memory/anchor/x'"):
        verify(changed, diffs[1])
    with pytest.raises(DiffMismatchError):
        verify(empty(NAME), diffs[1])


def test_a_session_begins_from_its_whole_state() -> None:
    """A session's first diff carries the state that it starts from: readable without any diff before it (R-002-17)."""
    states, diffs = history((("memory", "anchor", "x"), 1), (("memory", "anchor", "x"), 2))
    whole = {**diffs[1], "whole": states[1]}
    verify(states[1], whole)
    assert states[2] == apply(states[1], whole)
    assert states[1] == revert(states[2], whole)


def test_reverting_refuses_another_version() -> None:
    """A diff undoes only the version that it made (promise 3)."""
    states, diffs = history((("memory", "anchor", "x"), 1), (("memory", "anchor", "x"), 2))
    with pytest.raises(VersionConflictError):
        revert(states[1], diffs[1])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~ ", max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
PATHS = st.lists(st.sampled_from(["", "a", "b", "a/b", "~"]), min_size=1, max_size=3).map(
    lambda parts: ("memory", "anchor", *parts)
)
DECISIONS = st.lists(st.lists(st.tuples(PATHS, JSON | st.just(MISSING)), max_size=5), max_size=6)


@given(DECISIONS)
def test_applying_a_diff_gives_the_drafts_state(decisions: list[list[tuple[tuple[str, ...], Any]]]) -> None:
    """What a step saw as its result is what every reader of its diff gets, byte for byte (promise 4, R-002-14)."""
    state = empty(NAME)
    for version, edits in enumerate(decisions, start=1):
        draft = Draft(state, cause(version))
        for path, value in edits:
            draft.set(value, *path)
        diff = diff_of(draft)
        verify(state, diff)
        after = apply(state, diff)
        assert orjson.dumps(draft.get("memory"), option=orjson.OPT_SORT_KEYS) == orjson.dumps(
            after["memory"], option=orjson.OPT_SORT_KEYS
        )
        assert encode(after) == encode(apply(decode(encode(state)), diff))
        assert state["memory"] == revert(after, diff)["memory"]
        state = after


@given(DECISIONS)
def test_each_before_equals_the_earlier_after(decisions: list[list[tuple[tuple[str, ...], Any]]]) -> None:
    """Whoever reads the register alone finds every value before where the diffs before left it (promise 3)."""
    live = follower = empty(NAME)
    for version, edits in enumerate(decisions, start=1):
        draft = Draft(live, cause(version))
        for path, value in edits:
            draft.set(value, *path)
        diff = diff_of(draft)
        verify(follower, diff)
        live, follower = apply(live, diff), apply(follower, diff)
    assert encode(live) == encode(follower)


@given(JSON)
def test_encoding_a_decoded_state_gives_equal_bytes(value: object) -> None:
    """A state read from a snapshot and written again is the same file (R-002-13)."""
    encoded = encode({**empty(NAME), "memory": value})
    assert encoded == encode(decode(encoded))


# -- the runtime's bookkeeping --------------------------------------------------------------------------


def after(state: dict[str, Any], version: int, **other: Any) -> dict[str, Any]:
    """The state after an input that changed nothing else."""
    emits = other.pop("emits", [])
    return apply(state, diff_of(Draft(state, cause(version, **other)), emits=emits))


def test_producers_ids_are_remembered_for_a_day() -> None:
    """An id is known for 24 hours from its append time, then forgotten (case A15)."""
    state = after(empty(NAME), 1, time=T0, id="old")
    state = after(state, 2, time=T0 + RECENT_MS, id="new")
    assert {recent_key("channel.events", "old"): T0, recent_key("channel.events", "new"): T0 + RECENT_MS} == state[
        "runtime"
    ]["recent"]
    state = after(state, 3, time=T0 + RECENT_MS + 1, id="newest")
    assert recent_key("channel.events", "old") not in state["runtime"]["recent"]


def test_no_more_than_256_ids_are_remembered() -> None:
    """The oldest ids go first, so that a state stays small (R-002-15)."""
    state = empty(NAME)
    for version in range(1, RECENT_MAX + 11):
        state = after(state, version)
    recent = state["runtime"]["recent"]
    assert RECENT_MAX == len(recent)
    assert recent_key("channel.events", "ev-10") not in recent
    assert {recent_key("channel.events", f"ev-{version}") for version in range(11, RECENT_MAX + 11)} == set(recent)


def test_positions_of_emits_are_remembered_by_source_and_topic() -> None:
    """Heard positions, handled offsets and sent positions follow from the diff alone (promise 4)."""
    state = after(empty(NAME), 1, topic="tools.results", offset=9, position=("shop-1/web/li", 4, 2))
    assert {"tools.results|shop-1/web/li": [4, 2]} == state["runtime"]["heard"]
    assert {} == state["runtime"]["recent"]
    emits = [{"topic": topic, "key": NAME} for topic in ("plans", "x", "plans")]
    state = after(state, 2, topic="tools.results", offset=5, emits=emits)
    assert {"tools.results": 9} == state["runtime"]["at"]
    assert {"plans": [2, 2], "x": [2, 1]} == state["runtime"]["sent"]
