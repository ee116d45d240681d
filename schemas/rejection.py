"""Why a record is refused, in words that name field and fault and never show the value."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.base import MAX_MILLIS, MIN_MILLIS
from schemas.errors import BadRecordError

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}", re.ASCII)
_UNITS = ((1_000, "seconds"), (1 / 1_000, "microseconds"), (1 / 1_000_000, "nanoseconds"))
# What pydantic reports, to our codes; anything else is a wrong value.
_CODES = {
    "missing": "missing_field",
    "extra_forbidden": "unknown_field",
    "union_tag_not_found": "missing_field",
}
_OTHERS = 5  # fields beside the first that are named
_PARSER_DEPTH = 1_000  # orjson stops a little above, and then only says that the text ends
_SCALARS = {type(None): "null", bool: "a boolean", int: "an integer", float: "a number"}


def invalid_json(error: json.JSONDecodeError, value: bytes, topic: str) -> BadRecordError:
    """Of a JSON parser's error: the kind and the place."""
    text = str(error).lower()
    where = f"near character {error.pos}"
    head = value[: error.pos]
    if head.count(b"[") + head.count(b"{") - head.count(b"]") - head.count(b"}") >= _PARSER_DEPTH:
        return BadRecordError(f"nested deeper than {_PARSER_DEPTH}", code="too_deep", topic=topic)
    if "surrogate" in text or "utf-8" in text:
        return BadRecordError(f"not UTF-8, or a lone surrogate, {where}", code="not_utf8", topic=topic)
    if "infinity" in text:
        return BadRecordError(f"a number beyond a double, {where}", code="number_range", topic=topic)
    return BadRecordError(f"not JSON, {where}", code="not_json", topic=topic)


def invalid_model(error: ValidationError, topic: str, data: Any) -> BadRecordError:
    """Of a validation error of `data`: the first field, what it expects, the type and length found; other fields."""
    first, *rest = error.errors(include_url=False)
    code, reason = _explain(first)
    fields = [name for name in dict.fromkeys(_field(one, data) for one in rest[:_OTHERS]) if name]
    others = f" (and {len(rest)} more{': ' if fields else ''}{', '.join(fields)})" if rest else ""
    return BadRecordError(reason + others, code=code, topic=topic, field=_field(first, data))


def _field(error: ErrorDetails, data: Any) -> str:
    """The path as it is in the data. pydantic also names the chosen member of a union there: that is left out."""
    path: list[int | str] = []
    node, last = data, len(error["loc"]) - 1
    for number, part in enumerate(error["loc"]):
        if _holds(node, part):
            path.append(part)
            node = node[part]
        elif number == last and isinstance(node, dict):
            path.append(part)
    if error["type"].startswith("union_tag_"):
        path.append(error["ctx"]["discriminator"].strip("'"))
    return ".".join(map(_safe, path))


def _holds(node: Any, part: int | str) -> bool:
    if isinstance(node, dict):
        return part in node
    return isinstance(node, list) and isinstance(part, int) and part < len(node)


def _explain(error: ErrorDetails) -> tuple[str, str]:
    kind, context = error["type"], error.get("ctx", {})
    if kind in {"missing", "union_tag_not_found"}:
        return _CODES[kind], "missing"
    if kind == "extra_forbidden":
        return _CODES[kind], "this version has no such field; send a newer dataschema, or leave it out"
    found = describe(error["input"])
    if kind == "union_tag_invalid":  # its own text shows the value
        return "wrong_value", f"expected one of {context['expected_tags']}"
    if MIN_MILLIS in context.values() or MAX_MILLIS in context.values():
        return "wrong_time", _time(error["input"])
    code = "wrong_type" if kind.endswith("_type") else "wrong_value"
    if kind == "int_type" and str(error["loc"][-1]).endswith("_at"):
        return code, f"expected UTC milliseconds since 1970, a whole number; found {found}"
    return code, f"{error['msg'].removeprefix('Value error, ')}; found {found}"


def _time(value: Any) -> str:
    """Which unit a time was probably meant in (case D15)."""
    for factor, unit in _UNITS:
        if MIN_MILLIS <= value * factor <= MAX_MILLIS:
            return f"expected UTC milliseconds since 1970; this looks like {unit}"
    return "expected UTC milliseconds since 1970, of the years 2000 to 9999"


def beyond_64_bits(value: Any, path: str = "") -> Iterator[str]:
    """The paths of the integers in plain data that JSON readers would round or refuse."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from beyond_64_bits(part, f"{path}.{_safe(name)}".removeprefix("."))


def describe(value: Any) -> str:
    """Type and size of a JSON value, and nothing of what it says."""
    if isinstance(value, str):
        return f"text of {len(value)} characters"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    return _SCALARS.get(type(value), "another type")


def repeated(names: Sequence[str]) -> str:
    """The first name that is there a second time, for people."""
    return f"the key {_safe(next(name for name, count in Counter(names).items() if count > 1))}"


def _safe(part: int | str) -> str:
    """A part of a field's path; a key that is data, not a name, is not shown."""
    if isinstance(part, int) or _PLAIN_KEY.fullmatch(part):
        return str(part)
    return f"<key of {len(part)} characters>"
