"""The flow loader names file, node and field of everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.flows.diagram import document
from agents.flows.model import PACK as FILES
from agents.flows.model import FlowError, load_flow, load_flows
from tests.agents.support import PACK

REFUND = yaml.safe_load((FILES / "refund.yaml").read_text(encoding="utf-8"))
ROOT = Path(__file__).parents[3]
Edit = Callable[[dict[str, Any]], object]


def write(folder: Path, edit: Edit, name: str = "refund") -> Path:
    """The refund flow with one edit, as a file."""
    flow = yaml.safe_load(yaml.safe_dump(REFUND))
    edit(flow)
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(flow, allow_unicode=True), encoding="utf-8")
    return path


@pytest.mark.parametrize(("node", "field", "edit"), [
    ("confirm_detail", "confirmed", lambda flow: flow["table"]["confirm_detail"].update(confirmed="nowhere")),
    ("confirm_detail", "shrugged", lambda flow: flow["table"]["confirm_detail"].update(shrugged="start")),
    ("ghost", "table", lambda flow: flow["table"].update(ghost={"ok": "start"})),
    ("update_detail", "table", lambda flow: flow["table"].pop("update_detail")),
    ("notify_success", "table", lambda flow: flow["table"].update(notify_success={"ok": "start"})),
    ("lonely", "table", lambda flow: flow["nodes"].update(lonely=flow["nodes"]["notify_success"])),
    ("ask_reason", "missing_reason", lambda flow: flow["table"]["ask_reason"].update(missing_reason="execute_refund")),
    ("check_order", "ok", lambda flow: flow["table"]["check_order"].update(ok="execute_refund")),
    ("execute_refund", "tool", lambda flow: flow["nodes"]["confirm_detail"].update(never_skipped=False)),
    ("check_order", "never_skipped", lambda flow: flow["table"]["ask_reason"].update(complete="confirm_detail")),
    ("check_order", "tool", lambda flow: flow["nodes"]["check_order"].update(tool="get-order")),
    ("check_order", "args", lambda flow: flow["nodes"]["check_order"].update(args={})),
    ("check_order", "args", lambda flow: flow["nodes"]["check_order"].update(args={"order_id": "order_id", "x": "y"})),
    ("check_order", "args", lambda flow: flow["nodes"]["check_order"]["args"].update(customer_id="text")),
    ("check_order", "check", lambda flow: flow["nodes"]["check_order"].update(check="guess")),
    ("check_order", "errors", lambda flow: flow["nodes"]["check_order"].update(errors={"boom": "explode"})),
    ("check_order", "goal", lambda flow: flow["nodes"]["check_order"].pop("goal")),
    ("check_order", "speed", lambda flow: flow["nodes"]["check_order"].update(speed=3)),
    ("ask_reason", "slot", lambda flow: flow["nodes"]["ask_reason"].pop("slot")),
    ("ask_reason", "slot", lambda flow: flow["nodes"]["ask_reason"].update(slot="mood")),
    ("ask_reason", "template", lambda flow: flow["nodes"]["ask_reason"].update(template="no.such")),
    ("update_detail", "template", lambda flow: flow["nodes"]["update_detail"]["variants"].update(x="no.such")),
    ("begin", "start", lambda flow: flow.update(start="begin")),
    ("nowhere", "plan", lambda flow: flow["plan"].append("nowhere")),
    ("anywhere", "stopped", lambda flow: flow["anywhere"].update(stopped="nowhere")),
    ("(flow)", "exit_conditions", lambda flow: flow.pop("exit_conditions")),
    ("(flow)", "fallback_action", lambda flow: flow.pop("fallback_action")),
    ("(flow)", "fallback_action.type", lambda flow: flow["fallback_action"].update(type="hope")),
])  # fmt: skip
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, node: str, field: str, edit: Edit) -> None:
    """Unknown nodes, dead ends, unreachable nodes and skippable guards are refused; R-002-24's fields are required."""
    with pytest.raises(FlowError) as caught:
        load_flow(write(tmp_path, edit), PACK.tools, frozenset(PACK.templates))

    assert ("refund.yaml", node, field) == (caught.value.file, caught.value.node, caught.value.field)
    assert f"refund.yaml: {node}: {field}: " in str(caught.value)


def test_a_loop_without_an_end_is_refused(tmp_path: Path) -> None:
    """A node from which no end can be reached is refused (R-003-07)."""

    def loop(flow: dict[str, Any]) -> None:
        flow["anywhere"] = {}
        flow["table"]["find_orders"] = {"ok": "choose_order"}
        flow["table"]["choose_order"] = {"unclear": "find_orders"}

    with pytest.raises(FlowError, match="never comes to an end"):
        load_flow(write(tmp_path, loop), PACK.tools)


def test_the_name_is_the_files_name(tmp_path: Path) -> None:
    """A flow is found by its file: both names are one."""
    with pytest.raises(FlowError, match="must be the file's name"):
        load_flow(write(tmp_path, lambda _: None, "exchange"), PACK.tools)


def test_broken_yaml_is_named(tmp_path: Path) -> None:
    """A file that is no YAML is refused by its name."""
    (tmp_path / "refund.yaml").write_text("flow: [", encoding="utf-8")

    with pytest.raises(FlowError, match=r"refund\.yaml: .*no YAML"):
        load_flow(tmp_path / "refund.yaml", PACK.tools)


def test_a_new_flow_is_a_new_file(tmp_path: Path) -> None:
    """A folder beside the built-in one adds a flow, without any other edit."""

    def other(flow: dict[str, Any]) -> None:
        flow.update(flow="cancel", intents=["cancel"])

    write(tmp_path, other, "cancel")

    assert {*PACK.flows, "cancel"} == set(load_flows(PACK.tools, None, FILES, tmp_path))


def test_two_flows_can_not_share_an_intent(tmp_path: Path) -> None:
    """Which flow an intent begins is never a matter of order."""
    write(tmp_path, lambda flow: flow.update(flow="again"), "again")

    with pytest.raises(FlowError, match="'refund' is taken by"):
        load_flows(PACK.tools, None, FILES, tmp_path)


def test_the_diagrams_are_those_of_the_tables() -> None:
    """docs/flows.md is what the tables give (habit 2)."""
    assert document(PACK.flows) == (ROOT / "docs" / "flows.md").read_text(encoding="utf-8")


def test_the_diagram_has_every_row() -> None:
    """Each row of a table is an arrow, each end leads out."""
    page = document(PACK.flows)

    for flow in PACK.flows.values():
        for node, row in flow.table.items():
            assert all(f"    {node} --> {there}: " in page for there in row.values())
        assert all(f"    {name} --> [*]" in page for name, node in flow.nodes.items() if node.terminal)
