"""One YAML file a tool: where it is, what goes in and out, its risk, and what is done when it fails.

The loader names file and field of everything that is wrong; nothing else reads these files.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agents import packfile

PACK = Path(__file__).parent / "pack"
# Calls that the state of a conversation remembers. A rate is counted on them, so a higher limit would never be met.
CALLS_MAX = 12


class SpecError(ValueError):
    """A pack file is wrong: `file`, `field` and what to do."""

    def __init__(self, file: str, field: str, problem: str) -> None:
        super().__init__(f"tool {file}: {field}: {problem.removeprefix('Value error, ')}")
        self.file, self.field, self.problem = file, field, problem


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Environment(_Spec):
    """Where the tool answers in one environment."""

    base_url: str = Field(pattern="^[a-z_]+$", description="name of the setting that holds the base URL")


class Auth(_Spec):
    """How a call proves who calls."""

    kind: Literal["none", "bearer"] = "none"
    token_setting: str | None = Field(default=None, description="name of the setting that holds the token")


class Argument(_Spec):
    """One argument. `min` and `max` bound an integer's value or a string's length."""

    type: Literal["string", "integer"]
    required: bool = True
    pattern: str | None = Field(default=None, description="regular expression for the whole string")
    min: int | None = None
    max: int | None = None
    source: Literal["slot", "sender"] = Field(
        default="slot", description="sender: always the conversation's sender, never read from text"
    )

    @cached_property
    def regex(self) -> re.Pattern[str] | None:
        """The compiled pattern."""
        return re.compile(self.pattern) if self.pattern else None


class Output(_Spec):
    """What a successful answer must have; anything less is no success."""

    required: tuple[str, ...] = ()
    enums: dict[str, tuple[str, ...]] = {}


class RateLimit(_Spec):
    """At most so many calls a conversation in so many milliseconds."""

    calls: int = Field(ge=1, le=CALLS_MAX)
    per_ms: int = Field(ge=1)


class Retries(_Spec):
    """Repeats on timeout and 5xx only (R-002-27): exponential from `base_ms`."""

    max: int = Field(default=2, ge=0, le=5)
    base_ms: int = Field(default=100, ge=1)


class Estimate(_Spec):
    """What is said when the outcome is not known: a share of the amount and days to wait."""

    share: float = Field(gt=0, le=1)
    days: int = Field(ge=1)


class Fallback(_Spec):
    """What happens when the call fails for good; never a success (R-002-28)."""

    kind: Literal["handover", "later", "estimate"]
    levels: dict[str, Estimate] = Field(default={}, description="estimate by customer level; `default` is required")


class ToolSpec(_Spec):
    """One tool. `query` and `body` map the service's field name to the argument's name."""

    name: str = Field(pattern="^[a-z][a-z0-9_]{1,39}$")
    version: int = Field(ge=1)
    description: str = Field(min_length=10)
    skill: str = Field(pattern="^[a-z][a-z0-9_]*$")
    risk: Literal["query", "write", "money"]
    environments: dict[Literal["prod", "staging"], Environment] = Field(min_length=1)
    method: Literal["GET", "POST"]
    path: str = Field(pattern="^/")
    query: dict[str, str] = {}
    body: dict[str, str] = {}
    auth: Auth = Auth()
    timeout_ms: int = Field(default=3_000, ge=1, le=5_000)
    allowed_roles: tuple[str, ...] = Field(min_length=1)
    rate_limit: RateLimit
    input_schema: dict[str, Argument] = Field(min_length=1)
    output_schema: Output
    sensitive_fields: tuple[str, ...] = ()
    idempotency: Literal["none", "key"] = "none"
    confirm_path: str | None = Field(default=None, description="asks whether {key} happened")
    retries: Retries = Retries()
    fallback: Fallback

    @property
    def path_fields(self) -> tuple[str, ...]:
        """Names of the arguments inside the path."""
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.path) if name)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for problem in _problems(self):
            raise ValueError(problem)
        return self


_SENSITIVE = re.compile(
    r"phone|mobile|address|e?mail|id_?card|identity|passport|bank|card_?(?:no|number)|iban|receiver|recipient|"
    r"(?:^|_)(?:full|first|last|real|contact|customer)_?name"
)


def _problems(spec: ToolSpec) -> list[str]:
    problems = []
    known = spec.input_schema.keys()
    used = {*spec.path_fields, *spec.query.values(), *spec.body.values()}
    problems += [f"argument {name!r} is used but not in input_schema" for name in sorted(used - known)]
    problems += [f"argument {name!r} is in input_schema but not sent" for name in sorted(known - used)]
    problems += [f"sensitive_fields: {name!r} is no argument" for name in spec.sensitive_fields if name not in known]
    # An argument that nobody declared would be recorded in clear (R-004-19).
    problems += [f"sensitive_fields: {name!r} looks sensitive and is not declared" for name in known
                 if _SENSITIVE.search(name) and name not in spec.sensitive_fields]  # fmt: skip
    for name, argument in spec.input_schema.items():
        try:
            re.compile(argument.pattern or "")
        except re.error as error:
            problems.append(f"input_schema.{name}.pattern is no regular expression: {error}")
    # Without a key a repeat is a second change; without a question a lost answer stays lost (A13, H07).
    if spec.risk != "query" and (spec.idempotency != "key" or "{key}" not in (spec.confirm_path or "")):
        problems.append("a write needs idempotency: key, and a confirm_path with {key}")
    if spec.fallback.kind == "estimate" and "default" not in spec.fallback.levels:
        problems.append("fallback.levels needs a `default`")
    return problems


Tools = Mapping[str, ToolSpec]


def load_tool(path: Path) -> ToolSpec:
    """The tool of one file. Raises SpecError naming file and field."""
    try:
        raw = packfile.read(path)
        spec = ToolSpec.model_validate(raw)
    except yaml.YAMLError as error:
        raise SpecError(path.name, "(file)", packfile.problem(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "(tool)"
        raise SpecError(path.name, field, first["msg"]) from error
    if spec.name != path.stem:
        raise SpecError(path.name, "name", f"{spec.name!r} must be the file's name")
    return spec


def load_tools(*folders: Path) -> dict[str, ToolSpec]:
    """The tools of the folders by name; a later folder's file replaces an earlier one's. Default: the built-in pack."""
    tools: dict[str, ToolSpec] = {}
    for folder in folders or (PACK,):
        for path in sorted(folder.glob("*.yaml")):
            tools[path.stem] = load_tool(path)
    return tools
