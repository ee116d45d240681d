"""Misspelled words are recognised, and words of their own are not."""

from __future__ import annotations

import pytest

from agents.understanding.typos import near


@pytest.mark.parametrize("word", ["invoice", "Invoice", "invoce", "invocie", "invvoice", "receipts"])
def test_a_slip_keeps_the_word(word: str) -> None:
    """A letter more, less, another or swapped is a slip; a long word may have two."""
    assert near(word, ("invoice", "receipt"))


@pytest.mark.parametrize("word", ["voice", "involve", "boil", "i", ""])
def test_another_word_is_another_word(word: str) -> None:
    """What lies further away is another word, and short words have no slips to spare."""
    assert not near(word, ("for", "invoice"))
