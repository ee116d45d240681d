"""The default reader: rules and the intent model, embedded; no server, no key, no wait."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from agents.understanding.model import file
from agents.understanding.rules import RuleUnderstanding


@cache
def embedded(path: Path | None = None) -> RuleUnderstanding:
    """The reader with the package's model, or with that of a file that `interlock train` wrote.

    Raises ModelFileError naming the file and what to do.
    """
    return RuleUnderstanding(model=file.shipped() if path is None else file.load(path))
