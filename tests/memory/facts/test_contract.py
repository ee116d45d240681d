"""One contract suite on both stores of facts, and proof that it would notice a broken one."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import Fact, FactStore, PutResult
from streams.clock import fresh_id
from tests.memory.facts import checks
from tests.memory.facts.checks import CHECKS, OddVectors, Shop

Check = Callable[[FactStore, Shop, Path], Awaitable[None]]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_store_keeps_the_contract(check: Check, store: FactStore, shop: Shop, tmp_path: Path) -> None:
    """Both stores keep each rule of the suite (cases I01, I03, I05, I07, J07, J09; R-002-18)."""
    await check(store, shop, tmp_path)


class IdOfEachTry(EmbeddedFacts):
    """Gives an object another id in each try."""

    async def put(self, facts: Sequence[Fact]) -> PutResult:
        """Store, under another key each time."""
        await super().put([dataclasses.replace(fact, key=f"{fact.key}#{fresh_id('try')}") for fact in facts])
        return PutResult(tuple(fact.write_id for fact in facts))


class SwallowsFailures(EmbeddedFacts):
    """Says that all is well."""

    async def put(self, facts: Sequence[Fact]) -> PutResult:
        """Store what can be stored."""
        await super().put(facts)
        return PutResult(tuple(fact.write_id for fact in facts))


class MatchesParts(EmbeddedFacts):
    """Takes a session for another that begins like it."""

    async def delete_session(self, shop: str, session_id: str) -> int:
        """Delete by the beginning of the id."""
        return await self._run(shop, lambda db: db.remove("session LIKE ?", f"{session_id}%"))


class ForgetsTheTrail(EmbeddedFacts):
    """Deletes what a correction replaces."""

    async def put(self, facts: Sequence[Fact]) -> PutResult:
        """Store, and keep only what is active."""
        result = await super().put(facts)
        for shop in {fact.shop for fact in facts}:
            await self._run(shop, lambda db: db.remove("active = 0"))
        return result


@pytest.mark.parametrize(
    ("faulty", "noticed_by"),
    [(IdOfEachTry, checks.repeated_batch), (SwallowsFailures, checks.partial_failure),
     (MatchesParts, checks.exact_session), (ForgetsTheTrail, checks.contradiction)],
)  # fmt: skip
async def test_planted_fault_is_noticed(
    faulty: type[EmbeddedFacts], noticed_by: Check, shop: Shop, tmp_path: Path
) -> None:
    """A store with a fault fails the check that is there for it."""
    store = faulty(tmp_path / "facts", OddVectors())

    with pytest.raises(AssertionError):
        await noticed_by(store, shop, tmp_path)

    await store.close()
