"""The evaluation of privacy itself: its values are what they say, and it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.privacy.canaries import CARRIERS, KINDS, canaries
from bench.privacy.run import leaks, lost, readable_after
from bench.privacy.world import run
from memory import masking
from memory.masking import mask


def test_every_canary_is_of_its_kind_and_unlike_all_others() -> None:
    """Check sums are right, kinds and ways all occur, and no value is there twice."""
    found = canaries(600)
    assert (set(KINDS), set(CARRIERS)) == ({one.kind for one in found}, {one.carrier for one in found})
    assert 600 == len({one.needle for one in found})
    missed = [one.text for one in found if one.kind not in [hit.kind for hit in mask(one.text)[1]]]
    assert [] == missed


def test_none_is_readable_each_is_given_back_and_none_is_left_when_forgotten(tmp_path: Path) -> None:
    """A small run of `make eval-privacy`: 0 leaks, all unsealed, 0 after forgetting (promise 9, X1)."""
    made = run(tmp_path, canaries(24))
    assert ([], []) == (leaks(made), lost(made))
    assert (0, 24) == readable_after(made)


def test_a_masking_that_misses_names_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the finder of names and addresses the run finds them on the topic and in the log."""
    monkeypatch.setattr(masking, "personal", lambda _: iter(()))
    made = run(tmp_path, canaries(24))
    found = leaks(made)
    assert {one.needle for one in made.canaries if one.kind in ("name", "address")} >= {value for _, value in found}
    assert {"channel.events", "log"} <= {place.split(":")[0] for place, _ in found}
