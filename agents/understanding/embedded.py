"""The default reader: rules and the intent model, embedded; no server, no key, no wait."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from agents.understanding.model import file
from agents.understanding.model.classify import IntentModel
from agents.understanding.rules import RuleUnderstanding


@cache
def model_of(path: Path | None = None) -> IntentModel:
    """The package's model, or that of a file that `interlock train` wrote.

    Raises ModelFileError naming the file and what to do.
    """
    return file.shipped() if path is None else file.load(path)


@cache
def embedded(path: Path | None = None) -> RuleUnderstanding:
    """The reader with `model_of(path)`. Raises ModelFileError naming the file and what to do."""
    return RuleUnderstanding(model=model_of(path))
