"""What a flow file holds, and its loader, which names file, node and field of everything that is wrong.

A new flow is a new file. The table (node x event -> node) is the only place where a flow moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents import packfile
from agents.flows import graph
from agents.flows.checks import CHECKS
from agents.tools.spec import Tools

PACK = Path(__file__).parent / "pack"

# Every event that can happen to a flow. `missing_<slot>` exists once for each slot that the flow requires.
FROM_CUSTOMER = ("complete", "described", "unclear", "confirmed", "denied", "changed", "unconfirmed")
FROM_CALL = ("ok", "not_found", "not_owner", "violates", "over_amount", "none", "repeated", "failed", "uncertain")
FROM_REVIEW = ("review_refused", "expired")
FROM_ANYWHERE = ("stopped", "recalled", "wants_person", "capped")
EVENTS = (*FROM_CUSTOMER, *FROM_CALL, *FROM_REVIEW, *FROM_ANYWHERE)


class FlowError(ValueError):
    """A flow file is wrong: `file`, `node`, `field` and what to do."""

    def __init__(self, file: str, node: str, field: str, problem: str) -> None:
        super().__init__(f"flow {file}: {node}: {field}: {problem.removeprefix('Value error, ')}")
        self.file, self.node, self.field, self.problem = file, node, field, problem


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Titled(_Part):
    """A name in both languages."""

    zh: str
    en: str


class Fallback(_Part):
    """What is done when the plan can't be carried out (R-002-24)."""

    type: Literal["handover", "ask", "inform", "retry_later"]
    reason: str


class Node(_Part):
    """One node.

    route: moves on at once by what is missing. ask: one slot, waits. confirm: waits for a yes.
    call: a tool, waits for its result (and, for money, for a review first). say: the last word.
    handover: a person.
    """

    kind: Literal["route", "ask", "confirm", "call", "say", "handover"]
    goal: str = Field(min_length=3, description="what is reached when the node is left")
    slot: str | None = None
    template: str | None = None
    variants: dict[str, str] = Field(default={}, description="template by the code that the event carries")
    tool: str | None = None
    args: dict[str, str] = Field(default={}, description="argument to slot")
    check: str | None = Field(default=None, description="the business rule that reads a successful result")
    errors: dict[str, str] = Field(default={}, description="the tool's error code to event; others are `failed`")
    fallback_of: str | None = Field(default=None, description="the tool whose computed fallback is due here")
    end: Literal["done", "failed", "cancelled"] | None = None
    never_skipped: bool = False

    @property
    def terminal(self) -> bool:
        """Nothing comes after it."""
        return self.end is not None or self.kind == "handover"


class Flow(_Part):
    """One flow. `anywhere` is part of the table: rows that every node has which is no end."""

    flow: str = Field(pattern="^[a-z][a-z0-9_]*$")
    version: int = Field(ge=1)
    title: Titled
    intents: tuple[str, ...] = Field(min_length=1)
    quick: bool = Field(default=False, description="a query on the light path, before other wishes (R-003-20)")
    follows: tuple[str, ...] = Field(default=(), description="flows whose order is meant when none is named")
    urged_after: tuple[str, ...] = Field(default=(), description="flows that, once over, are hurried by this query")
    requires: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    start: str
    plan: tuple[str, ...] = Field(min_length=1, description="nodes of the intended path")
    exit_conditions: tuple[str, ...] = Field(min_length=1)
    fallback_action: Fallback
    anywhere: dict[str, str]
    nodes: dict[str, Node] = Field(min_length=1)
    table: dict[str, dict[str, str]]

    @property
    def events(self) -> tuple[str, ...]:
        """Every event that this flow can meet."""
        return (*EVENTS, *(f"missing_{slot}" for slot in self.requires))

    @property
    def slots(self) -> tuple[str, ...]:
        """What the flow takes from messages."""
        return (*self.requires, *self.optional)

    def target(self, node: str, event: str) -> str | None:
        """The table: where `event` leads from `node`, or None if it is refused there."""
        if self.nodes[node].terminal:
            return None
        # A node's own row first: it may lead `stopped` elsewhere than the other nodes do.
        return self.table.get(node, {}).get(event) or self.anywhere.get(event)

    def edges(self) -> graph.Edges:
        """The whole table, `anywhere` included: node to its (event, node) pairs."""
        return {
            name: tuple((event, there) for event in self.events if (there := self.target(name, event)))
            for name in self.nodes
        }


Flows = Mapping[str, Flow]


def load_flow(path: Path, tools: Tools, templates: frozenset[str] | None = None) -> Flow:
    """The flow of one file. Raises FlowError naming file, node and field."""
    try:
        flow = Flow.model_validate(packfile.read(path))
    except yaml.YAMLError as error:
        raise FlowError(path.name, "(file)", "(file)", packfile.problem(error)) from error
    except ValidationError as error:
        raise _readable(path.name, error) from error
    if flow.flow != path.stem:
        raise FlowError(path.name, "(flow)", "flow", f"{flow.flow!r} must be the file's name")
    for node, field, problem in (*_nodes(flow, tools, templates), *_table(flow), *_graph(flow, tools)):
        raise FlowError(path.name, node, field, problem)
    return flow


def _readable(file: str, error: ValidationError) -> FlowError:
    first = error.errors()[0]
    where = [str(part) for part in first["loc"]]
    if len(where) >= 2 and where[0] in {"nodes", "table"}:
        return FlowError(file, where[1], ".".join(where[2:]) or where[0], first["msg"])
    return FlowError(file, "(flow)", ".".join(where) or "(flow)", first["msg"])


Problems = list[tuple[str, str, str]]
_FIELDS = {"ask": ("slot", "template"), "confirm": ("template",), "call": ("tool",), "say": ("template", "end"),
           "handover": ("template",), "route": ()}  # fmt: skip


def _nodes(flow: Flow, tools: Tools, templates: frozenset[str] | None) -> Problems:
    problems: Problems = []
    for name, node in flow.nodes.items():
        problems += [(name, field, f"a {node.kind} node needs it")
                     for field in _FIELDS[node.kind] if getattr(node, field) is None]  # fmt: skip
        if node.slot is not None and node.slot not in flow.slots:
            problems.append((name, "slot", f"{node.slot!r} is not in requires or optional"))
        if node.check is not None and node.check not in CHECKS:
            problems.append((name, "check", f"{node.check!r} is none of {', '.join(sorted(CHECKS))}"))
        problems += [(name, "errors", f"{event!r} is no event")
                     for event in node.errors.values() if event not in EVENTS]  # fmt: skip
        if node.tool is not None:
            problems += _call(name, node, tools)
            if flow.quick and node.tool in tools and tools[node.tool].risk != "query":
                problems.append((name, "tool", f"{node.tool} changes something, and a quick flow only asks"))
        wanted = [*([node.template] if node.template else []), *node.variants.values()]
        problems += [(name, "template", f"{one!r} is no template")
                     for one in wanted if templates is not None and one not in templates]  # fmt: skip
    return problems


def _call(name: str, node: Node, tools: Tools) -> Problems:
    spec = tools.get(node.tool or "")
    if spec is None:
        return [(name, "tool", f"{node.tool!r} is none of {', '.join(sorted(tools))}")]
    problems = [(name, "args", f"{one!r} is no argument of {spec.name}") for one in node.args
                if one not in spec.input_schema or spec.input_schema[one].source == "sender"]  # fmt: skip
    problems += [(name, "args", f"{spec.name} needs {one!r}") for one, argument in spec.input_schema.items()
                 if argument.required and argument.source == "slot" and one not in node.args]  # fmt: skip
    return problems


def _table(flow: Flow) -> Problems:
    problems: Problems = []
    names = flow.nodes.keys()
    if flow.start not in names:
        problems.append((flow.start, "start", "is no node"))
    problems += [(name, "plan", "is no node") for name in flow.plan if name not in names]
    rows = {**flow.table, "anywhere": flow.anywhere}
    for name, row in rows.items():
        if name != "anywhere" and name not in names:
            problems.append((name, "table", "is no node"))
        for event, there in row.items():
            if event not in flow.events:
                problems.append((name, event, "is no event"))
            if there not in names:
                problems.append((name, event, f"leads to {there!r}, which is no node"))
    return problems


def _graph(flow: Flow, tools: Tools) -> Problems:
    if _table(flow):  # a graph with holes can't be walked; the holes are reported already
        return []
    problems: Problems = []
    edges = flow.edges()
    for name, node in flow.nodes.items():
        if node.terminal and flow.table.get(name):
            problems.append((name, "table", "is an end: nothing may come after it"))
        if not node.terminal and not flow.table.get(name):
            problems.append((name, "table", "has no exit of its own"))
    reached = graph.reachable(edges, flow.start)
    problems += [(name, "table", "can't be reached from the start") for name in flow.nodes if name not in reached]
    ends = {name for name, node in flow.nodes.items() if node.terminal}
    problems += [(name, "table", "never comes to an end") for name in flow.nodes
                 if not ends & graph.reachable(edges, name)]  # fmt: skip
    return problems + _guards(flow, tools, edges)


def _guards(flow: Flow, tools: Tools, edges: graph.Edges) -> Problems:
    """A call that writes is entered from a confirm node by its yes, and never past a node marked never_skipped."""
    problems: Problems = []
    guards = [name for name, node in flow.nodes.items() if node.never_skipped]
    for name, node in flow.nodes.items():
        if node.tool is None or node.tool not in tools or tools[node.tool].risk == "query":
            continue
        # The gate of promise 7: which flow is loaded at all depends on it, so no pack can leave the yes out.
        confirms = [one for one in guards if flow.nodes[one].kind == "confirm"]
        if not confirms:
            problems.append((name, "tool", f"{node.tool} needs a confirm node marked never_skipped before it"))
        for here, pairs in edges.items():
            problems += [(here, event, f"leads to {name} past a confirm node") for event, there in pairs
                         if there == name and (here not in confirms or event != "confirmed")]  # fmt: skip
        problems += [(guard, "never_skipped", f"can be skipped on a path to {name}") for guard in guards
                     if name in graph.reachable(edges, flow.start, without=guard)]  # fmt: skip
    return problems


def load_flows(tools: Tools, templates: frozenset[str] | None = None, *folders: Path) -> dict[str, Flow]:
    """The flows of the folders by name; a later folder's file replaces an earlier one's. Default: the built-in pack."""
    flows: dict[str, Flow] = {}
    for folder in folders or (PACK,):
        for path in sorted(folder.glob("*.yaml")):
            flows[path.stem] = load_flow(path, tools, templates)
    owners: dict[str, str] = {}
    for flow in flows.values():
        for intent in flow.intents:
            if intent in owners:
                problem = f"{intent!r} is taken by {owners[intent]}"
                file = f"{flow.flow}.yaml"
                raise FlowError(file, "(flow)", "intents", problem)
            owners[intent] = flow.flow
    return flows
