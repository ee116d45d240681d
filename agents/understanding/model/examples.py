"""Labelled sentences: the package's own (examples/<language>/<intent>.yaml), or a user's CSV file.

One file an intent and language: `intent: refund` and `examples: [...]`, in the words that customers use.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml
from pydantic import Field, ValidationError

from schemas.base import Model

LANGUAGES = ("en", "zh")
UNKNOWN = "und"  # the language of a sentence whose table does not say
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ExampleError(ValueError):
    """Labelled data is wrong: the message names file, line or entry, and field."""


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """One labelled sentence."""

    language: str
    intent: str
    text: str


class ExampleFile(Model):
    """examples/<language>/<intent>.yaml."""

    intent: str = Field(pattern=r"^[a-z][a-z_]*$")
    examples: list[str] = Field(min_length=1)


@cache
def shipped_examples() -> tuple[Example, ...]:
    """All sentences of the package, sorted. Raises ExampleError naming the file and what is wrong in it."""
    folder = files("agents.understanding") / "examples"
    found = [
        example
        for language in LANGUAGES
        for file in sorted((folder / language).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yaml")
        for example in _read(file, language)
    ]
    return tuple(sorted(found))


def _read(file: Traversable, language: str) -> list[Example]:
    where = f"examples/{language}/{file.name}"
    try:
        content = ExampleFile.model_validate(yaml.safe_load(file.read_text("utf-8")))
    except (ValidationError, yaml.YAMLError) as error:
        message = f"{where}: {error}"
        raise ExampleError(message) from error
    if f"{content.intent}.yaml" != file.name:
        message = f"{where}: intent: {content.intent!r} is not the name of the file"
        raise ExampleError(message)
    empty = next((index for index, text in enumerate(content.examples, 1) if not text.strip()), None)
    if empty:
        message = f"{where}: examples: entry {empty} is empty"
        raise ExampleError(message)
    return [Example(language, content.intent, text.strip()) for text in content.examples]


def read_csv(lines: Iterable[str], name: str) -> tuple[Example, ...]:
    """A user's labelled sentences: columns text, intent and perhaps language; the same one twice counts once.

    Raises ExampleError naming the file, the line and the field.
    """
    table = csv.DictReader(lines, strict=True)
    try:
        missing = [column for column in ("text", "intent") if column not in (table.fieldnames or ())]
        if missing:
            found = ", ".join(table.fieldnames or ()) or "nothing"
            raise _wrong(name, 1, missing[0], f"there is no such column, only {found}")
        rows = [_row(row, name, table.line_num) for row in table]
    except csv.Error as error:
        raise _wrong(name, table.line_num, "(row)", str(error)) from error
    labels: dict[tuple[str, str], tuple[str, int]] = {}
    for line, example in rows:
        known, first = labels.setdefault((example.language, example.text), (example.intent, line))
        if known != example.intent:
            raise _wrong(name, line, "intent", f"{example.intent!r}, but line {first} has {known!r} for the same text")
    return tuple(sorted({example for _, example in rows}))


def _row(row: dict[str, str], name: str, line: int) -> tuple[int, Example]:
    if None in row:
        raise _wrong(name, line, "(row)", "has more fields than the first line; put quotes around a text with commas")
    text, intent = (row["text"] or "").strip(), (row["intent"] or "").strip()
    if not text:
        raise _wrong(name, line, "text", "is empty")
    if not _NAME.fullmatch(intent):
        raise _wrong(name, line, "intent", f"{intent!r} is no name of lower-case letters, digits and _")
    return line, Example((row.get("language") or "").strip() or UNKNOWN, intent, text)


def _wrong(name: str, line: int, field: str, what: str) -> ExampleError:
    return ExampleError(f"{name}: line {line}: {field}: {what}")


def data_hash(examples: Iterable[Example]) -> str:
    """The SHA-256 of labelled sentences, whatever their order; it stamps the model that was fitted on them."""
    digest = hashlib.sha256()
    for example in sorted(examples):
        digest.update(f"{example.language}\x1f{example.intent}\x1f{example.text}\n".encode("utf-8", "replace"))
    return digest.hexdigest()
