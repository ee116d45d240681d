"""The one function that moves a flow: the table decides, and what is not in it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.flows.model import Flow


class RefusedError(Exception):
    """The event is not in the flow's table at that node; nothing was changed."""

    def __init__(self, flow: str, node: str, event: str) -> None:
        super().__init__(f"{flow}: no way on from {node!r} by {event!r}")
        self.flow, self.node, self.event = flow, node, event


def move(flow: Flow, state: Mapping[str, Any], event: str) -> dict[str, Any]:
    """The flow's state after `event`: node, path and entries; `state` itself is left as it was.

    Raises RefusedError for an event that the table does not have at that node (R-003-07, R-003-08).
    """
    node = state["node"]
    there = flow.target(node, event) if node in flow.nodes else None
    if there is None:
        raise RefusedError(flow.flow, node, event)
    # Counted at entry, so that the cap can stop a node before it asks or calls once more.
    entries = {**state["entries"], there: state["entries"].get(there, 0) + 1}
    return {**state, "node": there, "entries": entries, "path": [*state["path"], there]}


def wanting(flow: Flow, node: str, slots: Mapping[str, Any]) -> str:
    """`missing`, or `described` where the item of an unknown order was named and the table can look for it."""
    what = missing(flow, slots)
    known = what == "missing_order_id" and slots.get("sku_id") and flow.target(node, "described")
    return "described" if known else what


def missing(flow: Flow, slots: Mapping[str, Any]) -> str:
    """The event that says what is missing: the first required slot without a value, or `complete`."""
    return next((f"missing_{slot}" for slot in flow.requires if slots.get(slot) in (None, "")), "complete")
