"""The vectors of facts: the embedded hashed n-grams, taught the shop's words in both languages, or a server's."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Protocol

import httpx
import numpy as np
import numpy.typing as npt
import yaml

from memory import embedding
from memory.facts.port import FactsError, FactsUnavailableError

Vector = npt.NDArray[np.float32]

SIZE = 256  # two of a summary's 40 n-grams meet in one number rarely enough; see docs/decisions/0009
CONCEPT_WEIGHT = 3.0  # a word that both texts mean counts like the n-grams of that word
CONCEPT = "="  # begins the token of a meaning; no word does
_HAN = re.compile(r"[\u3400-\u9fff]")
_ENGLISH = re.compile(r"[a-z0-9]+")
_SYNONYMS = Path(__file__).parent / "synonyms.yaml"


class Vectors(Protocol):
    """Where vectors come from. Another name or size needs another store: vectors of two kinds can't be compared."""

    @property
    def name(self) -> str:
        """Says which it is, in records and decisions."""
        ...

    @property
    def size(self) -> int:
        """Numbers in a vector; a fact with another number of them is refused."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector for each text. Raises FactsUnavailableError when a server does not answer."""
        ...


class HashedVectors:
    """The default: no model, the same on every machine."""

    name = f"{embedding.NAME} + shop words"
    size = SIZE

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The hashed vectors, each of length 1, zero for a text without letters and digits."""
        return [hashed(text) for text in texts]


class ServedVectors:
    """An embedding server with the usual `/v1/embeddings`; one request for all texts of a call."""

    def __init__(self, url: str, model: str, size: int, *, timeout_s: float = 2.0) -> None:
        """`url` is the server's base, `size` the numbers in its model's vectors."""
        self.name, self.size, self._model = f"{model} at {url}", size, model
        self._client = httpx.AsyncClient(base_url=url, timeout=timeout_s)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The server's vectors as they are. Raises FactsUnavailableError: down, slow, or another answer than asked."""
        try:
            answer = await self._client.post("/v1/embeddings", json={"model": self._model, "input": list(texts)})
            answer.raise_for_status()
            rows = sorted(answer.json()["data"], key=lambda row: row["index"])
            vectors = [np.asarray(row["embedding"], dtype=np.float32) for row in rows]
        except (httpx.HTTPError, LookupError, TypeError, ValueError) as error:
            message = f"the embedding server {self._client.base_url} gave no vectors: {type(error).__name__}: {error}"
            raise FactsUnavailableError(message) from error
        if len(vectors) != len(texts):
            message = f"the embedding server gave {len(vectors)} vectors for {len(texts)} texts"
            raise FactsUnavailableError(message)
        return vectors

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()


@lru_cache(maxsize=16_384)
def hashed(text: str) -> Vector:
    """The embedded vector: n-grams and meanings, each added or subtracted at a place that its hash names."""
    vector = np.zeros(SIZE, dtype=np.float32)
    for gram, count in Counter(embedding.grams(text)).items():
        _add(vector, gram, count)
    for meaning in meanings(text):
        _add(vector, meaning, CONCEPT_WEIGHT)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector


def unfit(vector: Vector, vectors: Vectors) -> str:
    """Why a vector can't be stored beside the others; empty when it can."""
    if vector.shape != (vectors.size,):
        return f"a vector of {vector.size} numbers, the store has {vectors.size} ({vectors.name})"
    return "" if bool(np.isfinite(vector).all()) else "a vector with numbers that are not finite"


@lru_cache(maxsize=16_384)
def tokens(text: str) -> tuple[str, ...]:
    """What the keyword index holds of a text: words, single and paired Chinese characters, meanings (case I07)."""
    return *embedding.grams(text), *_HAN.findall(text), *meanings(text)


@lru_cache(maxsize=16_384)
def meanings(text: str) -> tuple[str, ...]:
    """Tokens of the synonym groups that the text holds a word of."""
    lower = text.lower()
    begins, found = _chinese_by_first(), set[str]()
    for at, character in enumerate(lower):
        for word, groups in begins.get(character, ()):
            if lower.startswith(word, at):
                found |= groups
    english = _ENGLISH.findall(lower)
    for phrase in _phrases(english):
        found.update(_english().get(phrase, ()))
    return tuple(sorted(found))


def _phrases(words: Sequence[str]) -> Iterator[str]:
    """Runs of one to three words, the last one in the singular too."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + 4, len(words) + 1)):
            head = " ".join(words[start:end])
            yield head
            for ending in ("es", "s"):
                if head.endswith(ending) and len(head) > len(ending) + 2:
                    yield head.removesuffix(ending)


def _add(vector: Vector, gram: str, weight: float) -> None:
    number = zlib.crc32(gram.encode())
    # the sign is of another bit than the place: grams that meet cancel out as often as they add up
    vector[number % SIZE] += weight if number & 0x8000_0000 else -weight


@cache
def _groups() -> list[list[str]]:
    try:
        groups = yaml.safe_load(_SYNONYMS.read_text(encoding="utf-8"))["groups"]
        return [[str(word).lower() for word in group] for group in groups]
    except (OSError, yaml.YAMLError, LookupError, TypeError) as error:
        message = f"{_SYNONYMS}: not a list of groups of words ({error})"
        raise FactsError(message) from error


def _words(chinese: bool) -> dict[str, set[str]]:  # noqa: FBT001 (one of two halves)
    found: dict[str, set[str]] = {}
    for group in _groups():
        for word in group:
            if bool(_HAN.search(word)) is chinese:
                name = word if chinese else " ".join(_ENGLISH.findall(word))
                found.setdefault(name, set()).add(CONCEPT + "_".join(_ENGLISH.findall(group[0])))
    return found


@cache
def _chinese_by_first() -> dict[str, list[tuple[str, set[str]]]]:
    """A text is asked character by character, not word by word."""
    found: dict[str, list[tuple[str, set[str]]]] = {}
    for word, groups in _words(chinese=True).items():
        found.setdefault(word[0], []).append((word, groups))
    return found


@cache
def _english() -> dict[str, set[str]]:
    return _words(chinese=False)
