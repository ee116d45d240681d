"""Labelled sentences: the package's own are complete, and a user's table is checked line by line."""

from __future__ import annotations

from collections import Counter

import pytest

from agents.understanding.model.examples import (
    LANGUAGES,
    UNKNOWN,
    Example,
    ExampleError,
    data_hash,
    read_csv,
    shipped_examples,
)
from schemas.messages import INTENTS

LEAST = 40
SAID = [Example("en", "refund", "money back"), Example("zh", "refund", "退款")]


def test_every_intent_has_enough_sentences_in_both_languages() -> None:
    """Each intent but the bare answer stands in each language with at least 40 sentences, none twice (R-002-03)."""
    counts = Counter((example.language, example.intent) for example in shipped_examples())
    texts = Counter((example.language, example.text.lower()) for example in shipped_examples())

    assert {(language, intent) for language in LANGUAGES for intent in INTENTS if intent != "inform"} == set(counts)
    assert min(counts.values()) >= LEAST
    assert [] == [text for text, count in texts.items() if count > 1]


def test_the_hash_is_of_the_content() -> None:
    """The same sentences in another order have the same hash, and another label has another."""
    assert data_hash(SAID) == data_hash(reversed(SAID))
    assert data_hash(SAID) != data_hash([SAID[0], Example("zh", "return", "退款")])


def test_a_table_is_read() -> None:
    """Columns text and intent are needed, language is not, and the same row twice counts once."""
    rows = ["text,intent\n", '"well, hello",greeting\n', "bye,thanks\n", "bye,thanks\n"]

    assert (Example(UNKNOWN, "greeting", "well, hello"), Example(UNKNOWN, "thanks", "bye")) == read_csv(rows, "a.csv")
    assert (Example("zh", "thanks", "谢谢"),) == read_csv(["language,intent,text\n", "zh,thanks,谢谢\n"], "a.csv")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "a.csv: line 1: text: there is no such column, only nothing"),
        (["words,intent\n"], "a.csv: line 1: text: there is no such column, only words, intent"),
        (["text,intent\n", "hi,greeting\n", ",greeting\n"], "a.csv: line 3: text: is empty"),
        (["text,intent\n", "hi\n"], "a.csv: line 2: intent: '' is no name"),
        (["text,intent\n", "hi,Greeting!\n"], "a.csv: line 2: intent: 'Greeting!' is no name"),
        (["text,intent\n", "well, hello,greeting\n"], "a.csv: line 2: (row): has more fields"),
        (["text,intent\n", "hi,a\n", "hi,b\n"], "a.csv: line 3: intent: 'b', but line 2 has 'a'"),
        (["text,intent\n", '"hi,a\n'], "a.csv: line 1: (row): unexpected end of data"),
    ],
)
def test_a_wrong_table_names_line_and_field(rows: list[str], said: str) -> None:
    """An error of a user's data names the file, the line and the field (habit 3)."""
    with pytest.raises(ExampleError) as error:
        read_csv(rows, "a.csv")

    assert str(error.value).startswith(said)
