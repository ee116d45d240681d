"""Labelled sentences: the package's own (examples/<language>/<intent>.yaml), or a user's CSV file.

One file an intent and language: `intent: refund` and `examples: [...]`, in the words that customers use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml
from pydantic import Field, ValidationError

from schemas.base import Model

LANGUAGES = ("en", "zh")


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


def data_hash(examples: Iterable[Example]) -> str:
    """The SHA-256 of labelled sentences, whatever their order; it stamps the model that was fitted on them."""
    digest = hashlib.sha256()
    for example in sorted(examples):
        digest.update(f"{example.language}\x1f{example.intent}\x1f{example.text}\n".encode("utf-8", "replace"))
    return digest.hexdigest()
