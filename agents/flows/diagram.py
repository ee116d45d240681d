"""The flows as Mermaid diagrams, made from the tables: `python -m agents.flows.diagram > docs/flows.md`."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from agents.flows.model import Flow, Flows, load_flows
from agents.tools.spec import load_tools

_HEAD = """# Flows

Made from the flow files by `python -m agents.flows.diagram > docs/flows.md`; a test keeps both equal.

Each flow is a table: node and event lead to the next node, and an event that the table does not have at a node is
refused with nothing changed. Bold nodes can never be skipped; a call that changes something is only entered from a
confirm node, by the customer's yes. Money waits for a person's review at its call. Under each diagram stand the
events that every node knows that is no end.
"""


def diagram(flow: Flow) -> str:
    """One flow as a Mermaid state diagram: its own rows of the table, in file order."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {flow.start}"]
    for name, row in flow.table.items():
        merged: dict[str, list[str]] = {}
        for event, there in row.items():
            merged.setdefault(there, []).append(event)
        lines += [f"    {name} --> {there}: {', '.join(events)}" for there, events in merged.items()]
    lines += [f"    {name} --> [*]" for name, node in flow.nodes.items() if node.terminal]
    guarded = [name for name, node in flow.nodes.items() if node.never_skipped]
    if guarded:
        lines += ["    classDef guard font-weight:bold,stroke-width:3px", f"    class {','.join(guarded)} guard"]
    return "\n".join([*lines, "```"])


def _section(flow: Flow) -> str:
    rows = "\n".join(
        f"| {name} | {node.kind} | {node.tool or node.slot or node.end or ''} | {node.goal} |"
        for name, node in flow.nodes.items()
    )
    anywhere = ", ".join(f"`{event}` to `{there}`" for event, there in flow.anywhere.items())
    return (f"## {flow.flow}\n\n{diagram(flow)}\n\nFrom every other node: {anywhere}.\n\n"
            f"| node | kind | tool, slot or end | reached when left |\n|---|---|---|---|\n{rows}\n")  # fmt: skip


def document(flows: Flows) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(flow) for flow in _ordered(flows).values())])


def _ordered(flows: Flows) -> Mapping[str, Flow]:
    return dict(sorted(flows.items()))


if __name__ == "__main__":
    sys.stdout.write(document(load_flows(load_tools())))
