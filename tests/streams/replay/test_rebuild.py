"""A conversation's state at any version, from what the topics still hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from memory.bus import DiffMismatchError, empty
from streams.commands.state import _text, compare
from streams.replay.find import NotFoundError
from streams.replay.rebuild import (
    Difference,
    ForkError,
    History,
    VersionGoneError,
    differences,
    history_of,
    read_history,
    readable_versions,
    state_at,
)
from streams.runtime.ports import Record
from tests.streams.replay.recorded import REFUND, Recorded, refund, two_sessions


def history(recorded: Recorded) -> History:
    """As the commands have it."""
    return read_history(recorded.source, REFUND)


def version_of(one: Record) -> int:
    """The version that a record of state.diffs or state.updates made."""
    version: int = orjson.loads(one.value or b"").get("version", 0)
    return version


def kept(recorded: Recorded, diffs: range, updates: tuple[int, ...] = ()) -> Recorded:
    """The log when retention and compaction left these versions only, and no session's whole state."""

    def keep(one: Record) -> bool:
        if one.key != REFUND.encode() or one.topic not in ("state.diffs", "state.updates"):
            return False
        return version_of(one) in (updates if one.topic == "state.updates" else diffs)

    found = recorded.only(keep)
    plain = (replace(one, value=orjson.dumps({**orjson.loads(one.value or b""), "whole": None}))
             if one.topic == "state.diffs" else one for one in found.records)  # fmt: skip
    return replace(found, records=tuple(plain))


def test_the_newest_state_is_that_of_the_checkpoint() -> None:
    """What the register gives is what the owner wrote to state.updates, byte for byte (promise 4, R-002-14)."""
    recorded = refund()
    for update in recorded.values("state.updates", REFUND):
        rebuilt = state_at(history(kept(recorded, range(1, 1_000))), update["version"])
        assert orjson.dumps(update) == orjson.dumps(rebuilt)


def test_every_version_can_be_read_from_the_diffs_alone() -> None:
    """Without any checkpoint each version follows from the one before (R-002-14, R-002-17)."""
    found = history(kept(refund(), range(1, 1_000)))
    assert [(0, found.newest)] == readable_versions(found)
    assert [*range(found.newest + 1)] == [state_at(found, version)["version"] for version in range(found.newest + 1)]
    assert empty(REFUND) == state_at(found, 0)


def test_a_checkpoint_stands_for_the_diffs_before_it() -> None:
    """With the early diffs gone, versions from a checkpoint on are read forwards (R-002-15, case C15)."""
    whole = refund()
    version = min(version_of(one) for one in whole.of("state.updates", REFUND) if version_of(one) > 1)
    late = history(kept(whole, range(version + 1, 1_000), (version,)))
    assert [(version, late.newest)] == readable_versions(late)
    assert state_at(history(whole)) == state_at(late)


def test_an_earlier_version_is_read_backwards_from_a_later_state() -> None:
    """Compacted away on state.updates, it is read from the diffs, as it was (R-002-14, case D11)."""
    whole = refund()
    version = min(version_of(one) for one in whole.of("state.updates", REFUND) if version_of(one) > 4)
    late = history(kept(whole, range(3, version + 1), (version,)))
    back, expected = state_at(late, 3), dict(state_at(history(whole), 3))
    del expected["runtime"], expected["now"]
    assert expected == back


def test_a_session_starts_from_its_whole_state() -> None:
    """With everything before the second session gone, its versions are still read (R-002-17)."""
    recorded = two_sessions()
    second = recorded.sessions(REFUND)[1]
    first = next(diff for diff in recorded.values("state.diffs", REFUND) if diff["session_id"] == second)
    gone = recorded.only(lambda one: one.topic == "state.diffs" and version_of(one) >= first["version"])
    assert first["whole"] == state_at(history(gone), first["base"])
    assert state_at(history(recorded)) == state_at(history(gone))


@pytest.mark.parametrize(
    ("version", "words"), [(4, "version 4 is gone.*6 to 8"), (9_999, "no version 9999; the newest is 8")]
)
def test_a_version_that_is_gone_is_said(version: int, words: str) -> None:
    """Never another version than the one asked for: what the topics still hold is named (promise 10, case D11)."""
    found = history(kept(refund(), range(7, 9)))
    found.states[6] = state_at(history(refund()), 6)
    with pytest.raises(VersionGoneError, match=words):
        state_at(found, version)


def test_a_gap_between_diffs_is_not_jumped() -> None:
    """With one diff missing, versions behind the gap are gone, not guessed (promise 3)."""
    recorded = kept(refund(), range(1, 1_000)).only(lambda one: version_of(one) != 5)
    found = history(recorded)
    assert 4 == state_at(found, 4)["version"]
    with pytest.raises(VersionGoneError, match="version 6 is gone; the topics still hold 0 to 4"):
        state_at(found, 6)


def test_a_version_that_stands_twice_is_named() -> None:
    """Two diffs of one version are two owners: both offsets are said, and no state is shown (promise 3)."""
    recorded = refund()
    fourth = next(one for one in recorded.of("state.diffs", REFUND) if version_of(one) == 4)
    with pytest.raises(ForkError, match=rf"version 4 stands twice .* at offsets {fourth.offset} and 500"):
        history_of(REFUND, [*recorded.of("state.diffs", REFUND), replace(fourth, offset=500)])


def test_a_diff_of_another_history_is_refused() -> None:
    """A before that is not the earlier after stops the reading (promise 3)."""
    found = history(kept(refund(), range(1, 1_000)))
    found.diffs[3]["changes"].append({"path": "/planning/turns", "before": 77, "after": 1})
    with pytest.raises(DiffMismatchError):
        state_at(found, 3)


def test_an_unknown_conversation_is_said() -> None:
    """No state is made up for a conversation that never was (promise 10)."""
    with pytest.raises(NotFoundError, match="demo/web/nobody: no such conversation"):
        read_history(refund().source, "demo/web/nobody")


def test_a_difference_names_decisions_reasons_and_values() -> None:
    """Between two versions: each decision with cause and rules, and each value before and after (R-002-14)."""
    found = compare(history(refund()), 0, 2)
    assert [1, 2] == [one["version"] for one in found["decisions"]]
    assert "channel.events 10:0" == found["decisions"][0]["cause"]
    assert {"path": "/planning/turns", "before": 0, "after": 1} in found["changes"]
    told = "\n".join(_text(found))
    for words in ("because of channel.events 10:0: perception.session", "planning › turns: 0 → 1"):
        assert words in told


def test_a_difference_reads_both_ways() -> None:
    """From the later to the earlier version before and after change places (R-002-14)."""
    forwards, backwards = compare(history(refund()), 1, 5), compare(history(refund()), 5, 1)
    assert forwards["decisions"] == backwards["decisions"]
    there = {one["path"]: (one.get("before"), one.get("after")) for one in forwards["changes"]}
    back = {one["path"]: (one.get("after"), one.get("before")) for one in backwards["changes"]}
    assert there == back
    assert there


def test_versions_without_a_difference_say_so() -> None:
    """The same version twice differs in nothing (R-002-14)."""
    assert "no value differs" in _text(compare(history(refund()), 3, 3))[-1]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": True}, [Difference(("a",), 1, True)]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, [Difference(("a", "b"), 1, None, has=False),
                                             Difference(("a", "c"), None, 1, had=False)]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [Difference(("a", "1", "b"), 2, 3)]),
        ({"a": [1, 2]}, {"a": [1]}, [Difference(("a",), [1, 2], [1])]),
        ({"a": None}, {}, [Difference(("a",), None, None, has=False)]),
        ({"a": {}}, {"a": {}}, []),
        ({"a": {}}, {"a": []}, [Difference(("a",), {}, [])]),
    ],
)  # fmt: skip
def test_differences_are_json_differences(before: Any, after: Any, found: list[Difference]) -> None:
    """1 and true differ, null and nothing differ, and paths go down to the value (case J03)."""
    assert found == differences(before, after)
