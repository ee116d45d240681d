"""The form that asks what to remember: kinds with named fields, two levels, read strictly; and its protocol."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.form import BrokenFormError
from agents.remembering.lexicon import rules
from agents.remembering.question import (
    VERSION,
    Facts,
    Preferred,
    Stated,
    checked_facts,
    function_schema,
    messages,
    protocol,
    read_facts,
)
from memory.prompt import SYSTEM_TOKENS
from memory.tokens import count
from tests.agents.models.test_form import depth

PARAMETERS = function_schema()["function"]["parameters"]
ITEM = {"value": "蓝色围巾", "evidence": "那条蓝色围巾"}
CARRIER = {"key": "carrier", "stance": "like", "value": "顺丰", "evidence": "一律走顺丰"}


def test_the_form_is_two_levels_deep() -> None:
    """The object and its kinds, and nothing below (R-000-08)."""
    assert 2 == depth(PARAMETERS)


def test_schema_and_parser_know_the_same_fields() -> None:
    """The five kinds and their fields, required and optional apart, and no other (R-004-20, R-000-22)."""
    kinds = PARAMETERS["properties"]
    assert ["preference", "address", "complaint", "promise", "item"] == list(Facts.model_fields) == list(kinds)
    assert [] == PARAMETERS["required"]
    for name, shape in kinds.items():
        model = Preferred if name == "preference" else Stated
        assert list(model.model_fields) == list(shape["properties"]) == shape["required"]
        assert not shape["additionalProperties"]
    assert not PARAMETERS["additionalProperties"]
    assert [one.name for one in rules().subjects] == kinds["preference"]["properties"]["key"]["enum"]


def test_the_protocol_names_each_field_and_each_key() -> None:
    """The system message asks for the named fields and forbids a free explanation (R-000-02)."""
    named = (*Facts.model_fields, *Preferred.model_fields, *(one.name for one in rules().subjects))
    for name in (*named, "like", "avoid"):
        assert name in protocol(), name
    assert "No explanation" in protocol().replace("\n", " ")
    assert count(protocol()) <= SYSTEM_TOKENS


def test_another_protocol_is_another_version() -> None:
    """A word that changes in protocol or schema needs another version: answers are recorded with it (R-004-04)."""
    text = protocol().encode() + orjson.dumps(function_schema())
    assert ("remembering-1", "82347c0fc746") == (VERSION, hashlib.sha256(text).hexdigest()[:12])


def test_nothing_stands_beside_the_message() -> None:
    """The model is shown the message, quoted, and neither window nor profile: no tool's text is there (R-004-09)."""
    sent = messages('他说"好"')
    assert ["system", "user"] == [one["role"] for one in sent]
    assert [protocol(), 'The customer\'s message: "他说\\"好\\""'] == [one["content"] for one in sent]


def test_a_whole_form_and_an_empty_one_are_read() -> None:
    """Every kind may be left out, also all of them: most messages hold nothing."""
    assert Facts() == read_facts("{}")
    read = read_facts(orjson.dumps({"item": ITEM, "preference": CARRIER, "address": None}).decode())
    assert ("蓝色围巾", "carrier") == (read.item and read.item.value, read.preference and read.preference.key)


BROKEN: dict[str, Any] = {
    "a kind of its own": {"order": ITEM},
    "a key of its own": {"preference": {**CARRIER, "key": "refund_limit"}},
    "a key that is a path": {"preference": {**CARRIER, "key": "../../c-2/preference/carrier"}},
    "a stance of its own": {"preference": {**CARRIER, "stance": "must"}},
    "a field too many": {"item": {**ITEM, "reason": "the customer wants it"}},
    "a field missing": {"item": {"value": "蓝色围巾"}},
    "an empty value": {"item": {**ITEM, "value": ""}},
    "deeper": {"item": {**ITEM, "value": {"text": "蓝色围巾"}}},
    "two of a kind": {"item": [ITEM, ITEM]},
    "wrong types": {"item": {**ITEM, "value": 7}},
    "a list": [{"item": ITEM}],
    "null": None,
    "too long": {"item": {**ITEM, "evidence": "那" * 201}},
    "a number beyond 64 bits": {"item": {**ITEM, "value": 2**70}},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused_whole(name: str) -> None:
    """One fault and all of the form is none; the fault names the field and no value (R-000-09)."""
    with pytest.raises(BrokenFormError) as caught:
        checked_facts(BROKEN[name])
    assert "refund_limit" not in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(
    st.sampled_from(["item", "value", "evidence", "preference", "key"]) | st.text(), one)))  # fmt: skip
def test_anything_is_a_form_or_refused(value: Any) -> None:
    """Whatever a model answers, it is a form or a BrokenFormError (R-000-09)."""
    with contextlib.suppress(BrokenFormError):
        assert isinstance(checked_facts(value), Facts)
    with contextlib.suppress(BrokenFormError):
        assert isinstance(read_facts(str(value)), Facts)
