"""What the graph may hold: labels, kinds of relation and their fields. Nothing else reaches a store (case I13)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from memory.facts.port import Refused
from memory.relations.port import Node, Relation
from schemas.base import MAX_MILLIS, MAX_TEXT_CHARS, MIN_MILLIS

# label -> its fields; all but an agent belong to one customer
LABELS: dict[str, frozenset[str]] = {
    "User": frozenset(),
    "Order": frozenset({"summary"}),
    "Complaint": frozenset({"reason", "note"}),
    "Agent": frozenset({"name"}),
}
SHARED = frozenset({"Agent"})

# kind -> the labels that it joins
KINDS: dict[str, frozenset[tuple[str, str]]] = {
    "MADE_ORDER": frozenset({("User", "Order")}),
    "FILED_COMPLAINT": frozenset({("User", "Complaint")}),
    "ABOUT": frozenset({("Complaint", "Order")}),
    "HANDLED_BY": frozenset({("Complaint", "Agent"), ("Order", "Agent")}),
    "TRIGGERED_QUALITY_CHECK": frozenset({("Complaint", "Agent")}),
}
FIELDS: dict[str, frozenset[str]] = {"TRIGGERED_QUALITY_CHECK": frozenset({"result", "note"})}
RESULTS = ("marked_down", "passed", "open")

_ID = re.compile(r"[^\x00-\x1f\x7f]{1,256}")  # as schemas.base.Id


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as stored; `customer` is empty for an agent, `written` in ms."""

    key: str
    label: str
    id: str
    shop: str
    customer: str
    written: int
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """A relation as stored between the nodes with the keys `start` and `end`; times in ms."""

    key: str
    kind: str
    start: str
    end: str
    start_label: str
    end_label: str
    shop: str
    customer: str
    at: int
    write_id: str
    trace_id: str
    active: bool
    written: int
    fields: dict[str, str] = field(default_factory=dict)


def rows(relations: Iterable[Relation]) -> tuple[list[NodeRow], list[EdgeRow], list[Refused]]:
    """The rows of what the schema allows, each key once and sorted (so that two writers never wait for each other).

    And what it refuses, with the reason.
    """
    nodes: dict[str, NodeRow] = {}
    edges: dict[str, EdgeRow] = {}
    refused = []
    for relation in relations:
        reason = problem(relation)
        if reason:
            refused.append(Refused(relation.write_id, reason))
            continue
        start, end, edge = _rows_of(relation)
        for node in (start, end):
            nodes[node.key] = _folded(nodes.get(node.key), node)
        last = edges.get(edge.key)
        if last is None or edge.written >= last.written:
            edges[edge.key] = edge
    return [nodes[key] for key in sorted(nodes)], [edges[key] for key in sorted(edges)], refused


def problem(relation: Relation) -> str:
    """Why the schema refuses the relation, or nothing. The text names fields, never their values."""
    pairs = KINDS.get(relation.kind)
    if pairs is None:
        return f"kind: none of {', '.join(KINDS)}"
    if (relation.start.label, relation.end.label) not in pairs:
        return f"start, end: {relation.kind} joins {' or '.join(sorted(' and '.join(pair) for pair in pairs))}"
    if relation.start.label == "User" and relation.start.id != relation.customer:
        return "start.id: a user's id is the customer"
    ids = {
        "shop": relation.shop, "customer": relation.customer, "write_id": relation.write_id,
        "trace_id": relation.trace_id, "start.id": relation.start.id, "end.id": relation.end.id,
    }  # fmt: skip
    for name, value in ids.items():
        if not _ID.fullmatch(value) or not _encodes(value):
            return f"{name}: 1 to 256 characters, none of them a control"
    for name, when in (("at", relation.at), ("written_at", relation.written_at)):
        if not MIN_MILLIS <= when <= MAX_MILLIS:
            return f"{name}: milliseconds since 1970"
    return _fields_problem(relation)


def _fields_problem(relation: Relation) -> str:
    places: tuple[tuple[str, Mapping[str, Any], frozenset[str]], ...] = (
        ("fields", relation.fields, FIELDS.get(relation.kind, frozenset())),
        ("start.fields", relation.start.fields, LABELS[relation.start.label]),
        ("end.fields", relation.end.fields, LABELS[relation.end.label]),
    )
    for place, fields, allowed in places:
        for name, value in fields.items():
            if name not in allowed:
                return f"{place}: only {', '.join(sorted(allowed)) or 'none'}"
            if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS or not _encodes(value):
                return f"{place}.{name}: a text of at most {MAX_TEXT_CHARS} characters"
    if relation.kind == "TRIGGERED_QUALITY_CHECK" and relation.fields.get("result") not in RESULTS:
        return f"fields.result: one of {', '.join(RESULTS)}"
    return ""


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def node_key(shop: str, customer: str, label: str, identity: str) -> str:
    """The key of a node: the same in every try; another customer's order of the same number has another.

    It begins alike for all of one customer, so that a file keeps together what is asked for together.
    """
    owner = "" if label in SHARED else customer
    return _hash(4, shop, owner) + _hash(12, shop, owner, label, identity)


def _hash(size: int, *parts: str) -> str:
    return blake2b("\x1f".join(parts).encode(), digest_size=size).hexdigest()  # no id holds a control


def _node(relation: Relation, node: Node) -> NodeRow:
    key = node_key(relation.shop, relation.customer, node.label, node.id)
    owner = "" if node.label in SHARED else relation.customer
    return NodeRow(key, node.label, node.id, relation.shop, owner, relation.written_at, dict(node.fields))


def _rows_of(relation: Relation) -> tuple[NodeRow, NodeRow, EdgeRow]:
    start, end = _node(relation, relation.start), _node(relation, relation.end)
    key = start.key[:8] + _hash(12, relation.kind, start.key, end.key, relation.id)
    edge = EdgeRow(
        key, relation.kind, start.key, end.key, start.label, end.label, relation.shop, relation.customer,
        relation.at, relation.write_id, relation.trace_id, relation.active, relation.written_at, dict(relation.fields),
    )  # fmt: skip
    return start, end, edge


def _folded(last: NodeRow | None, node: NodeRow) -> NodeRow:
    """Two rows of one node as one: the newer one's fields over the older one's."""
    if last is None:
        return node
    older, newer = (last, node) if node.written >= last.written else (node, last)
    fields = {**older.fields, **newer.fields}
    return NodeRow(node.key, node.label, node.id, node.shop, node.customer, newer.written, fields)
