"""Thousands of values in many megabytes: the first bytes of each are looked up by numpy, the rest on a hit."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streams.privacy.search import Needles, forms

HEAD = 3  # bytes that a table of 16 million places is asked for
CHUNK = 4_000_000


class Haystack:
    """Finds needles in bytes as `Needles.found` does."""

    def __init__(self, needles: Needles) -> None:
        self._by_head: dict[bytes, list[tuple[bytes, str]]] = {}
        for value in needles.values:
            for form in forms(value):
                self._by_head.setdefault(form[: 2 * HEAD], []).append((form, value))
        self._table = np.zeros(1 << (8 * HEAD), dtype=bool)
        self._table[[int.from_bytes(head[:HEAD], "little") for head in self._by_head]] = True

    def found(self, parts: Iterable[bytes]) -> set[str]:
        """The values that stand in any of the parts."""
        data = b"\n".join(parts)
        return self._in(data) | self._in(data.translate(None, b" -"))

    def _in(self, data: bytes) -> set[str]:
        found: set[str] = set()
        for start in range(0, len(data), CHUNK):
            block = np.frombuffer(data[start : start + CHUNK + HEAD - 1], dtype=np.uint8).astype(np.uint32)
            if len(block) < HEAD:
                break
            heads = block[:-2] | block[1:-1] << 8 | block[2:] << 16
            for at in np.flatnonzero(self._table[heads]):
                whole = start + int(at)
                near = self._by_head.get(data[whole : whole + 2 * HEAD], ())
                found |= {value for form, value in near if data.startswith(form, whole)}
        return found
