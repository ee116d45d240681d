"""What a customer prefers from now on, in Chinese and English; and what only sounds like it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from agents.remembering.lexicon import rules
from agents.remembering.preferences import MOST, preferences


def _heard(text: str) -> dict[str, str]:
    """Subject to "+likes -avoids", `*` for no preference any more."""
    return {
        one.subject: "*" if one.clears else " ".join([*(f"+{x}" for x in one.likes), *(f"-{x}" for x in one.avoids)])
        for one in preferences(text)
    }


SENTENCES = yaml.safe_load(Path(__file__).with_name("preferences.yaml").read_text("utf-8"))


@pytest.mark.parametrize(("text", "subject", "wanted"), SENTENCES["kept"])
def test_what_is_meant_for_good_is_kept(text: str, subject: str, wanted: str) -> None:
    """A lasting wish is read with what is liked and what is not wanted, in both languages (R-003-24, case J07)."""
    assert {subject: wanted} == _heard(text)


@pytest.mark.parametrize("text", SENTENCES["not_kept"])
def test_what_is_not_meant_for_good_is_not_kept(text: str) -> None:
    """This once, the past, other people, questions and guesses: in doubt nothing is kept (R-003-24)."""
    assert {} == _heard(text)


def test_the_last_word_counts() -> None:
    """Who changes their mind in one message gets the last of it (case J07)."""
    assert {"carrier": "-sf"} == _heard("我喜欢发顺丰。算了，以后不要顺丰")


def test_a_long_text_costs_no_more_than_its_first_part() -> None:
    """What stands behind the first 2,000 characters is not read, whatever is there."""
    assert {} == _heard("啊" * MOST + "以后不要顺丰")


def test_options_do_not_overlap() -> None:
    """Every word of an option is found as that option: none hides another one."""
    for subject in rules().subjects:
        for value, names in subject.options.items():
            match = subject.pattern.search(names["zh"])
            assert match is not None, names
            assert value == match.lastgroup, names


def test_a_word_inside_another_is_none() -> None:
    """The carrier "sf" is not in "transfer", "in" not in "inside" (case F09 for Chinese neighbours: 用sf快递 is)."""
    assert {} == _heard("always transfer it")
    assert {"carrier": "+sf"} == _heard("以后都用sf快递")
    assert isinstance(rules().staff_promises, re.Pattern)


def test_every_name_is_words() -> None:
    """A bare `no` in YAML is False: what a customer is shown must be text, in both languages."""
    book = rules()
    tables = [book.names, book.flows, book.outcomes, book.promises, *(one.options for one in book.subjects),
              {one.name: one.names for one in book.subjects}]  # fmt: skip
    shown = [text for table in tables for names in table.values() for text in (names["zh"], names["en"])]

    assert [] == [text for text in shown if not isinstance(text, str) or not text]
