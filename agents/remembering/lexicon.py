"""rules.yaml, read and compiled once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

_FLAGS = re.IGNORECASE | re.ASCII
Names = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that a customer can prefer: its options (value to pattern and names), and when it counts."""

    name: str
    names: Names
    words: re.Pattern[str]
    lasting: bool
    needs: re.Pattern[str] | None
    options: Mapping[str, Names]
    hint: re.Pattern[str]  # its words without their ends: whatever it does not find is not worth a closer look
    pattern: re.Pattern[str]  # one group an option, or the groups of a pattern that gives its own value
    free: bool  # the value is what the pattern matched


@dataclass(frozen=True, slots=True)
class Rules:
    """What rules.yaml says."""

    cues: Mapping[str, re.Pattern[str]]
    subjects: tuple[Subject, ...]
    promises: Mapping[str, Names]
    staff_promises: re.Pattern[str]
    quiet_flows: frozenset[str]
    flows: Mapping[str, Names]
    outcomes: Mapping[str, Names]
    names: Mapping[str, Names]


def _bounded(word: str) -> str:
    """With word ends where the pattern begins or ends with a letter: "sf" is not in "transfer"."""
    left = "(?<![A-Za-z])" if re.match(r"[A-Za-z]|\((?:\?:)?[a-z]", word) else ""
    return f"{left}(?:{word})(?![A-Za-z])" if re.search(r"[A-Za-z)?*]$", word) and left else f"{left}(?:{word})"


def _any(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(_bounded(word) for word in words), _FLAGS)


def _subject(name: str, entry: Mapping[str, Any]) -> Subject:
    options: Mapping[str, Any] = entry.get("options", {})
    grouped = "|".join(
        f"(?P<{value}>{'|'.join(_bounded(word) for word in option['words'])})" for value, option in options.items()
    )
    needs = entry.get("needs")
    hints = [entry.get("pattern", ""), *entry["words"], *(word for one in options.values() for word in one["words"])]
    return Subject(
        hint=re.compile("|".join(word for word in hints if word), _FLAGS),
        name=name, names=entry["name"], words=_any(entry["words"]), lasting=entry["lasting"],
        needs=_any(needs) if needs else None,
        options={value: {"zh": option["zh"], "en": option["en"]} for value, option in options.items()},
        pattern=re.compile(grouped or entry["pattern"], _FLAGS), free=not options,
    )  # fmt: skip


@cache
def rules() -> Rules:
    """The package's own rules. Raises KeyError or re.error for a broken file: a test reads it."""
    data = yaml.safe_load(files("agents.remembering").joinpath("rules.yaml").read_text("utf-8"))
    return Rules(
        cues={name: _any(words) for name, words in data["cues"].items()},
        subjects=tuple(_subject(name, entry) for name, entry in data["preferences"].items()),
        promises=data["promises"],
        staff_promises=re.compile("|".join(data["staff_promises"]), _FLAGS),
        quiet_flows=frozenset(data["quiet_flows"]),
        flows=data["flows"], outcomes=data["outcomes"], names=data["names"],
    )  # fmt: skip


def named(names: Names, language: str) -> str:
    """The name in the language; Chinese for all that is not English."""
    return names["en"] if language == "en" else names["zh"]
