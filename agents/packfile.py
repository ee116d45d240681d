"""Reads the YAML of pack files: a key stands once in a mapping, and what is no YAML is told by line."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml


class _Strict(yaml.SafeLoader):
    """Of a key that is there twice YAML keeps the last one: half of a table could vanish in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 (PyYAML's signature)
        seen: set[Hashable] = set()
        for part, _ in node.value:
            key = self.construct_object(part, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is there twice", part.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read(path: Path) -> Any:
    """The file's content as plain data. Raises YAMLError (see `problem`), OSError, UnicodeDecodeError."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_Strict)  # noqa: S506 (a SafeLoader)


def problem(error: yaml.YAMLError) -> str:
    """What is wrong with the YAML, and in which line, on one line."""
    mark, said = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
    return f"is no YAML: {said}" + (f", line {mark.line + 1}" if mark else "")
