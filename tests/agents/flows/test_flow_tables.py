"""The flow tables: closed, guarded, and without dead ends."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest

from agents.flows import graph
from agents.flows.engine import RefusedError, missing, move
from agents.flows.model import Flow
from tests.agents.support import PACK

NODES = [(flow, node) for flow in PACK.flows.values() for node in flow.nodes]
WRITES = [(flow, name) for flow in PACK.flows.values() for name, node in flow.nodes.items()
          if node.tool and PACK.tools[node.tool].risk != "query"]  # fmt: skip


def at(flow: Flow, node: str) -> dict[str, Any]:
    """A flow that stands at a node."""
    return {"flow": flow.flow, "node": node, "entries": {node: 1}, "path": [node], "slots": {}}


@pytest.mark.parametrize(("flow", "node"), NODES, ids=lambda one: getattr(one, "flow", one))
def test_every_event_is_in_the_table_or_refused(flow: Flow, node: str) -> None:
    """For every node x event the table gives the next node, or the event is refused and nothing has changed (J15)."""
    for event in flow.events:
        state = at(flow, node)
        before = copy.deepcopy(state)
        there = None if flow.nodes[node].terminal else flow.table.get(node, {}).get(event, flow.anywhere.get(event))
        if there is None:
            with pytest.raises(RefusedError, match=node):
                move(flow, state, event)
        else:
            after = move(flow, state, event)
            assert (there, [node, there]) == (after["node"], after["path"])
        assert before == state


def test_a_move_counts_entries_and_keeps_the_path() -> None:
    """The node path is the audit, and entries are what the caps count (R-003-09, R-003-10)."""
    flow = PACK.flows["refund"]
    state = at(flow, "ask_order_id")

    for event in ("unclear", "unclear", "missing_reason"):
        state = move(flow, state, event)

    assert ["ask_order_id", "ask_order_id", "ask_order_id", "ask_reason"] == state["path"]
    assert {"ask_order_id": 3, "ask_reason": 1} == state["entries"]


def test_an_unknown_node_or_event_is_refused() -> None:
    """A state or an event from outside the file moves nothing."""
    flow = PACK.flows["refund"]

    with pytest.raises(RefusedError):
        move(flow, at(flow, "no_such_node"), "ok")
    with pytest.raises(RefusedError):
        move(flow, at(flow, "start"), "no_such_event")


def test_the_refund_flow_has_all_its_nodes() -> None:
    """All nodes of R-003-07 are there."""
    wanted = {"start", "ask_order_id", "ask_reason", "check_order", "confirm_detail", "update_detail", "execute_refund",
              "notify_success", "handle_failure", "explain_invalid_order", "explain_policy_violation",
              "end_without_execution", "transfer_human"}  # fmt: skip

    assert wanted <= PACK.flows["refund"].nodes.keys()


@pytest.mark.parametrize("guard", ["check_order", "confirm_detail"])
def test_a_refund_can_not_get_round_its_guards(guard: str) -> None:
    """check_order and confirm_detail lie on every path to the refund (R-003-08)."""
    flow = PACK.flows["refund"]

    assert "execute_refund" in graph.reachable(flow.edges(), flow.start)
    assert "execute_refund" not in graph.reachable(flow.edges(), flow.start, without=guard)


@pytest.mark.parametrize(("flow", "name"), WRITES, ids=lambda one: getattr(one, "flow", one))
def test_a_change_is_entered_by_a_yes_only(flow: Flow, name: str) -> None:
    """Only the customer's yes at a confirm node leads to a call that changes something (R-003-08)."""
    ways = {(here, event) for here, pairs in flow.edges().items() for event, there in pairs if there == name}

    assert ways
    assert all(flow.nodes[here].kind == "confirm" and event == "confirmed" for here, event in ways)


@pytest.mark.parametrize(("flow", "node"), NODES, ids=lambda one: getattr(one, "flow", one))
def test_every_node_has_a_way_to_an_end(flow: Flow, node: str) -> None:
    """No node is a dead end, and a person can be reached from every one that is no end (R-003-07, R-003-13)."""
    reached = graph.reachable(flow.edges(), node)

    assert any(flow.nodes[one].terminal for one in reached)
    assert flow.nodes[node].terminal or "transfer_human" in reached


@pytest.mark.parametrize(("event", "slots"), [
    ("missing_order_id", {}),
    ("missing_reason", {"order_id": "1001"}),
    ("missing_order_id", {"order_id": "", "reason": "broken"}),
    ("complete", {"order_id": "1001", "reason": "broken"}),
])  # fmt: skip
def test_what_is_missing_is_asked_in_order(event: str, slots: dict[str, Any]) -> None:
    """The first required slot without a value says what comes next."""
    assert event == missing(PACK.flows["refund"], slots)


def test_reachability_closes_a_node() -> None:
    """Closing the start leaves nothing, closing another node leaves the rest."""
    edges = {"a": (("x", "b"), ("y", "c")), "b": (("x", "d"),), "c": (), "d": ()}

    assert set() == graph.reachable(edges, "a", without="a")
    assert {"a", "c"} == graph.reachable(edges, "a", without="b")
    assert {"a", "b", "c", "d"} == graph.reachable(edges, "a")


def test_no_two_events_are_the_same() -> None:
    """The closed list of events has no name twice, and each flow adds one for each slot it requires."""
    for flow, events in ((flow, flow.events) for flow in PACK.flows.values()):
        assert len(events) == len(set(events))
        assert all(f"missing_{slot}" in events for slot in flow.requires)


def test_every_intent_has_one_flow() -> None:
    """An intent begins exactly one flow, and the slice's flows are all there."""
    pairs = list(product(PACK.flows.values(), repeat=2))

    assert all(one is two or not set(one.intents) & set(two.intents) for one, two in pairs)
    assert {"refund", "refund_status", "logistics", "change_address", "human"} <= PACK.by_intent.keys()
