"""The form: few named fields, two levels, read strictly; and the protocol that asks for it."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models.form import (
    MOVEMENTS,
    BrokenFormError,
    Form,
    Movement,
    checked_form,
    function_schema,
    read_form,
)
from agents.models.prompt import PROTOCOL, VERSION
from memory.prompt import SYSTEM_TOKENS
from memory.tokens import count
from schemas.messages import INTENTS
from tests.models.stub import form

PARAMETERS = function_schema()["function"]["parameters"]


def depth(schema: dict[str, Any]) -> int:
    """Levels of objects and lists that a value of the schema has."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return (schema["type"] in ("object", "array")) + max(map(depth, inner), default=0)


def test_the_form_is_two_levels_deep() -> None:
    """The object and its lists, and nothing below (R-000-08)."""
    assert 2 == depth(PARAMETERS)


def test_schema_and_parser_know_the_same_fields() -> None:
    """What the function schema asks for is what is read, required and optional apart (R-004-20, R-000-22)."""
    fields = Form.model_fields
    assert set(fields) == set(PARAMETERS["properties"])
    assert [name for name, one in fields.items() if one.is_required()] == PARAMETERS["required"]
    assert 4 == len(PARAMETERS["required"])
    assert not PARAMETERS["additionalProperties"]
    assert list(INTENTS) == PARAMETERS["properties"]["intent"]["enum"]


def test_the_protocol_names_each_field_and_each_intent() -> None:
    """The system message asks for the named fields and forbids a free explanation (R-000-02)."""
    for name in (*PARAMETERS["properties"], *INTENTS, *get_args(Movement)):
        assert name in PROTOCOL, name
    assert "No explanation" in PROTOCOL
    assert count(PROTOCOL) <= SYSTEM_TOKENS


def test_another_protocol_is_another_version() -> None:
    """A word that changes in protocol or schema needs another version: answers are recorded with it (R-004-04)."""
    text = PROTOCOL.encode() + orjson.dumps(function_schema())
    assert ("reading-1", "02f63bc2c65c") == (VERSION, hashlib.sha256(text).hexdigest()[:12])


def test_each_movement_has_goal_tool_and_way_out() -> None:
    """The steps of a model's plan are ours: each has a goal, a tool or none, and a fallback (R-000-04, R-002-20)."""
    assert set(get_args(Movement)) == set(MOVEMENTS)
    assert all(step.goal and step.fallback for step in MOVEMENTS.values())
    read = checked_form(form("refund", "退", plan=["look_up", "ask_customer", "pay"]))
    assert ("query", "money") == read.tools_needed


FENCED = 'Sure.\n```json\n{"intent": "points", "evidence": [], "plan": [], "to_confirm": []}\n```'


@pytest.mark.parametrize("raw", [FENCED, "<think>{}</think>" + FENCED, FENCED[14:-4], " " + FENCED[14:-4] + "\n"])
def test_the_object_is_found_in_the_text(raw: str) -> None:
    """Where there are no function calls, the form may stand in words (R-004-20)."""
    assert "points" == read_form(raw).intent


GOOD = form("refund", "退款", confidence=0.5, order_ids=["1001"])


@pytest.mark.parametrize("change", [
    {"confidence": "0.5"}, {"confidence": 2}, {"confidence": True}, {"intent": None}, {"intent": "steal"},
    {"evidence": "退款"}, {"evidence": [["退款"]]}, {"evidence": [""]}, {"evidence": ["x"] * 6}, {"plan": ["run"]},
    {"to_confirm": [1]}, {"order_ids": [1001]}, {"order_ids": ["1" * 41]}, {"other_intents": ["steal"]},
    {"explanation": "because"}, {"inferences": ["x" * 201]},
], ids=str)  # fmt: skip
def test_what_does_not_fit_is_refused_whole(change: dict[str, Any]) -> None:
    """No field is mended or left out: a form with one wrong value is a broken form (R-000-09)."""
    assert "refund" == checked_form(GOOD).intent
    with pytest.raises(BrokenFormError):
        checked_form({**GOOD, **change})


@pytest.mark.parametrize("name", PARAMETERS["required"])
def test_a_required_field_is_required(name: str) -> None:
    """The fault names the field, so that the model can be told (R-000-09)."""
    with pytest.raises(BrokenFormError, match=name):
        checked_form({field: value for field, value in GOOD.items() if field != name})


@settings(max_examples=60)
@given(st.text(max_size=30) | st.none() | st.integers() | st.floats() | st.lists(st.integers(), max_size=2))
def test_whatever_comes_is_a_form_or_a_broken_one(raw: Any) -> None:
    """No answer makes the parser fail in another way (R-000-09)."""
    with contextlib.suppress(BrokenFormError):
        assert read_form(str(raw)).intent in INTENTS
    with contextlib.suppress(BrokenFormError):
        assert checked_form(raw).intent in INTENTS
