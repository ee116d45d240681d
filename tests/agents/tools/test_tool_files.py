"""The tool files and their loader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.tools.fallback import estimate
from agents.tools.spec import PACK, SpecError, load_tool, load_tools

REFUND = yaml.safe_load((PACK / "create_refund.yaml").read_text(encoding="utf-8"))
Edit = Callable[[dict[str, Any]], object]


def write(folder: Path, edit: Edit, name: str = "create_refund") -> Path:
    """The refund tool with one edit, as a file."""
    tool = yaml.safe_load(yaml.safe_dump(REFUND))
    edit(tool)
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(tool), encoding="utf-8")
    return path


def test_the_pack_has_the_slices_tools() -> None:
    """Queries run, writes need a key and a way to ask whether they happened, money is money."""
    tools = load_tools()

    assert {"get_order", "create_refund", "change_address", "get_logistics", "list_orders"} <= tools.keys()
    assert {"create_refund": "money", "change_address": "write", "get_order": "query"}.items() <= {
        name: spec.risk for name, spec in tools.items()
    }.items()
    assert all(spec.idempotency == "key" and spec.confirm_path for spec in tools.values() if spec.risk != "query")


def test_the_customer_is_never_read_from_text() -> None:
    """Every tool's customer_id comes from the sender."""
    assert all(spec.input_schema["customer_id"].source == "sender" for spec in load_tools().values())


def test_three_seconds_and_two_retries() -> None:
    """Hard timeout 3 s (R-003-21), two retries from 100 ms (R-002-27)."""
    for spec in load_tools().values():
        assert (3_000, 2, 100) == (spec.timeout_ms, spec.retries.max, spec.retries.base_ms)


@pytest.mark.parametrize(("field", "part", "edit"), [
    ("risk", "Input should be", lambda tool: tool.update(risk="free")),
    ("speed", "Extra inputs", lambda tool: tool.update(speed=1)),
    ("timeout_ms", "less than or equal to 5000", lambda tool: tool.update(timeout_ms=9_000)),
    ("input_schema.reason.type", "Input should be", lambda tool: tool["input_schema"]["reason"].update(type="float")),
    ("(tool)", "'colour' is used but not in", lambda tool: tool["body"].update(colour="colour")),
    ("(tool)", "'reason' is in input_schema but not sent", lambda tool: tool["body"].pop("reason")),
    ("(tool)", "'iban' is no argument", lambda tool: tool.update(sensitive_fields=["iban"])),
    ("(tool)", "'phone' looks sensitive and is not declared", lambda tool: (
        tool["input_schema"].update(phone={"type": "string", "required": False}), tool["body"].update(phone="phone"))),
    ("(tool)", "no regular expression", lambda tool: tool["input_schema"]["reason"].update(pattern="(")),
    ("(tool)", "a write needs idempotency", lambda tool: tool.update(idempotency="none")),
    ("(tool)", "a write needs idempotency", lambda tool: tool.update(confirm_path="/effects")),
    ("(tool)", "needs a `default`", lambda tool: tool["fallback"]["levels"].pop("default")),
    ("fallback", "Field required", lambda tool: tool.pop("fallback")),
])  # fmt: skip
def test_a_wrong_tool_is_refused_by_name(tmp_path: Path, field: str, part: str, edit: Edit) -> None:
    """File and field of everything that is wrong are named, an undeclared sensitive argument, too (R-004-19)."""
    with pytest.raises(SpecError, match=part) as caught:
        load_tool(write(tmp_path, edit))

    assert ("create_refund.yaml", field) == (caught.value.file, caught.value.field)


def test_the_file_carries_the_tools_name(tmp_path: Path) -> None:
    """A tool is found by its file, so both names are one; a file that is no YAML is named."""
    with pytest.raises(SpecError, match="must be the file's name"):
        load_tool(write(tmp_path, lambda _: None, "refund_order"))
    (tmp_path / "bad.yaml").write_text("name: [", encoding="utf-8")
    with pytest.raises(SpecError, match=r"bad\.yaml"):
        load_tool(tmp_path / "bad.yaml")


def test_a_later_folder_wins(tmp_path: Path) -> None:
    """A shop's own tool file replaces the built-in one."""
    write(tmp_path, lambda tool: tool.update(timeout_ms=1_000))

    assert 1_000 == load_tools(PACK, tmp_path)["create_refund"].timeout_ms


@pytest.mark.parametrize(("fen", "days", "level"), [
    (8_000, 3, "gold"), (5_000, 5, "standard"), (5_000, 5, None), (5_000, 5, "platinum"),
])  # fmt: skip
def test_the_fallback_is_computed_and_never_a_success(fen: int, days: int, level: str | None) -> None:
    """Gold 0.8 in 3 days, anybody else 0.5 in 5 days, and the refund's status is unknown (R-002-28)."""
    found = estimate(load_tools()["create_refund"], level, 10_000)

    assert {"refund_status": "unknown", "estimate_fen": fen, "days": days} == found


def test_a_query_estimates_nothing() -> None:
    """Only a tool that says so has an estimate."""
    assert {} == estimate(load_tools()["get_order"], "gold", 10_000)
