"""One contract suite on both stores of relations, and proof that it would notice a broken one."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from memory.facts.port import PutResult
from memory.relations.embedded import EmbeddedRelations
from memory.relations.port import Relation, RelationStore
from streams.clock import fresh_id
from tests.memory.relations import checks
from tests.memory.relations.checks import CHECKS, Shop

Check = Callable[[RelationStore, Shop, Path], Awaitable[None]]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_store_keeps_the_contract(check: Check, store: RelationStore, shop: Shop, tmp_path: Path) -> None:
    """Both stores keep each rule of the suite (cases I11, I13; R-002-19, R-004-11)."""
    await check(store, shop, tmp_path)


class IdOfEachTry(EmbeddedRelations):
    """Gives a relation another id in each try."""

    async def merge(self, relations: Sequence[Relation]) -> PutResult:
        """Store, under another key each time."""
        return await super().merge([dataclasses.replace(one, id=fresh_id("try")) for one in relations])


class TakesAnyOrder(EmbeddedRelations):
    """Lets what comes last win, also when it was written first."""

    async def merge(self, relations: Sequence[Relation]) -> PutResult:
        """Store as if each were written now."""
        self._now = getattr(self, "_now", checks.END) + 1
        return await super().merge([dataclasses.replace(one, written_at=self._now) for one in relations])


class DeletesByPrefix(EmbeddedRelations):
    """Takes a customer for another that begins alike."""

    async def delete_customer(self, shop: str, customer: str) -> int:
        """Delete by the beginning of the id."""
        asked = (shop, f"{customer}%")
        return self._write(
            lambda db: db.execute("DELETE FROM edges WHERE shop = ? AND customer LIKE ?", asked).rowcount
        )


class SwallowsRefusals(EmbeddedRelations):
    """Says that all is well."""

    async def merge(self, relations: Sequence[Relation]) -> PutResult:
        """Store what can be stored."""
        await super().merge(relations)
        return PutResult(tuple(one.write_id for one in relations))


@pytest.mark.parametrize(
    ("faulty", "noticed_by"),
    [(IdOfEachTry, checks.repeated), (TakesAnyOrder, checks.older_write), (DeletesByPrefix, checks.exact_customer),
     (SwallowsRefusals, checks.hostile_names)],
)  # fmt: skip
async def test_planted_fault_is_noticed(
    faulty: type[EmbeddedRelations], noticed_by: Check, shop: Shop, tmp_path: Path
) -> None:
    """A store with a fault fails the check that is there for it."""
    store = faulty(tmp_path / "relations.db")

    with pytest.raises(AssertionError):
        await noticed_by(store, shop, tmp_path)

    await store.close()
