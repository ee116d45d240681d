"""What a backup brings back: all it holds but of forgotten customers, and on top what the register wrote since.

The register is the way into the stores, and a restore takes nothing of it back: that is what a rollback is for. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory.facts.port import Fact
from memory.facts.superseding import SUMMARY_MAX, plan, restored
from memory.keeping import fact_of, key_of
from memory.relations.dump import Dump
from memory.relations.schema import EdgeRow, NodeRow
from schemas.memory import MemoryWrite

Forgotten = Callable[[str], int | None]
"""When a customer was forgotten last, milliseconds; None: never."""


def stays(forgotten: Forgotten, customer: str, at: int) -> bool:
    """Whether what was written of the customer then may be had again (promise 9)."""
    when = forgotten(customer)
    return when is None or at > when


def later(writes: Iterable[MemoryWrite], shop: str, forgotten: Forgotten) -> list[MemoryWrite]:
    """The register's writes of a shop that may be in its stores, in their order."""
    named = ((write, key_of(write.key)) for write in writes)
    return [write for write, key in named if key.shop == shop and stays(forgotten, key.conversation, write.timestamp)]


def facts_with(kept: Sequence[Fact], writes: Iterable[MemoryWrite]) -> list[Fact]:
    """The facts of a backup, and over them those of the register; a write that the backup has is no news."""
    places = restored(kept)
    known = {**places.trail, **places.current}
    news = plan([fact for fact in map(fact_of, writes) if len(fact.summary) <= SUMMARY_MAX], known)
    return list({**known, **news.trail, **news.current}.values())


def nodes_that_stay(source: Dump, forgotten: Forgotten) -> Iterator[NodeRow]:
    """The nodes of a backup without those of forgotten customers; agents belong to nobody."""
    return (row for row in source.nodes() if not row.customer or stays(forgotten, row.customer, row.written))


def edges_that_stay(source: Dump, forgotten: Forgotten) -> Iterator[EdgeRow]:
    """The relations of a backup without those of forgotten customers."""
    return (row for row in source.edges() if stays(forgotten, row.customer, row.written))


@dataclass(frozen=True, slots=True)
class Changes:
    """What a restore would do: by `customer/key`, the line that stands now and the one that would."""

    lines: Mapping[str, tuple[str | None, str | None]]
    same: int


def changes(now: Iterable[Fact], then: Iterable[Fact]) -> Changes:
    """Compare what is known now with what would be known."""
    before, after = _known(now), _known(then)
    differ = {name: (_line(before.get(name)), _line(after.get(name))) for name in sorted(before.keys() | after.keys())
              if _write(before.get(name)) != _write(after.get(name))}  # fmt: skip
    return Changes(differ, len(before.keys() | after.keys()) - len(differ))


def _known(facts: Iterable[Fact]) -> dict[str, Fact]:
    return {f"{fact.customer}/{fact.key}": fact for fact in facts if fact.active}


def _line(fact: Fact | None) -> str | None:
    return None if fact is None else fact.summary


def _write(fact: Fact | None) -> tuple[str, str] | None:
    return None if fact is None else (fact.write_id, fact.summary)
