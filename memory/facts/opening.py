"""Which store of facts is used, by the settings: a server's URL, else the embedded one."""

from __future__ import annotations

from pathlib import Path

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import FactStore
from memory.facts.vectors import HashedVectors, ServedVectors, Vectors


def open_facts(url: str, api_key: str, folder: Path, vectors: Vectors | None = None) -> FactStore:
    """The store at the URL; without one the files in the folder. Connects at the first use."""
    if not url:
        return EmbeddedFacts(folder, vectors)
    from memory.facts.weaviate import WeaviateFacts  # noqa: PLC0415 (half a second that the embedded store needs not)

    return WeaviateFacts(url, api_key=api_key, vectors=vectors)


def open_vectors(url: str, model: str, size: int) -> Vectors:
    """The embedding server's vectors, or without a URL the embedded ones."""
    return ServedVectors(url, model, size) if url else HashedVectors()
