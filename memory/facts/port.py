"""The port of the facts: what is known of a customer, one active fact a key, what it replaced kept behind it.

A fact is a summary and key fields, never raw chat (R-002-18). Nothing is overwritten: a correction makes the fact
before it inactive (cases J07, J09), and a write that comes twice is stored once (case I01).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from schemas.base import Json
from schemas.errors import InterlockError

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "interlock:facts")


class FactsUnavailableError(InterlockError):
    """The store is down, too slow, or answers with a server error: try again later, nothing is wrong with the facts."""


class FactsError(InterlockError):
    """The store or a backup can't be used as asked; trying again does not help. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known of a customer, since one write of `memory.writes`.

    `key` is unique for each customer (`preference/carrier`, or with the conversation before it); `at` is ms.
    `active=False` says that from this write on nothing is known under the key.
    """

    shop: str
    customer: str
    key: str
    kind: str
    summary: str
    write_id: str
    trace_id: str
    session_id: str
    at: int
    fields: Mapping[str, Json] = field(default_factory=dict)
    active: bool = True
    supersedes: str = ""  # the write that it replaced; the store fills it in

    @property
    def id(self) -> uuid.UUID:
        """The object id of what is known under the key: the same in every try (case I01)."""
        return uuid.uuid5(_NAMESPACE, f"{self.shop}\x1f{self.customer}\x1f{self.key}")  # no id holds a control

    @property
    def trail_id(self) -> uuid.UUID:
        """The object id of this write once another one has replaced it."""
        return uuid.uuid5(self.id, self.write_id)


@dataclass(frozen=True, slots=True)
class Refused:
    """A fact that the store did not take, and never will as it is."""

    write_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class PutResult:
    """What became of each fact of a batch, by write id (case I03)."""

    stored: tuple[str, ...]
    failed: tuple[Refused, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A fact that was found; `score` from 0 to 1, the same on every store, 0 where no text was asked for."""

    fact: Fact
    score: float


class FactStore(Protocol):
    """What Weaviate and the embedded store both do.

    One writer at a time for each customer. Every method raises FactsUnavailableError when the store does not answer
    in time; then a write may or may not have happened, and is safe to repeat.
    """

    async def put(self, facts: Sequence[Fact]) -> PutResult:
        """Store the facts in order. Each replaces what was known under its key, which stays as inactive.

        A write that was put before changes nothing and counts as stored, also when a later one has replaced it.
        """
        ...

    async def search(
        self,
        shop: str,
        text: str,
        *,
        customer: str | None = None,
        top: int = 5,
        kinds: Iterable[str] = (),
        since_ms: int = 0,
        active_only: bool = True,
    ) -> list[Hit]:
        """The facts nearest to the text by words and meaning, best first; without text the newest first.

        `customer` is exact, None is the whole shop. `kinds` empty: all kinds.
        """
        ...

    async def by_key(self, shop: str, customer: str, key: str) -> list[Fact]:
        """What is known under the key and its trail, the newest first; inactive ones too."""
        ...

    async def by_session(self, shop: str, session_id: str) -> list[Fact]:
        """The facts that were written in exactly this session (case I05), the oldest first; inactive ones too."""
        ...

    async def delete_session(self, shop: str, session_id: str) -> int:
        """Remove what was written in exactly this session, the trail too; how many objects that were."""
        ...

    async def delete_customer(self, shop: str, customer: str) -> int:
        """Remove everything of exactly this customer, the trail too; how many objects that were."""
        ...

    async def backup(self, shop: str, file: Path) -> int:
        """Write all of a shop's facts into the file, whole or not at all; how many."""
        ...

    async def restore(self, shop: str, file: Path) -> int:
        """Make the shop's facts those of the backup; how many. Raises FactsError for a damaged or another's file."""
        ...

    async def close(self) -> None:
        """Give back connections and files."""
        ...
