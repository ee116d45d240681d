"""The two questions that are asked of a flow's table as a graph."""

from __future__ import annotations

from collections.abc import Mapping

Edges = Mapping[str, tuple[tuple[str, str], ...]]


def reachable(edges: Edges, start: str, without: str | None = None) -> set[str]:
    """Nodes that can be reached from `start` (itself included) when `without` is closed."""
    if start == without:
        return set()
    # No recursion: a pack may hold a table of any size.
    seen, waiting = {start}, [start]
    while waiting:
        for _, there in edges.get(waiting.pop(), ()):
            if there not in seen and there != without:
                seen.add(there)
                waiting.append(there)
    return seen
