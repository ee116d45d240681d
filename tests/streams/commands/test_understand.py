"""`interlock understand`: the message with its evidence, and what decided."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from streams.cli import build
from streams.commands.understand import spans
from tests.agents.support import message


def run(*words: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(build(), ["understand", *words])
    assert 0 == done.exit_code, done.output
    return done.stdout


def test_spans_stand_under_their_words() -> None:
    """Each field is shown under the words that it was read from; Chinese characters take two columns (R-002-48)."""
    lines = run("我要退1001").splitlines()

    assert "我要退1001" == lines[0]
    assert "      ^^^^ order_id=1001 (3-7)" in lines
    assert any(line.startswith("intent") and line.endswith("refund") for line in lines)


def test_what_is_sensitive_is_hidden() -> None:
    """A phone is shown masked, at its place (promise 9)."""
    told = run("我的手机13800000000，我要退款")

    assert "138****0000" in told
    assert "13800000000" not in told


def test_explain_shows_window_and_what_decided() -> None:
    """With what was said before, --explain names the window, the reference, and the rules and features (R-000-27)."""
    told = run("它到哪了", "--after", "查1001", "--explain")

    assert "window.strong: points to something: 它" in told
    assert "perception.reference_filled: pronoun: order 1001 of m-1" in told
    assert "reference=1001 (pronoun)" in told
    assert "rule, strong: 到哪了" in told


def test_the_classifiers_features_are_shown() -> None:
    """The grams that spoke for an intent stand beside its share, where a classifier is used."""
    assert "classifier: " in run("我的包裹怎么还没动静", "--explain")


@pytest.mark.parametrize("explain", [True, False])
def test_json_is_the_message(explain: bool) -> None:  # noqa: FBT001
    """--json prints the NormalizedMessage, and with --explain its reasons and grounds beside it."""
    told = json.loads(run("where is order OD100008?", "--json", *(["--explain"] if explain else [])))

    assert ("logistics", "OD100008") == (told["intent"], told["target_item"]["order_id"])
    assert explain == ("grounds" in told)
    assert explain == any(one["rule"] == "perception.read" for one in told.get("reasons", []))


def test_breaks_and_marks_keep_their_place() -> None:
    """A line break or an invisible character does not shift what stands behind it."""
    shown = list(spans("退款\n1001", message("退款\n1001", "refund", evidence=())))

    assert ["退款⏎1001"] == shown


def test_nothing_to_read_is_no_error() -> None:
    """Blank text is a message without a known wish."""
    assert "out_of_scope" in run(" ")


def test_words_about_the_past_are_read_without_any_store() -> None:
    """A message that would be held until memory answers is shown as this machine reads it."""
    assert "intent           refund" in run("退上周买的那个")
