"""Sentiment and urgency on sentences that were labelled by hand (labelled_tone.yaml)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.agents.understanding.reader import read

FLOOR = 0.95
_FILE = Path(__file__).parent / "labelled_tone.yaml"


def _labelled(language: str) -> list[list[str]]:
    rows = [row.split(" | ", 2) for row in yaml.safe_load(_FILE.read_text("utf-8"))["sentences"]]
    return [row for row in rows if row[2].isascii() == (language == "en")]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_sentiment_is_read_as_people_read_it(language: str) -> None:
    """Of five feelings the labelled one is read in at least 95 of 100 sentences of each language (R-003-14)."""
    rows = _labelled(language)
    right = sum(feeling == read(text).sentiment for feeling, _, text in rows)

    assert len(rows) >= 50
    assert right >= FLOOR * len(rows)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_urgency_is_read_as_people_read_it(language: str) -> None:
    """Low, medium or high as labelled in at least 95 of 100 sentences of each language (R-002-03)."""
    rows = _labelled(language)

    assert sum(haste == read(text).urgency for _, haste, text in rows) >= FLOOR * len(rows)
