"""What a tool answered: only the declared shape is a success, whatever the HTTP status says (H13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agents.tools.spec import ToolSpec
from memory.masking import hide, mask
from schemas.tools import ToolError

MAX_ROWS = 50  # of a list in a result; the rest as a count (R-004-07)
MAX_TEXT = 2_000
_PERSONAL = frozenset({"address", "phone", "email", "id_card"})  # masked in every result (promise 9)
_NAMES = frozenset({"customer_name", "full_name", "receiver", "recipient", "contact"})


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer as far as the handler needs it."""

    status: int
    body: bytes
    replayed: bool = False


def refusal(answer: Answer) -> ToolError | None:
    """The error that the service gave, also inside a 200; None when there is none."""
    body = _object(answer.body)
    error = body.get("error")
    if isinstance(error, dict):
        return ToolError(
            code=_code(error.get("code"), answer.status), message=mask(str(error.get("message", "")))[0][:MAX_TEXT]
        )
    if body.get("errcode") not in (None, 0):
        return ToolError(code=_code(f"errcode_{body['errcode']}", answer.status),
                         message=mask(str(body.get("errmsg", "")))[0][:MAX_TEXT])  # fmt: skip
    if answer.status >= 400:
        return ToolError(code=f"http_{answer.status}", message=f"the service answered {answer.status}")
    return None


def output(spec: ToolSpec, args: Mapping[str, Any], body: bytes) -> dict[str, Any] | ToolError:
    """The answer's fields, or why they are no success: a field missing, a value not declared, or not what was asked."""
    data = _object(body)
    problem = next(_problems(spec, args, data), None)
    return ToolError(code="bad_output", message=f"{spec.name}: {problem}") if problem else data


def recorded(spec: ToolSpec, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they may be recorded: personal ones masked, long lists cut with the rest as a count."""
    hidden = _PERSONAL | set(spec.sensitive_fields)
    result: dict[str, Any] = {}
    for name, value in data.items():
        result[name] = _shown(name, value, hidden)
        if isinstance(value, list) and len(value) > MAX_ROWS:
            result[f"{name}_omitted"] = len(value) - MAX_ROWS
    return result


def _shown(name: str, value: Any, hidden: frozenset[str] | set[str]) -> Any:
    if isinstance(value, str):
        if name == "address" or name in _NAMES:
            return hide("address" if name == "address" else "name", value)
        return mask(value)[0] if name in hidden else value
    if isinstance(value, dict):
        return {inner: _shown(inner, part, hidden) for inner, part in value.items()}
    if isinstance(value, list):
        return [_shown(name, part, hidden) for part in value[:MAX_ROWS]]
    return value


def _problems(spec: ToolSpec, args: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[str]:
    for name in spec.output_schema.required:
        if data.get(name) is None:
            yield f"{name} is missing in the answer"
    for name, values in spec.output_schema.enums.items():
        if data.get(name) not in values:
            yield f"{name} is none of {', '.join(values)}"
    for name in spec.output_schema.required:
        # an answer about another order is no success of this call
        if name in args and data.get(name) != args[name]:
            yield f"{name} is not the one that was asked for"


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _code(value: Any, status: int) -> str:
    """The service's code where it is one, such as over_amount."""
    text = value.lower() if isinstance(value, str) else ""
    plain = text.isascii() and text.replace("_", "a").replace(".", "a").replace("-", "a").isalnum()
    return text if plain and len(text) <= 64 and text[0].isalnum() else f"http_{status}"
