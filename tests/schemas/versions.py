"""A topic with two major versions, for the tests of how versions are read."""

from __future__ import annotations

from typing import Any

from schemas.base import Fen, Id, Model, Text
from schemas.topics import Manifest, Topic, Version, build


class QuoteV1(Model):
    """The old shape: an amount in yuan, as text."""

    quote_id: Id
    amount: Text


class Price(Model):
    """The new shape's amount."""

    fen: Fen


class QuoteV2(Model):
    """The new shape."""

    quote_id: Id
    prices: tuple[Price, ...]
    by_size: dict[str, Price] = {}


def to_v2(old: QuoteV1) -> QuoteV2:
    """Version 2 counts in fen."""
    return QuoteV2(quote_id=old.quote_id, prices=(Price(fen=int(old.amount) * 100),))


def quotes(**second: Any) -> Topic:
    """The topic, with version 2 as given."""
    versions = {1: Version(model=f"{__name__}:QuoteV1"), 2: Version(model=f"{__name__}:QuoteV2", minor=1, **second)}
    return build(
        Manifest(
            name="quotes", purpose="Prices that were named to a customer.", type="interlock.quotes", versions=versions,
            key="conversation id", retention="default", max_bytes=4096, writers=("planning",), readers=("replay",),
            owner="planning team", example="v2/one.json",
        )
    )  # fmt: skip
