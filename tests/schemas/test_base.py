"""The value types that all contracts share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from schemas.base import ConversationId, Fen, Id, KeyPart, Model, Name, Share, conversation_id, fen, readable, yuan


def takes(kind: Any, value: object) -> bool:
    """Whether a strict field of that type takes the value."""
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


@given(st.integers(0, 10**10))
def test_money_is_exact(amount: int) -> None:
    """Fen to yuan and back is the same number: money never passes through a float."""
    assert amount == fen(yuan(amount))


@pytest.mark.parametrize(("text", "amount"), [("50", 5000), ("50.5", 5050), ("50.05", 5005), ("0", 0), ("007", 700)])
def test_yuan_texts(text: str, amount: int) -> None:
    """Decimal yuan text is exact fen."""
    assert amount == fen(text)


@pytest.mark.parametrize(
    "text", ["", "1e3", "inf", "nan", "1_000", "50.001", "-5", "5.", ".5", "５０", " 5", "5\n", 5, 5.0]
)
def test_no_amount(text: Any) -> None:
    """What is not an exact amount is no amount."""
    with pytest.raises(ValueError, match="not an exact amount"):
        fen(text)


@pytest.mark.parametrize(
    "value", ["", "a/b", "~a", " a", "a ", "a\x00", "a\n", "a\u200b", "a\u2028", "x" * 65, 5, None]
)
def test_no_part_of_a_key(value: object) -> None:
    """A part of the key can't be empty, change the key's shape, look like a system conversation, or hide characters."""
    assert not takes(KeyPart, value)


@pytest.mark.parametrize("value", ["a", "顾客-1", "😭", "a|b", "a~b", "x" * 64])
def test_a_part_of_a_key(value: str) -> None:
    """Any visible text is a part of a key."""
    assert takes(KeyPart, value)


def test_the_longest_conversation_fits() -> None:
    """Three longest parts are a conversation, and ids that begin with it are ids (promise 1)."""
    longest = conversation_id("s" * 64, "c" * 64, "u" * 64)
    assert takes(ConversationId, longest)
    assert takes(Id, f"{longest}|{10**12}|{10**3}")


@pytest.mark.parametrize("value", ["a/b", "a/b/c/d", "~3", "/b/c", "a//c", "a/b/"])
def test_no_conversation(value: str) -> None:
    """A conversation is three parts."""
    assert not takes(ConversationId, value)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Fen, (0, 5000), (-1, 1.0, True, "5", 10**13)),
        (Share, (0, 1, 0.6), (-0.1, 1.1, True, "1", None)),
        (Name, ("refund", "delivery.resend", "a-b:c_1"), ("", "Refund", "退款", ".a", "a b")),
        (Id, ("x", "顾客", "a b"), ("", "a\x00", "a\x7f", "x" * 257, 1)),
    ],
)
def test_ranges(kind: Any, good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    """Each type takes its range and nothing that only looks like it."""
    assert all(takes(kind, value) for value in good)
    assert not any(takes(kind, value) for value in bad)


class Reading(Model):
    """A model with a number."""

    value: float


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_numbers_are_finite(value: float) -> None:
    """JSON has no infinity, so no writer can hold one."""
    with pytest.raises(ValidationError):
        Reading(value=value)


def test_models_are_frozen() -> None:
    """A record is never changed in place."""
    with pytest.raises(ValidationError):
        Reading(value=1.0).value = 2.0


@given(st.text())
def test_readable_text_drops_nul_only(text: str) -> None:
    """Case B17: readable text has no NUL, and all else in order."""
    assert [c for c in text if c != "\0"] == list(readable(text))
