"""The shop-wide search by vector: all vectors folded to 64 numbers in memory, the best compared in full after that."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from memory.facts.vectors import Vector

FOLDED = 64  # a pass over 100,000 folded vectors reads 26 MB instead of 102
_FIRST = 1024  # places to begin with
# row, time in ms, active, kind, vector
Entry = tuple[int, int, int, str, bytes]


class Index:
    """Grows with the rows that changed; a row that comes again takes its old place."""

    def __init__(self) -> None:
        """Empty."""
        self._places: dict[int, int] = {}
        self._kinds: dict[str, int] = {}
        self._rows = np.zeros(_FIRST, dtype=np.int64)
        self._times = np.zeros(_FIRST, dtype=np.int64)
        self._active = np.zeros(_FIRST, dtype=np.bool_)
        self._kind = np.zeros(_FIRST, dtype=np.int32)
        self._folded = np.zeros((_FIRST, FOLDED), dtype=np.float32)

    def add(self, entries: Sequence[Entry]) -> None:
        """Take new and changed rows."""
        if not entries:
            return
        for row, *_ in entries:
            self._places.setdefault(row, len(self._places))
        while len(self._places) > len(self._rows):
            self._double()
        at = np.array([self._places[entry[0]] for entry in entries])
        self._rows[at] = [entry[0] for entry in entries]
        self._times[at] = [entry[1] for entry in entries]
        self._active[at] = [bool(entry[2]) for entry in entries]
        self._kind[at] = [self._kinds.setdefault(entry[3], len(self._kinds)) for entry in entries]
        self._folded[at] = folded(np.stack([np.frombuffer(entry[4], dtype=np.float32) for entry in entries]))

    def nearest(self, vector: Vector, most: int, kinds: Iterable[str], since_ms: int, active_only: bool) -> list[int]:  # noqa: FBT001
        """Rows that pass the filters, at most `most`, those nearest by the folded vectors."""
        used = len(self._places)
        passed = self._times[:used] >= since_ms
        if active_only:
            passed &= self._active[:used]
        wanted = [self._kinds.get(kind, -1) for kind in kinds]
        if wanted:
            passed &= np.isin(self._kind[:used], wanted)
        places = np.flatnonzero(passed)
        if len(places) > most:
            # a filter that leaves few rows makes their copy cheaper than a pass over all
            few = 2 * len(places) < used
            asked = folded(vector[np.newaxis])[0]
            scores = self._folded[places] @ asked if few else (self._folded[:used] @ asked)[places]
            places = places[np.argpartition(-scores, most - 1)[:most]]
        return [int(row) for row in self._rows[places]]

    def _double(self) -> None:
        for name in ("_rows", "_times", "_active", "_kind", "_folded"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros_like(column)]))


def folded(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Each row's numbers added up at 64 places with fixed signs: angles stay about what they were."""
    count, size = vectors.shape
    parts = -(-size // FOLDED)
    padded = np.zeros((count, parts * FOLDED), dtype=np.float32)
    padded[:, :size] = vectors * _signs(size)
    summed: npt.NDArray[np.float32] = padded.reshape(count, parts, FOLDED).sum(axis=1)
    return summed


def _signs(size: int) -> npt.NDArray[np.float32]:
    return np.array([1 if zlib.crc32(b"%d" % place) & 1 else -1 for place in range(size)], dtype=np.float32)
