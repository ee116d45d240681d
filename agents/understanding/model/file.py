"""One model as one file: a first line that names the format, a line of JSON with the stamp, then the packed numbers.

Reading it runs no code of the file: whoever is handed a model by somebody else need not trust them.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from agents.understanding.model.classify import IntentModel, Stamp
from agents.understanding.model.features import FEATURES_VERSION

MAGIC = b"interlock intents 1\n"
SHIPPED = "intents.model"
MODEL_FILE = Path(__file__).with_name(SHIPPED)


class ModelFileError(ValueError):
    """A model file can't be used: the message names the file and what to do."""


def packed(model: IntentModel) -> bytes:
    """The bytes of a model's file; the same model gives the same bytes."""
    stamp = model.stamp
    head = {
        "features": FEATURES_VERSION, "intents": model.intents, "grams": len(model.vocabulary),
        "temperature": model.temperature, "unknown": model.unknown,
        "scale": model.scale.tolist(), "bias": model.bias.tolist(),
        "data_hash": stamp.data_hash, "examples": stamp.examples, "languages": stamp.languages,
        "library": stamp.library, "metrics": dict(stamp.metrics),
    }  # fmt: skip
    names = "\n".join(sorted(model.vocabulary, key=model.vocabulary.__getitem__)).encode()
    numbers = model.rarity.astype("<f4").tobytes() + model.weights.astype("<i2").tobytes()
    return MAGIC + orjson.dumps(head) + b"\n" + zlib.compress(names + b"\n\n" + numbers)


def unpacked(content: bytes, name: str) -> IntentModel:
    """The model of a file's bytes. Raises ModelFileError naming the file and what is wrong with it."""
    if not content.startswith(MAGIC):
        raise _error(name, "is no intent model of this version")
    head, _, body = content[len(MAGIC) :].partition(b"\n")
    try:
        fields = orjson.loads(head)
        if fields["features"] != FEATURES_VERSION:
            raise _error(name, f"was fitted on features {fields['features']}, this version has {FEATURES_VERSION}")
        return _model(fields, zlib.decompress(body))
    except (orjson.JSONDecodeError, zlib.error, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise _error(name, f"is damaged ({type(error).__name__}: {error})") from error


def load(path: Path) -> IntentModel:
    """The model of a file. Raises ModelFileError naming the file and what to do."""
    try:
        return unpacked(path.read_bytes(), str(path))
    except OSError as error:
        raise _error(str(path), f"can't be read ({error.strerror})") from error


@cache
def shipped() -> IntentModel:
    """The package's own model, read at the first use."""
    return load(MODEL_FILE)


def _model(fields: dict[str, Any], body: bytes) -> IntentModel:
    names, _, numbers = body.partition(b"\n\n")
    rows, columns = fields["grams"], len(fields["intents"])
    weights = np.frombuffer(numbers, "<i2", offset=4 * rows).reshape(rows, columns)
    vocabulary = {gram: row for row, gram in enumerate(names.decode().split("\n"))}
    if len(vocabulary) != rows or len(fields["scale"]) != columns or len(fields["bias"]) != columns:
        message = f"{len(vocabulary)} grams for {rows} rows"
        raise ValueError(message)
    return IntentModel(
        tuple(fields["intents"]), vocabulary, np.frombuffer(numbers, "<f4", rows).astype(np.float64), weights,
        np.array(fields["scale"]), np.array(fields["bias"]), float(fields["temperature"]), float(fields["unknown"]),
        Stamp(fields["data_hash"], fields["examples"], tuple(fields["languages"]), fields["library"],
              fields["metrics"]),
    )  # fmt: skip


def _error(name: str, what: str) -> ModelFileError:
    return ModelFileError(f"{name} {what}; write it again with `interlock train`")
