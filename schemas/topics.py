"""The topics, read once from `manifests/*.yaml`: what each is for, its models, its key and how it is kept.

Adding a topic is adding a manifest and its examples. Every input topic, channel.raw and memory.writes also
have a dead-letter topic, made from the one shape of `manifests/dlq.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from schemas.errors import BadRecordError, ContractError

MAX_DEPTH = 64  # below every JSON library's own limit, with room for the diff that quotes the record
DAY_MS = 86_400_000
RAW_TOPIC = "channel.raw"
INPUT_TOPICS = (
    "channel.events",
    "messages.normalized",
    "tools.calls",
    "tools.results",
    "actions.outbound",
    "delivery.receipts",
    "human.decisions",
    "timers.fired",
    "system.events",
)


MEMORY_TOPIC = "memory.writes"  # read by the keeper of the stores, outside the table

Upgrade = Callable[[Any], Any]


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Version(_Closed):
    """One published major version; `minor` counts the optional fields that were added to it."""

    model: str = Field(pattern=r"^[a-z_.]+:[A-Za-z0-9]+$", description="module:class")
    minor: int = Field(default=0, ge=0)
    upgrade: str | None = Field(
        default=None, pattern=r"^[a-z_.]+:[a-z_0-9]+$", description="module:function, the version before to this one"
    )


class Manifest(_Closed):
    """One file of `manifests/`."""

    name: str = Field(pattern=r"^[a-z]+(\.[a-z]+)?$")
    purpose: str = Field(min_length=20)
    type: str = Field(pattern=r"^interlock\.[a-z.]+$", description="CloudEvents type without its version")
    versions: dict[int, Version] = Field(min_length=1, description="major version to model; the highest is written")
    key: str = Field(min_length=3)
    retention: str = Field(pattern=r"^(default|forever|[1-9]\d*[dh])$", description="`default` is the setting")
    cleanup: Literal["delete", "compact"] = "delete"
    max_bytes: int = Field(ge=1024, description="largest value, and Kafka's max.message.bytes")
    max_depth: int = Field(default=MAX_DEPTH, ge=8, le=128, description="deepest nesting that is read")
    segment_hours: int | None = Field(default=None, ge=1, description="a segment is closed after this, else Kafka's")
    writers: tuple[str, ...] = Field(min_length=1)
    readers: tuple[str, ...] = Field(min_length=1)
    owner: str = Field(min_length=3, description="the team's role")
    example: str = Field(description="the example that explains the topic best, such as v1/refund-zh.json")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as code uses it; `build` makes it from a manifest."""

    name: str
    manifest: Manifest
    models: Mapping[int, TypeAdapter[Any]]
    version: int  # the major version that is written: the highest
    type: str  # the CloudEvents type that is written, such as interlock.plans.v1
    upgrades: Mapping[int, Sequence[Upgrade]]  # from a major version up to the one that is written
    type_versions: Mapping[str, int]  # every CloudEvents type that is read, to its major version

    @property
    def max_bytes(self) -> int:
        """The largest value that is read or written."""
        return self.manifest.max_bytes

    def major(self, kind: str) -> int:
        """The major version of a record whose CloudEvents type is `kind`; "" is the one that is written.

        A foreign type on channel.raw is read as version 1. Raises BadRecordError for any other type.
        """
        version = self.version if not kind else self.type_versions.get(kind)
        if version is not None:
            return version
        if self.name == RAW_TOPIC and not kind.startswith("interlock."):
            return 1
        reason = f"expected {' or '.join(self.type_versions)}; upgrade this reader, or send such a version"
        raise BadRecordError(reason, code="unknown_version", topic=self.name, field="header ce_type")

    def retention_ms(self, default_days: int) -> int:
        """How long records are kept, in milliseconds; -1 is forever."""
        text = self.manifest.retention
        if text == "forever":
            return -1
        if text == "default":
            return default_days * DAY_MS
        return int(text[:-1]) * (DAY_MS if text.endswith("d") else 3_600_000)


def parse_manifest(text: str, file: str) -> Manifest:
    """A manifest from YAML. Raises ContractError naming file and field."""
    try:
        return Manifest.model_validate(_tuples(yaml.safe_load(text)))
    except yaml.YAMLError as error:
        message = f"{file}: not YAML: {error}"
        raise ContractError(message) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ContractError(message) from None


def _tuples(loaded: Any) -> Any:
    """YAML has lists where a frozen manifest has tuples."""
    if not isinstance(loaded, dict):
        return loaded
    return {key: tuple(value) if isinstance(value, list) else value for key, value in loaded.items()}


def build(manifest: Manifest, name: str | None = None) -> Topic:
    """A topic from its manifest. Raises ContractError for a model or upgrade that is not there."""
    models = {major: _adapter(version.model) for major, version in manifest.versions.items()}
    return Topic(
        name=name or manifest.name,
        manifest=manifest,
        models=models,
        version=max(models),
        type=f"{manifest.type}.v{max(models)}",
        upgrades={major: _upgrades(manifest, major) for major in models},
        type_versions={f"{manifest.type}.v{major}": major for major in models},
    )


def _upgrades(manifest: Manifest, start: int) -> tuple[Upgrade, ...]:
    steps = [version.upgrade for major, version in sorted(manifest.versions.items()) if major > start]
    if None in steps:
        message = f"{manifest.name}: a version after {start} names no upgrade from the one before it"
        raise ContractError(message)
    return tuple(_named(step) for step in steps if step)


@cache
def _adapter(reference: str) -> TypeAdapter[Any]:
    return TypeAdapter(_named(reference))


def _named(reference: str) -> Any:
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        message = f"{reference}: no such name; a manifest says module:name"
        raise ContractError(message) from None


def _load() -> dict[str, Topic]:
    files = sorted(resources.files("schemas").joinpath("manifests").iterdir(), key=lambda file: file.name)
    manifests = [parse_manifest(file.read_text("utf-8"), file.name) for file in files if file.name.endswith(".yaml")]
    topics = {manifest.name: build(manifest) for manifest in manifests}
    shape = topics.pop("dlq").manifest
    first = (RAW_TOPIC, *INPUT_TOPICS)
    ordered = {name: topics[name] for name in (*first, *sorted(topics.keys() - set(first)))}
    return ordered | {f"{source}.dlq": build(shape, f"{source}.dlq") for source in (*first, MEMORY_TOPIC)}


TOPICS: Mapping[str, Topic] = _load()


# A full CloudEvents type to its dataschema, `interlock:<topic>:<major>.<minor>`: a reader with a lower minor keeps
# the fields that it does not know.
DATASCHEMAS: Mapping[str, str] = {
    f"{topic.manifest.type}.v{major}": f"interlock:{topic.manifest.name}:{major}.{version.minor}"
    for topic in TOPICS.values()
    for major, version in topic.manifest.versions.items()
}


def topic_named(name: str) -> Topic:
    """The topic of that name. Raises ContractError."""
    topic = TOPICS.get(name)
    if topic is None:
        message = f"no topic {name!r}; there are {', '.join(TOPICS)}"
        raise ContractError(message)
    return topic


def model_for(topic: str, version: int | None = None) -> TypeAdapter[Any]:
    """What validates that major version of a topic (default: the one that is written). Raises ContractError."""
    found = topic_named(topic)
    adapter = found.models.get(version or found.version)
    if adapter is None:
        message = f"{topic} has no version {version}; there are {', '.join(map(str, found.models))}"
        raise ContractError(message)
    return adapter
