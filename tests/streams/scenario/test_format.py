"""The scenario file is strict, and says where it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from streams.scenario.format import (
    Deadline,
    Recall,
    Say,
    Scenario,
    ScenarioError,
    Wait,
    load,
    load_folder,
    parse,
    refuse_unknown,
    setting_of,
)
from streams.settings import Settings

HEAD = "name: one\ntitle: One\nlanguage: en\nsender: c-1\n"
TAIL = "expect:\n  outcome: answered\n"


def _parse(steps: str, more: str = "") -> Scenario:
    return parse(f"{HEAD}{more}steps:\n{steps}{TAIL}", "one.yaml")


def test_short_forms_are_read() -> None:
    """A step is its name and one value, or its name and a mapping of fields."""
    scenario = _parse(
        "  - say: hello\n    id: a\n  - recall: a\n  - leave\n  - wait: {past: follow_up, ms: 5}\n  - come_back\n"
    )

    assert Say(kind="say", text="hello", id="a") == scenario.steps[0]
    assert Recall(kind="recall", of="a") == scenario.steps[1]
    assert Wait(kind="wait", ms=5, past="follow_up") == scenario.steps[3]
    assert ["say", "recall", "leave", "wait", "come_back"] == [step.kind for step in scenario.steps]


def test_words_are_text_as_they_stand() -> None:
    """A bare yes, number or date under `say` is what the customer writes, not what YAML makes of it."""
    steps = _parse("  - say: yes\n  - say: 0123\n  - say: 2026-01-05\n").steps

    assert ["yes", "0123", "2026-01-05"] == [step.text for step in steps if isinstance(step, Say)]


def test_conversation_is_the_one_key() -> None:
    """Shop, channel and sender make the key (promise 1); shop and channel have the demo's values by default."""
    assert "demo/web/c-1" == _parse("  - say: hello\n").conversation


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        ("  - shout: hello\n", "one.yaml: step 1: one of say, hear"),
        ("  - say: hello\n    recall: a\n", "one.yaml: step 1: one of say, hear"),
        ("  - say: hello\n  - wait: soon\n", "one.yaml: step 2, ms: "),
        ("  - say: hello\n  - wait: 3600001\n", "one.yaml: step 2, ms: "),
        ("  - say: hello\n    loud: true\n", "one.yaml: step 1, loud: "),
        ("  - say: hello\n  - hear: Not A Name\n", "one.yaml: step 2, template: "),
        ("  - recall: a\n", "one.yaml: step 1, of: no message 'a' was said before"),
        (
            "  - say: hello\n  - send_again: a\n",
            "one.yaml: step 2, of: no message 'a' was said before; said: \\['m1'\\]",
        ),
        ("  - rate: 6\n", "one.yaml: step 1, score: "),
        ("  - staff: dance\n", "one.yaml: step 1, does: "),
    ],
)
def test_bad_step_is_named(steps: str, fault: str) -> None:
    """The error names file, step and field."""
    with pytest.raises(ScenarioError, match=fault):
        _parse(steps)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[1, 2]\n", "one.yaml: a mapping with name, steps and expect is needed"),
        ("name: [\n", "one.yaml: line 2: not YAML"),
        (f"{HEAD}steps: []\n{TAIL}", "one.yaml: steps: "),
        (f"{HEAD}steps:\n  - say: hi\n", "one.yaml: expect: "),
        (f"{HEAD}mood: good\nsteps:\n  - say: hi\n{TAIL}", "one.yaml: mood: "),
        (f"{HEAD}steps:\n  - say: hi\nexpect:\n  outcome: fine\n", "one.yaml: expect/outcome: "),
        (
            f"{HEAD}steps:\n  - say: hi\n{TAIL}  refunds: [{{order_id: '1', amount_fen: 1.5}}]\n",
            "expect/refunds/0/amount_fen",
        ),
    ],
)
def test_bad_file_is_named(text: str, fault: str) -> None:
    """What is no YAML, lacks a part or has one too many says so, with the field."""
    with pytest.raises(ScenarioError, match=fault):
        parse(text, "one.yaml")


def test_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    """A path that can't be read is told in one line, not by a traceback."""
    with pytest.raises(ScenarioError, match=r"none\.yaml: can't be read"):
        load(tmp_path / "none.yaml")


def test_two_scenarios_of_one_customer_are_refused(tmp_path: Path) -> None:
    """Scenarios play at the same time, so each needs a conversation of its own."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"{HEAD}steps:\n  - say: hi\n{TAIL}".replace("one", name))

    with pytest.raises(ScenarioError, match="b: sender c-1 is also the customer of a"):
        load_folder(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """0 of 0 conversations as expected would look like success (promise 10)."""
    with pytest.raises(ScenarioError, match=r"there is no \*\.yaml in it"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (
            ("hear: refund.confirm", "hear: refund.confrm"),
            r"step 2: there is no template 'refund\.confrm'; did you mean refund\.con",
        ),
        (("says: [refund.confirm]", "says: [hello]"), r"expect/says: there is no template 'hello'"),
        (("says:", "never_says: [nope]\n  says:"), r"expect/never_says: there is no template 'nope'"),
    ],
)
def test_a_template_that_there_is_not_is_refused(edit: tuple[str, str], words: str) -> None:
    """Waiting for a wording that nobody can say would end in a time-out: it is told before anything is played."""
    text = TEMPLATES.replace(*edit)
    with pytest.raises(ScenarioError, match=words):
        refuse_unknown([parse(text, "own.yaml")], {"refund.confirm", "refund.success"})


def test_any_answer_is_no_template() -> None:
    """`hear: any` waits for whatever comes."""
    refuse_unknown([parse(TEMPLATES.replace("hear: refund.confirm", "hear: any"), "own.yaml")], {"refund.confirm"})


TEMPLATES = """
name: own
title: Own
language: en
sender: c-en-refund
steps:
  - say: refund please
  - hear: refund.confirm
expect:
  outcome: open
  says: [refund.confirm]
"""


def test_every_deadline_has_its_setting() -> None:
    """What a scenario can wait for is a setting of the product, in milliseconds."""
    for name in get_args(Deadline):
        assert isinstance(getattr(Settings(), setting_of(name)), int)
