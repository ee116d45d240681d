"""The port of understanding: what a reader is given, and the reading that it hands back.

The rules of this package stand behind it; a trained classifier takes the same seat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Expects = Literal["order_id", "reason", "address", "amount", "confirm", "choice"]
Sentiment = Literal["angry", "impatient", "disappointed", "neutral", "pleased"]
Urgency = Literal["low", "medium", "high"]
Language = Literal["zh", "en", "mixed"]


@dataclass(frozen=True, slots=True)
class Context:
    """What the conversation stands at: the active flow and node, what it asked for, and the last language.

    `at` is the message's time in milliseconds and `zone` the customer's minutes east of UTC: without them a named time
    stays as it was said.
    """

    flow: str | None = None
    node: str | None = None
    expects: Expects | None = None
    language: str | None = None
    at: int | None = None
    zone: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A value read from the text; `start` and `end` are code points of the raw text (R-002-48)."""

    field: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Slots:
    """What one wish is about. Values are in clear; whoever publishes them masks them first."""

    order_id: str | None = None
    sku_id: str | None = None
    category: str | None = None
    colour: str | None = None
    size: str | None = None
    amount: int | None = None
    address: str | None = None
    phone: str | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing that the customer wants, with its own slots; `confidence` is 0 to 1."""

    intent: str
    confidence: float
    slots: Slots = Slots()


@dataclass(frozen=True, slots=True)
class Reading:
    """A whole message as read: its wishes (the first is the main one) and the spans that they rest on."""

    wishes: tuple[Wish, ...]
    evidence: tuple[Found, ...] = ()
    language: Language = "zh"
    sentiment: Sentiment = "neutral"
    urgency: Urgency = "medium"
    time_reference: str | None = None
    reason: str | None = None
    return_words: bool = False


class Understanding(Protocol):
    """Reads a customer's message. Pure: the same text and context give the same reading (promise 5)."""

    def read(self, text: str, context: Context) -> Reading:
        """The reading of `text`; every evidence span indexes it. Never raises for any text."""
        ...
