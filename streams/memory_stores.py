"""The stores of the memory, as the settings name them: servers, or the embedded twins under the data folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memory.facts.opening import open_facts, open_vectors
from memory.facts.port import FactStore
from memory.relations.embedded import EmbeddedRelations
from memory.relations.port import RelationStore
from streams.settings import Settings


@dataclass(frozen=True, slots=True)
class MemoryStores:
    """Facts and relations."""

    facts: FactStore
    relations: RelationStore

    async def close(self) -> None:
        """Give both back."""
        await self.facts.close()
        await self.relations.close()


def stores_dir(settings: Settings) -> Path:
    """Where the embedded twins keep their files."""
    return settings.data_dir / "stores"


def open_stores(settings: Settings) -> MemoryStores:
    """Both stores; a server is connected to at its first use. Raises RelationsError for what is no file or address."""
    return MemoryStores(facts_of(settings), _relations(settings))


def facts_of(settings: Settings) -> FactStore:
    """The store of facts with the vectors that the settings name; a server is connected to at its first use."""
    vectors = open_vectors(settings.embedding_url, settings.embedding_model, settings.embedding_size)
    return open_facts(settings.facts_url, settings.facts_api_key, stores_dir(settings) / "facts", vectors)


def _relations(settings: Settings) -> RelationStore:
    if not settings.relations_url:
        return EmbeddedRelations(stores_dir(settings) / "relations.db")
    from memory.relations.neo4j import Neo4jRelations  # noqa: PLC0415 (as above)

    return Neo4jRelations(settings.relations_url, settings.relations_user, settings.relations_password)
