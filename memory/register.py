"""The memory register read as one: the chain of each key, what a trace wrote, and what rolling it back would do.

Pure: the writes come from `memory.writes`, and what is to be set back goes to the conversation's owner as a decision
of a member of staff, so that the write itself is made by the one writer of that memory (R-004-10, R-004-11).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from schemas.memory import MemoryRestore, MemoryWrite, Remembered
from schemas.step import same


@dataclass(frozen=True, slots=True)
class Conflict:
    """A key that the trace wrote and others wrote after it: it is left as it is unless that is asked for."""

    key: str
    value: Remembered
    later: tuple[MemoryWrite, ...]


@dataclass(frozen=True, slots=True)
class Rollback:
    """What rolling back a trace sets back, and what it leaves because of later writes."""

    trace_id: str
    restores: tuple[MemoryRestore, ...]
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """Two writes of a key that do not fit: the second one's `value_before` is not the first one's `value_after`."""

    first: MemoryWrite
    second: MemoryWrite


class Register:
    """Writes in the order of their topic; one that was published again counts once."""

    def __init__(self, writes: Iterable[MemoryWrite] = ()) -> None:
        self._keys: dict[str, list[MemoryWrite]] = {}
        self._by_id: dict[str, MemoryWrite] = {}
        self._places: dict[str, int] = {}  # write id to its place in its key's history
        for write in writes:
            self.add(write)

    def add(self, write: MemoryWrite) -> None:
        """Take in the next write."""
        if write.write_id in self._by_id:
            return
        history = self._keys.setdefault(write.key, [])
        self._by_id[write.write_id], self._places[write.write_id] = write, len(history)
        history.append(write)

    @property
    def keys(self) -> list[str]:
        """Every key that was written, in order of its first write."""
        return list(self._keys)

    def history(self, key: str) -> Sequence[MemoryWrite]:
        """All writes of a key, oldest first."""
        return tuple(self._keys.get(key, ()))

    def value(self, key: str) -> Remembered:
        """What is known under the key now."""
        history = self._keys.get(key)
        return history[-1].value_after if history else None

    def of_trace(self, trace_id: str) -> list[MemoryWrite]:
        """What a trace wrote, oldest first of each key (R-004-10)."""
        return [write for history in self._keys.values() for write in history if write.trace_id == trace_id]

    def breaks(self) -> Iterator[Break]:
        """Where a chain does not hold; none in a register that one writer wrote."""
        for history in self._keys.values():
            for first, second in itertools.pairwise(history):
                if not same(first.value_after, second.value_before):
                    yield Break(first, second)

    def rollback(self, trace_id: str, over: Iterable[str] = ()) -> Rollback:
        """What to set back so that the trace wrote nothing; `over` names keys whose later writes may go with it.

        A later write that was itself rolled back is no conflict: what the trace wrote stands again.
        """
        restores, conflicts, forced = [], [], set(over)
        for key in dict.fromkeys(write.key for write in self.of_trace(trace_id)):
            mine = {write.write_id for write in self._keys[key] if write.trace_id == trace_id}
            head = self._keys[key][-1]
            start = head.write_id if head.write_id in mine else self._standing(head)
            if start in mine:
                restores.append(self._restore(head, start, mine))
            elif key in forced:
                last = next(write.write_id for write in reversed(self._keys[key]) if write.write_id in mine)
                restores.append(self._restore(head, last, mine))
            else:
                conflicts.append(self._conflict(key, mine))
        return Rollback(trace_id, tuple(restores), tuple(conflicts))

    def _standing(self, write: MemoryWrite) -> str | None:
        """The write whose value stands after this one: itself, or what it restored."""
        return write.restores if write.undoes else write.write_id

    def _restore(self, head: MemoryWrite, start: str, mine: set[str]) -> MemoryRestore:
        """From the write that stands back to the first that is not the trace's."""
        undone: list[str] = []
        at: str | None = start
        value: Remembered = None
        while at is not None and at in mine:
            write = self._by_id[at]
            undone.append(at)
            value, place = write.value_before, self._places[at]
            at = self._standing(self._keys[write.key][place - 1]) if place else None
        return MemoryRestore(key=head.key, head=head.write_id, now=head.value_after, value=value,
                             undoes=tuple(undone), restores=at)  # fmt: skip

    def _conflict(self, key: str, mine: set[str]) -> Conflict:
        history = self._keys[key]
        last = max(place for place, write in enumerate(history) if write.write_id in mine)
        first = next(write for write in history if write.write_id in mine)
        return Conflict(key, first.value_before, tuple(history[last + 1 :]))
