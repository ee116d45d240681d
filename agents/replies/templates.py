"""Approved wording: YAML templates in two languages, with typed parameters; the loader names file, id and field.

What a customer, an order or a tool says is only ever a parameter, put in once and never read as a template.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agents import packfile
from schemas.base import yuan

PACK = Path(__file__).parent / "pack"
MAX_PARAM_CHARS = 300  # a longer text is cut: no parameter can push the wording out of sight
Kind = Literal["text", "words", "yuan", "number"]
Proof = Literal["tool_result", "memory_write", "task_plan", "customer_message"]

# Words that say that something was done: only a template that names its success tool may hold them (R-003-39).
_DONE = re.compile(
    r"退款成功|退款已受理|已(?:为您|经)?退款|已退\d|修改成功|已(?:为您)?(?:修改|改好|办好)|办理成功"
    r"|was accepted|(?:has|have) been (?:refunded|changed)|was changed|successful|refunded you"
)
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class TemplateError(ValueError):
    """A template file is wrong: `file`, `template`, `field`."""

    def __init__(self, file: str, template: str, field: str, problem: str) -> None:
        super().__init__(f"template {file}: {template}: {field}: {problem.removeprefix('Value error, ')}")
        self.file, self.template, self.field, self.problem = file, template, field, problem


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Offer(_Part):
    """A numbered choice: what it means (an event of the flow, or an intent), and its label."""

    event: str | None = None
    intent: str | None = None
    zh: str
    en: str


class Template(_Part):
    """One approved message."""

    params: dict[str, Kind] = {}
    success: str | None = Field(default=None, description="the tool whose success it claims; none: it claims none")
    facts: tuple[Proof, ...] = Field(default=(), description="evidence of one of these kinds is required")
    zh: str = Field(min_length=1)
    en: str = Field(min_length=1)
    choices: tuple[Offer, ...] = Field(default=(), max_length=9)

    @cached_property
    def parts(self) -> Mapping[str, tuple[tuple[str, str | None], ...]]:
        """By language: literal text and the parameter that follows it."""
        return {"zh": _parse(self.zh), "en": _parse(self.en)}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        used = {name for parts in self.parts.values() for _, name in parts if name is not None}
        if used != self.params.keys():
            problem = f"placeholders {sorted(used)} and params {sorted(self.params)} differ"
            raise ValueError(problem)
        # The wording is checked where it enters: a reviewer of a pack can't overlook it.
        if self.success is None and (found := _DONE.search(f"{self.zh}\n{self.en}")):
            problem = f"{found.group()!r} says that something was done: name the tool in `success`"
            raise ValueError(problem)
        if self.success is not None and "tool_result" not in self.facts:
            problem = "a template that claims success needs facts: [tool_result]"
            raise ValueError(problem)
        return self


def _parse(text: str) -> tuple[tuple[str, str | None], ...]:
    parts = []
    for literal, name, spec, conversion in string.Formatter().parse(text):
        if name is not None and (spec or conversion or not name.isidentifier()):
            problem = f"{{{name}}}: only a plain name may stand in braces"
            raise ValueError(problem)
        parts.append((literal, name))
    return tuple(parts)


Templates = Mapping[str, Template]


def shown(kind: Kind, value: Any) -> str:
    """A parameter as text. Raises TypeError when the value is not of its kind."""
    if kind in {"text", "words"}:
        if not isinstance(value, str):
            problem = f"{value!r} is no text"
            raise TypeError(problem)
        if kind == "words":  # a colleague's own answer: whole, and with the lines that it was written in
            return "\n".join(_UNSAFE.sub(" ", line).rstrip() for line in value.splitlines()).strip()
        # Line breaks could fake a choice, direction marks could turn a sentence round.
        clean = _UNSAFE.sub(" ", value).strip()
        return clean if len(clean) <= MAX_PARAM_CHARS else clean[: MAX_PARAM_CHARS - 1] + "…"
    if not isinstance(value, int) or isinstance(value, bool):
        problem = f"{value!r} is no integer"
        raise TypeError(problem)
    return yuan(value) if kind == "yuan" else str(value)


def fill(template: Template, language: str, params: Mapping[str, Any]) -> str:
    """The text in one language. Raises KeyError for a missing parameter, TypeError for one of the wrong kind."""
    pieces = []
    for literal, name in template.parts["en" if language == "en" else "zh"]:
        pieces.append(literal)
        if name is not None:
            pieces.append(shown(template.params[name], params[name]))
    return "".join(pieces)


def load_templates(*folders: Path) -> dict[str, Template]:
    """The templates of the folders by id; a later folder replaces an earlier one's. Raises TemplateError."""
    templates: dict[str, Template] = {}
    for folder in folders or (PACK,):
        for path in sorted(folder.glob("*.yaml")):
            templates.update(_load(path))
    return templates


def _load(path: Path) -> dict[str, Template]:
    try:
        raw = packfile.read(path)
    except yaml.YAMLError as error:
        raise TemplateError(path.name, "(file)", "(file)", packfile.problem(error)) from error
    if not isinstance(raw, dict):
        raise TemplateError(path.name, "(file)", "(file)", "must hold templates by id")
    templates = {}
    for name, body in raw.items():
        try:
            templates[str(name)] = Template.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "(template)"
            raise TemplateError(path.name, str(name), where, first["msg"]) from error
    return templates
