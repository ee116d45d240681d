"""The form that a model fills in: few named fields, at most two levels deep, read strictly (R-000-08, R-000-22).

The function schema enforces the shape (R-004-20, X10); what does not fit it is refused whole, and never mended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args

import orjson
from pydantic import Field, StringConstraints, ValidationError

from agents.understanding.normalize import first_fault
from schemas.base import Model, Share
from schemas.messages import INTENTS

FUNCTION = "read_message"
_Shape = TypeVar("_Shape", bound=Model)
Movement = Literal["look_up", "ask_customer", "change", "pay", "hand_over", "answer"]
Missing = Literal["order_id", "item", "reason", "address", "phone", "amount", "choice", "intent"]
Quote = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Number = Annotated[str, StringConstraints(min_length=1, max_length=40)]


@dataclass(frozen=True, slots=True)
class Step:
    """What a movement of a plan is for, the kind of tool that it needs, and what is done when that fails (R-000-04)."""

    goal: str
    tool: Literal["none", "query", "write", "money"]
    fallback: str


MOVEMENTS: dict[str, Step] = {
    "look_up": Step("read what the shop knows", "query", "say that it can't be seen now"),
    "ask_customer": Step("get what is missing", "none", "a person"),
    "change": Step("change something at the shop", "write", "a person"),
    "pay": Step("move money", "money", "a person"),
    "hand_over": Step("bring a person", "none", "say that one will come"),
    "answer": Step("answer in words", "none", "a person"),
}


class Form(Model):
    """What a model says of one message: required fields first, those it may leave out below (R-000-07, R-000-22)."""

    intent: str
    evidence: tuple[Quote, ...] = Field(max_length=5)
    plan: tuple[Movement, ...] = Field(max_length=6)
    to_confirm: tuple[Missing, ...] = Field(max_length=8)
    confidence: Share | None = None
    other_intents: tuple[str, ...] = Field(default=(), max_length=5)
    order_ids: tuple[_Number, ...] = Field(default=(), max_length=5)
    inferences: tuple[Quote, ...] = Field(default=(), max_length=3)

    @property
    def tools_needed(self) -> tuple[str, ...]:
        """The kinds of tools that the plan would need, told by its movements (R-000-07)."""
        return tuple(dict.fromkeys(kind for name in self.plan if (kind := MOVEMENTS[name].tool) != "none"))


class BrokenFormError(ValueError):
    """The answer is no such form; the message names the first fault and no value, fit to be told to the model."""


def read_form(raw: str) -> Form:
    """The form of an answer's text. Raises BrokenFormError."""
    return checked_form(data_of(raw))


def data_of(raw: str) -> Any:
    """The JSON data of an answer's text. Raises BrokenFormError."""
    try:
        return orjson.loads(_object(raw))
    except orjson.JSONDecodeError as error:
        message = f"the answer is no JSON object: {error.msg} at character {error.pos}"
        raise BrokenFormError(message) from None


def shaped(shape: type[_Shape], value: Any) -> _Shape:
    """JSON data as that form, one of the forms that models fill in. Raises BrokenFormError."""
    try:
        return shape.model_validate_json(orjson.dumps(value))
    except ValidationError as error:
        raise BrokenFormError(first_fault(error)) from None
    except TypeError as error:  # a number beyond 64 bits
        message = f"the answer can't be read: {error}"
        raise BrokenFormError(message) from None


def checked_form(value: Any) -> Form:
    """The form of JSON data, as strictly as from text. Raises BrokenFormError."""
    form = shaped(Form, value)
    strange = next((name for name in (form.intent, *form.other_intents) if name not in INTENTS), None)
    if strange is not None:
        message = "intent: not one of the listed intents"
        raise BrokenFormError(message)
    return form


def _object(raw: str) -> str:
    """Where a server has no function calls, the object stands in the text, perhaps fenced or behind thoughts."""
    text = raw.rpartition("</think>")[2].strip()
    if text.startswith(("{", "[")):
        return text
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _texts(about: str, *, of: tuple[str, ...] | None = None, most: int, least: int = 0) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "string"} if of is None else {"type": "string", "enum": list(of)}
    return {"type": "array", "items": item, "minItems": least, "maxItems": most, "description": about}


def function_schema() -> dict[str, Any]:
    """The function as a `tools` entry of a chat completion; the object is one level, its lists the other."""
    properties = {
        "intent": {"type": "string", "enum": list(INTENTS), "description": "what the customer wants most"},
        "evidence": _texts("the customer's own words that show it, copied exactly", most=5),
        "plan": _texts("numbered by order: movements that would follow", of=get_args(Movement), most=6),
        "to_confirm": _texts("what is missing or unsure", of=get_args(Missing), most=8),
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "other_intents": _texts("further wishes in the same message", of=INTENTS, most=5),
        "order_ids": _texts("order numbers that stand in the message", most=5),
        "inferences": _texts("what is concluded and not said, a few words each", most=3),
    }
    parameters = {"type": "object", "properties": properties, "additionalProperties": False,
                  "required": ["intent", "evidence", "plan", "to_confirm"]}  # fmt: skip
    about = "Record the reading of one customer message."
    return {"type": "function", "function": {"name": FUNCTION, "description": about, "parameters": parameters}}
