"""The port of the relations: who ordered, who complained, who handled it and what a quality check said (R-002-19).

Merging is idempotent and the last write wins, so a log that is read twice gives the same graph (case I11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from memory.facts.port import PutResult
from schemas.errors import InterlockError

LIMIT = 200  # steps of one path: a prompt and a screen hold fewer
EXAMPLES = 20  # complaints named for one agent


class RelationsUnavailableError(InterlockError):
    """The store is down, too slow, or can't write just now: try again later, nothing is wrong with the relations."""


class RelationsError(InterlockError):
    """The store or a backup can't be used as asked; trying again does not help. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """A user, order, complaint or agent; `fields` are those that `memory.relations.schema` lists for the label.

    Orders and complaints belong to the relation's customer: the same id of another customer is another node.
    """

    label: str
    id: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation, since one write of `memory.writes`.

    `at` is when it happened, `written_at` when it was written, both in ms. `id` tells two of a kind between the same
    nodes apart. `active=False` says that from this write on it does not hold.
    """

    shop: str
    customer: str
    kind: str
    start: Node
    end: Node
    at: int
    write_id: str
    trace_id: str
    written_at: int
    fields: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """An order made, a complaint filed, or a quality check that a complaint triggered.

    `node` is the order or the complaint, `agents` who handled it (for a check: who was checked), `orders` the ids
    that a complaint is about, `fields` what the relation says (a check's result), `write_id` the evidence.
    """

    kind: str
    node: Node
    at: int
    write_id: str
    fields: Mapping[str, str] = field(default_factory=dict)
    agents: tuple[Node, ...] = ()
    orders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkedDown:
    """An agent that quality checks marked down: how often, for how many customers, the newest 20 complaints."""

    agent: Node
    times: int
    customers: int
    last_at: int
    complaints: tuple[str, ...]


class RelationStore(Protocol):
    """What Neo4j and the embedded store both do.

    Every method raises RelationsUnavailableError when the store does not answer in time; then a write may or may
    not have happened, and is safe to repeat.
    """

    async def merge(self, relations: Sequence[Relation]) -> PutResult:
        """Store the relations and their nodes: all that the schema allows, or none of them.

        A relation that was merged before changes nothing; one that an older write says again loses to the newer.
        What the schema refuses (case I13) is named in `failed`.
        """
        ...

    async def customer_path(
        self, shop: str, customer: str, since_ms: int, until_ms: int, limit: int = LIMIT
    ) -> list[Step]:
        """What this customer ordered and complained of, what was checked, and who handled it; the newest first.

        From `since_ms` on and before `until_ms`.
        """
        ...

    async def marked_down_agents(
        self, shop: str, since_ms: int, until_ms: int, reason: str = "return"
    ) -> list[MarkedDown]:
        """Over all customers: the agents that checks in this time marked down because of complaints of this reason.

        The most often marked down first.
        """
        ...

    async def delete_customer(self, shop: str, customer: str) -> int:
        """Remove all nodes and relations of exactly this customer; how many relations that were. Agents stay."""
        ...

    async def backup(self, shop: str, file: Path) -> int:
        """Write all of a shop's relations into the file, whole or not at all; how many."""
        ...

    async def restore(self, shop: str, file: Path) -> int:
        """Make the shop's relations those of the backup; how many.

        Raises RelationsError for a damaged or another's file. Cut short, it is safe to repeat.
        """
        ...

    async def close(self) -> None:
        """Give back connections and files."""
        ...
