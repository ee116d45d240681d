"""The lexicon files: complete, compiled, and errors that name the entry."""

from __future__ import annotations

import pytest

from agents.understanding.fold import fold
from agents.understanding.intents import COURTESIES, TASKS
from agents.understanding.lexicon import LexiconError, View, Words, lexicon

INTENTS = TASKS | COURTESIES | {"confirm", "deny", "policy", "haste", "unasked", "meddled"}


def test_every_intent_has_its_words_in_both_languages() -> None:
    """Chinese and English both know every intent (inform is what has slots and no words)."""
    words = lexicon()
    known = {script: {pattern.intent for pattern, _ in words.patterns[script]} for script in (0, 1)}
    whole = {pattern.intent for pattern in words.whole}

    assert INTENTS | {"no_number"} == known[0] | whole == known[1] | whole


def test_what_suppresses_is_an_intent() -> None:
    """The table of intents that explain another's words away names only intents that exist."""
    named = {intent for key, values in lexicon().suppresses.items() for intent in (key, *values)}

    assert named <= INTENTS


def test_the_lexicon_is_compiled_once() -> None:
    """No message pays for reading YAML."""
    assert lexicon() is lexicon()


def test_a_wrong_pattern_names_its_entry() -> None:
    """An error in a lexicon says which entry is wrong (habit 3)."""
    with pytest.raises(LexiconError, match=r"intents.yaml: refund.strong"):
        Words("intents.yaml: refund.strong", ["退("])


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("退款", (0,)),
        ("refund", (1,)),
        ("退refund", (0, 1)),
        ("订单OD100001", (0,)),
        ("k", (1,)),
        ("1001", (1,)),
        ("👍", (1,)),
    ],
)
def test_only_the_scripts_of_a_text_are_tried(text: str, scripts: tuple[int, ...]) -> None:
    """A Chinese message does not pay for the English patterns."""
    assert scripts == View(text).scripts


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("退~到账", "退款到账", True),
        ("退~到账", "退款，钱到账", False),
        ("^客服$", "好，客服", True),
        ("^客服$", "客服好", False),
        ("\\border", "的order", True),
        ("[^不]退", "不退", False),
    ],
)
def test_signs_in_patterns(pattern: str, text: str, *, found: bool) -> None:
    """`~` stays in its clause, `^` and `$` are the clause's, a word ends where Chinese begins (case F09)."""
    assert found is (Words("test", [pattern]).search(View(fold(text).text)) is not None)
