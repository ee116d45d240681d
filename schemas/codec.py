"""Models to bytes and back: canonical JSON out, and a reader that trusts nothing.

Versions: a record's CloudEvents type names its major version (`interlock.plans.v1`), its dataschema the minor
(`interlock:plans:1.2`). A writer refuses fields that its model does not have. A reader refuses them too, unless
the record says that it is of a higher minor version than the reader's: then it accepts them, keeps them on the
model, and `encode` writes them again (R-002-46: a worker of last week must not lose what a newer one wrote).
An older major version is read with its own model, then lifted by the next model's `upgrade`.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, Protocol, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from schemas.errors import BadRecordError, ContractError
from schemas.rejection import beyond_64_bits, invalid_json, invalid_model, repeated
from schemas.topics import MAX_DEPTH, Topic, topic_named

MAX_BYTES = 1_048_576
_LONGEST_INTEGER = 40  # digits: more is no id, and turning it into a number is slow
_ID = re.compile(r"(.*_)?id|ref|sender|shop|root", re.ASCII)


class _Validator(Protocol):
    def validate_json(self, value: bytes, /, *, extra: Literal["allow"] | None = None) -> Any: ...


AnyModel = TypeVar("AnyModel", bound=BaseModel)


def encode(model: BaseModel) -> bytes:
    """Canonical JSON: compact UTF-8, fields in the model's order. Raises ContractError for what JSON can't hold."""
    dumped = model.model_dump(mode="json", by_alias=True)
    if model.__pydantic_extra__ is not None:
        _restore(model, dumped)
    try:
        return orjson.dumps(dumped)
    except TypeError as error:  # a lone surrogate, or an integer beyond 64 bits
        message = f"{type(model).__name__} can't be written as JSON: {error}"
        raise ContractError(message) from None


def _restore(value: Any, dumped: Any) -> None:
    """Put fields of a newer minor version back; the dump of a closed model leaves them out."""
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            _restore(getattr(value, name), dumped.get(info.serialization_alias or name))
        dumped.update(value.__pydantic_extra__ or {})
    elif isinstance(value, tuple) and isinstance(dumped, list):
        for inner, part in zip(value, dumped, strict=True):
            _restore(inner, part)
    elif isinstance(value, dict) and isinstance(dumped, dict):
        for name, inner in value.items():
            _restore(inner, dumped[name])


def decode(topic: str, value: bytes | None, type: str = "", *, minor: int = 0) -> Any:  # noqa: A002
    """The model of a record of `topic`, whose CloudEvents type is `type` ("": the current version).

    `minor` is the writer's minor version (`Envelope.minor`). Raises BadRecordError and nothing else, whatever
    the bytes are.
    """
    return decode_as(topic_named(topic), value, type, minor=minor)


def decode_as(topic: Topic, value: bytes | None, type: str = "", *, minor: int = 0) -> Any:  # noqa: A002
    """`decode` for a topic that is not among TOPICS."""
    major = topic.major(type)
    if value is None:
        reason = "no value"
        raise BadRecordError(reason, code="empty", topic=topic.name)
    manifest = topic.manifest
    parse(value, topic=topic.name, max_bytes=manifest.max_bytes, max_depth=manifest.max_depth)
    # Only a writer that says that it is newer may send unknown fields; from any other they are mistakes.
    newer = minor > manifest.versions[major].minor
    model = _validate(topic.models[major].validator, value, topic.name, newer=newer)
    for upgrade in topic.upgrades[major]:
        model = upgrade(model)
    return model


def validate(model: type[AnyModel], value: Any, topic: str = "") -> AnyModel:
    """A model from plain JSON data, as strictly as from bytes. Raises BadRecordError."""
    try:
        encoded = orjson.dumps(value)
    except TypeError:
        field = next(beyond_64_bits(value), "")
        reason = "an integer beyond 64 bits; send ids as text" if field else "no JSON data"
        raise BadRecordError(reason, code="not_json", topic=topic, field=field) from None
    checked: AnyModel = _validate(model.__pydantic_validator__, encoded, topic)
    return checked


def _validate(validator: _Validator, value: bytes, topic: str, *, newer: bool = False) -> Any:
    try:
        return validator.validate_json(value, extra="allow" if newer else None)
    except ValidationError as error:
        raise invalid_model(error, topic, orjson.loads(value)) from None


def parse(
    value: bytes,
    *,
    topic: str = "",
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    long_integers: bool = False,
) -> Any:
    """Plain data from JSON bytes, refusing what two readers could read in two ways. Raises BadRecordError.

    Refused are repeated keys, NaN and Infinity, lone surrogates (case B15), what is not UTF-8, too long or too
    deep, and integers beyond 64 bits; with `long_integers` they are exact up to 40 digits, for `exact_ids`.
    """
    if len(value) > max_bytes:
        reason = f"{len(value)} bytes; the topic takes at most {max_bytes}"
        raise BadRecordError(reason, code="too_large", topic=topic)
    try:
        loaded = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise invalid_json(error, value, topic) from None
    # Counting bytes is cheap and never too low; only a suspicious value is walked.
    if value.count(b"{") + value.count(b"[") > max_depth and _depth(loaded) > max_depth:
        reason = f"nested deeper than {max_depth}"
        raise BadRecordError(reason, code="too_deep", topic=topic)
    if orjson.dumps(loaded) == value:  # canonical: a repeated key or a rounded integer could not come back the same
        return loaded
    return _parse_slowly(value, topic, _LONGEST_INTEGER if long_integers else None)


def _parse_slowly(value: bytes, topic: str, digits: int | None) -> Any:
    def integer(text: str) -> int:
        if len(text) > (digits or 20) or (digits is None and not -(1 << 63) <= int(text) < 1 << 64):
            reason = f"an integer of {len(text)} digits; send ids as text"
            raise BadRecordError(reason, code="number_range", topic=topic)
        return int(text)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            reason = f"{repeated([name for name, _ in pairs])} is there twice in one object"
            raise BadRecordError(reason, code="repeated_key", topic=topic)
        return result

    return json.loads(value.decode(), object_pairs_hook=unique, parse_int=integer)


def _depth(value: Any) -> int:
    """How deep containers are nested; a scalar is 0."""
    depth, level = 0, [value]
    while level := [node for node in level if isinstance(node, dict | list)]:
        depth += 1
        level = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
    return depth


def exact_ids(value: Any) -> Any:
    """The data with ids that came as JSON integers turned into exact decimal text (case B05).

    For foreign input, from `parse(..., long_integers=True)`. Fields are ids by name: `id`, `…_id`, `ref`, `sender`,
    `shop`, `root`. A float or a boolean stays, and the model refuses it.
    """
    if isinstance(value, list):
        return [exact_ids(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: str(part) if type(part) is int and _ID.fullmatch(name) else exact_ids(part)
        for name, part in value.items()
    }
