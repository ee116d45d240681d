"""Where the public data sets of the evaluations are, and the reader that is measured on them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import yaml

from agents.understanding.embedded import embedded
from agents.understanding.port import Context, Reading, Understanding

VARIABLE = "INTERLOCK_EVAL_DATA"
MAPS = Path(__file__).parent / "maps"
_DEFAULT = Path(__file__).parents[2].parent / "shared" / "data"
_NOTHING = Context()


class NoDataError(Exception):
    """A data set is not on this machine: the message says where it was looked for and how to name the place."""


def data_file(*path: str) -> Path:
    """A file of the data sets. Raises NoDataError when it is not there."""
    file = Path(os.environ.get(VARIABLE) or _DEFAULT).joinpath(*path)
    if not file.is_file():
        message = f"no {'/'.join(path)} below {Path(os.environ.get(VARIABLE) or _DEFAULT)}; set {VARIABLE}"
        raise NoDataError(message)
    return file


def json_of(*path: str) -> Any:
    """A JSON file of the data sets. Raises NoDataError when it is not there."""
    return json.loads(data_file(*path).read_text("utf-8"))


def table_of(*path: str) -> list[dict[str, str]]:
    """The rows of a CSV file of the data sets. Raises NoDataError when it is not there."""
    with data_file(*path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def map_of(name: str) -> Any:
    """A map from a data set's labels to ours: maps/<name>.yaml."""
    return yaml.safe_load((MAPS / f"{name}.yaml").read_text("utf-8"))


def reader() -> Understanding:
    """What the product reads with when nothing is set."""
    return embedded()


def read(understanding: Understanding, text: str, context: Context = _NOTHING) -> Reading:
    """One message as the first of its conversation."""
    return understanding.read(text, context)
