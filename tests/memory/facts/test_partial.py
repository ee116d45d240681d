"""A Weaviate that takes a part of a batch, without a server: what is lost, what is refused, what is tried again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memory.facts.backup import encode
from memory.facts.port import FactsUnavailableError
from memory.facts.weaviate import WeaviateFacts
from memory.facts.weaviate_client import VECTOR, Row
from tests.memory.facts.checks import Shop


class _Object:
    def __init__(self, row: Row) -> None:
        self.uuid, self.properties, self.vector = row.id, row.properties, {VECTOR: row.vector}


class _Server:
    """Keeps objects, and answers for each of them: `says` names the reason that one is not stored."""

    def __init__(self) -> None:
        self.rows: dict[Any, Row] = {}
        self.says: dict[str, str] = {}  # summary of a fact to the reason
        self.query = self

    @asynccontextmanager
    async def tenant(self, *_: object, **__: object) -> AsyncIterator[Any]:
        """All shops are one."""
        yield self

    async def fetch_objects_by_ids(self, ids: Sequence[Any], **_: object) -> Any:
        """Those that are there."""
        self.objects = [_Object(self.rows[one]) for one in ids if one in self.rows]
        return self

    async def insert(self, _shop: str, rows: Sequence[Row], _seconds: float) -> dict[int, str]:
        """The places that failed, with the reason, as the batch's answer has them."""
        failed = {place: why for place, row in enumerate(rows)
                  for text, why in self.says.items() if text in str(row.properties["body"])}  # fmt: skip
        self.rows.update((row.id, row) for place, row in enumerate(rows) if place not in failed)
        return failed


@pytest.fixture
def server() -> _Server:
    """An empty one."""
    return _Server()


@pytest.fixture
def facts(server: _Server) -> WeaviateFacts:
    """A store on it."""
    store = WeaviateFacts("http://127.0.0.1:1")
    store._connection = server  # type: ignore[assignment]
    return store


@pytest.mark.parametrize("reason", ["store is read-only", "context deadline exceeded", "not enough memory", ""])
async def test_half_a_batch_is_no_batch(server: _Server, facts: WeaviateFacts, shop: Shop, reason: str) -> None:
    """One of three that failed for a reason that may pass: the whole batch comes again, and is whole (case I03)."""
    batch = [shop.fact(text, text) for text in ("tea", "cup", "pot")]
    server.says = {"cup": reason}
    with pytest.raises(FactsUnavailableError):
        await facts.put(batch)
    server.says = {}
    assert 3 == len((await facts.put(batch)).stored)
    assert 3 == len(server.rows)


async def test_what_is_refused_for_good_is_named_alone(server: _Server, facts: WeaviateFacts, shop: Shop) -> None:
    """It would be refused again for ever: it is told by its id and reason, and the others are stored (case I03)."""
    tea, cup, pot = (shop.fact(text, text) for text in ("tea", "cup", "pot"))
    server.says = {"cup": "vector lengths don't match"}
    done = await facts.put([tea, cup, pot])
    assert ((tea.write_id, pot.write_id), [(cup.write_id, "vector lengths don't match")]) == (
        done.stored, [(one.write_id, one.reason) for one in done.failed])  # fmt: skip


async def test_what_is_known_stays_until_it_stands_in_the_trail(
    server: _Server, facts: WeaviateFacts, shop: Shop
) -> None:
    """A trail that does not take the old value keeps the new one out: none of the two is lost (case J07)."""
    old, new = shop.fact("tea", "drink"), shop.fact("cup", "drink")
    await facts.put([old])
    server.says = {"tea": "invalid object"}
    with pytest.raises(FactsUnavailableError, match="trail"):
        await facts.put([new])
    assert [encode(old).decode()] == [row.properties["body"] for row in server.rows.values()]
