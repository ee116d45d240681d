"""What was published can't change: `published.json` holds a hash of each version's JSON Schema.

A field may be added with a default: raise `minor` in the manifest. Anything else is a new major version: a new
model, a new entry under `versions`, and an `upgrade` from the one before it. Then `interlock export --publish`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from schemas import codec
from schemas.errors import ContractError
from schemas.topics import Topic

LOCK = "published.json"
_WORDS = frozenset({"title", "description", "examples"})  # for people: they may be said better at any time


def key_of(topic: Topic, major: int) -> str:
    """What the lock calls a version: `plans:1.0`."""
    return f"{topic.manifest.name}:{major}.{topic.manifest.versions[major].minor}"


def hash_of(topic: Topic, major: int) -> str:
    """Hex SHA-256 of the version's JSON Schema without its words."""
    schema = topic.models[major].json_schema()
    return hashlib.sha256(json.dumps(_bare(schema), sort_keys=True).encode()).hexdigest()


def _bare(schema: Any, *, names: bool = False) -> Any:
    """The schema without its words; inside `properties`, keys are names and stay."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(part, names=not names and key in {"properties", "$defs"})
        for key, part in schema.items()
        if names or key not in _WORDS
    }


def locked() -> dict[str, str]:
    """The lock: version to hash."""
    found: dict[str, str] = json.loads(resources.files("schemas").joinpath(LOCK).read_text("utf-8"))
    return found


def changed(topics: Iterable[Topic], lock: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Versions that are not in the lock, and versions that are there with another shape."""
    hashes = {key_of(topic, major): hash_of(topic, major) for topic in topics for major in topic.models}
    new = [key for key in hashes if key not in lock]
    return new, [key for key, value in hashes.items() if lock.get(key, value) != value]


def publish(topics: Iterable[Topic], lock: Mapping[str, str]) -> dict[str, str]:
    """The lock with the new versions in it. Raises ContractError when a published version has changed."""
    topics = list(topics)
    new, broken = changed(topics, lock)
    if broken:
        message = (
            f"published versions changed: {', '.join(broken)}. Add a field with a default and raise `minor` in the "
            "manifest; for any other change add a new major version with its model and `upgrade`"
        )
        raise ContractError(message)
    hashes = {key_of(topic, major): hash_of(topic, major) for topic in topics for major in topic.models}
    return dict(sorted({**lock, **{key: hashes[key] for key in new}}.items()))


def examples(topic: Topic, major: int) -> dict[str, bytes]:
    """The example files of a version: name to JSON text."""
    folder = resources.files("schemas").joinpath("examples", topic.manifest.name, f"v{major}")
    if not folder.is_dir():
        return {}
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir(), key=lambda file: file.name)}


def pretty(topic: Topic, text: bytes, major: int) -> bytes:
    """An example as its file should be: read, written again, and indented."""
    model = topic.models[major].validator.validate_json(text)
    return orjson.dumps(orjson.loads(codec.encode(model)), option=orjson.OPT_INDENT_2) + b"\n"


def write(topics: Iterable[Topic], folder: Path) -> list[str]:
    """Publish into a source tree's `schemas` folder: examples as they should be, and new versions in the lock."""
    topics = list(topics)
    file = folder / LOCK
    lock = json.loads(file.read_text("utf-8")) if file.exists() else {}
    after = publish(topics, lock)
    for topic in topics:
        for name, text in examples(topic, topic.version).items():
            target = folder / "examples" / topic.manifest.name / f"v{topic.version}" / name
            target.write_bytes(pretty(topic, text, topic.version))
    file.write_text(json.dumps(after, indent=2) + "\n", "utf-8")
    return [key for key in after if key not in lock]
