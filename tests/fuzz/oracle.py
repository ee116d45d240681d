"""What others hold of a value: Python's own JSON parser and jsonschema with the exported schema, nothing of ours."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from schemas.export import json_schema
from schemas.topics import TOPICS

DEPTH = 64


class _TwiceError(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def refused(topic: str, value: bytes) -> str:
    """Why the contract refuses the value: it must be a dead letter. "" where it does not, as far as others can tell.

    The schema says less than our models (a key's parts, say), so what it takes may still be refused.
    """
    try:
        plain = json.loads(value.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError:
        return "not UTF-8"
    except _TwiceError:
        return "a key is there twice"
    except (ValueError, RecursionError):
        return "not JSON"
    why = _odd(plain)
    if why:
        return why
    error = next(iter(_validator(topic).iter_errors(plain)), None)
    return "" if error is None else f"{error.validator} at {'/'.join(map(str, error.absolute_path))}"


def _odd(value: Any, depth: int = 0) -> str:
    """Half surrogate pairs, numbers that are none, integers beyond 64 bits, too deep."""
    if isinstance(value, str):
        return "a lone surrogate" if any("\ud800" <= char <= "\udfff" for char in value) else ""
    if isinstance(value, float):
        return "beyond a double" if value in (float("inf"), float("-inf")) else ""
    if isinstance(value, int):
        return "" if -(1 << 63) <= value < 1 << 64 else "beyond 64 bits"
    if not isinstance(value, dict | list):
        return ""
    if depth == DEPTH:
        return "too deep"
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return next((why for part in parts if (why := _odd(part, depth + 1))), "")


@cache
def _validator(topic: str) -> Draft202012Validator:
    found = TOPICS[topic]
    return Draft202012Validator(json_schema(found, found.version))
