"""A call's arguments: their hash, and the gate that checks them against the tool's schema (R-003-16)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import orjson

from agents.tools.spec import Argument, ToolSpec

# Strings that are no customer's words in an argument: markup, template and SQL tricks, path tricks, orders to a model.
_INJECTION = re.compile(
    r"<\s*script|javascript:|\{\{|\$\{|\.\./|\x00|;\s*(?:drop|delete|update|insert)\s|'\s*or\s+'?1'?\s*=\s*'?1|--\s*$"
    r"|union\s+select|ignore\s+(?:all\s+|the\s+)?previous|system\s+prompt|忽略(?:之前|以上|前面)的?(?:所有)?(?:指令|要求)",
    re.IGNORECASE,
)


def args_hash(tool: str, args: Mapping[str, Any], seal: Mapping[str, Any] | None = None,
              seals: Mapping[str, Mapping[str, Any]] | None = None) -> str:  # fmt: skip
    """Hex SHA-256 of tool and arguments as canonical JSON.

    Where clear values travel sealed, their ciphertext takes part, so that the hash binds them too.
    """
    bound: dict[str, Any] = {"tool": tool, "args": args, "sealed": None if seal is None else seal.get("sealed")}
    if seals:
        bound["seals"] = {name: one.get("sealed") for name, one in seals.items()}
    return hashlib.sha256(orjson.dumps(bound, option=orjson.OPT_SORT_KEYS)).hexdigest()


def problems(spec: ToolSpec, args: Mapping[str, Any], sender: str) -> list[tuple[str, str]]:
    """What is wrong with the arguments as (code, message), worst first; empty when all is well."""
    found = [("unknown_argument", f"{name} is no argument of {spec.name}; it has {', '.join(spec.input_schema)}")
             for name in args if name not in spec.input_schema]  # fmt: skip
    for name, argument in spec.input_schema.items():
        value = args.get(name)
        if value is None:
            if argument.required:
                found.append(("missing_argument", f"{name} is missing"))
            continue
        # Checked here again: a call can come from a file or a person, not only from planning.
        if argument.source == "sender" and value != sender:
            found.append(("not_sender", f"{name} must be the conversation's own customer"))
        problem = _value(argument, value)
        if problem:
            found.append(("bad_argument", f"{name} {problem}"))
        elif isinstance(value, str) and _INJECTION.search(value):
            found.append(("injection", f"{name} holds text that no argument may hold"))
    return found


def _value(argument: Argument, value: Any) -> str:
    if argument.type == "integer":
        if type(value) is not int:  # a bool is an int to Python, and no amount
            return "must be an integer"
        size, unit = value, ""
    else:
        if not isinstance(value, str):
            return "must be a string"
        # fullmatch: a pattern without anchors must not let a line of something else ride along.
        if argument.regex is not None and not argument.regex.fullmatch(value):
            return f"must match {argument.pattern}"
        size, unit = len(value), " characters"
    if argument.min is not None and size < argument.min:
        return f"must be at least {argument.min}{unit}"
    if argument.max is not None and size > argument.max:
        return f"must be at most {argument.max}{unit}"
    return ""
