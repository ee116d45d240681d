"""The lexicons of understanding: YAML in the package, read and compiled once.

In an intent's pattern `~` stands for up to 14 characters of the same clause. Patterns are matched without
case and in ASCII mode, so that `\\b` also ends an English word that touches a Chinese one (case F09).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import ValidationError

from agents.understanding.port import Expects
from schemas.base import Model

FLAGS = re.IGNORECASE | re.ASCII
_GAP = r"[^,。;!?\n]{0,14}?"


class LexiconError(Exception):
    """A lexicon file is wrong: the message names the file and the entry."""


class IntentEntry(Model):
    """Patterns of one intent by strength; `whole` patterns match a whole clause."""

    strong: list[str] = []
    medium: list[str] = []
    weak: list[str] = []
    whole: list[str] = []


class Scoring(Model):
    """How matches become a confidence; see intents.yaml for the meaning of each number."""

    strong: float
    medium: float
    weak: float
    whole: float
    expected: float
    more: float
    rival: float
    most: float
    abstain: float


class IntentFile(Model):
    """intents.yaml."""

    scoring: Scoring
    suppresses: dict[str, list[str]]
    intents: dict[str, IntentEntry]


class WordFile(Model):
    """words.yaml: lists of words or patterns by canonical value."""

    colours: dict[str, list[str]]
    categories: dict[str, list[str]]
    reasons: dict[str, list[str]]
    sentiment: dict[str, list[str]]
    urgency: dict[str, list[str]]
    return_words: list[str]
    time: list[str]
    forged: list[str]
    fillers: list[str]
    expects: dict[Expects, list[str]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One compiled pattern of an intent and the strength that it gives."""

    intent: str
    strength: str
    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Everything that the rules read, compiled."""

    scoring: Scoring
    suppresses: dict[str, frozenset[str]]
    patterns: tuple[Pattern, ...]
    whole: tuple[Pattern, ...]
    colours: dict[str, str]
    categories: dict[str, str]
    colour: re.Pattern[str]
    category: re.Pattern[str]
    reasons: tuple[tuple[str, re.Pattern[str]], ...]
    sentiment: tuple[tuple[str, re.Pattern[str]], ...]
    urgency: tuple[tuple[str, re.Pattern[str]], ...]
    return_words: re.Pattern[str]
    time: re.Pattern[str]
    forged: re.Pattern[str]
    filler: re.Pattern[str]
    expects: tuple[tuple[Expects, re.Pattern[str]], ...]


def _yaml(name: str) -> Any:
    return yaml.safe_load((files("agents.understanding") / "lexicons" / name).read_text("utf-8"))


def _regex(name: str, patterns: list[str]) -> re.Pattern[str]:
    try:
        return re.compile("|".join(f"(?:{pattern.replace('~', _GAP)})" for pattern in patterns), FLAGS)
    except re.error as error:
        message = f"{name}: {error.pattern!r} is no pattern: {error}"
        raise LexiconError(message) from error


def _named(name: str, entries: dict[str, list[str]]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((key, _regex(f"{name}.{key}", patterns)) for key, patterns in entries.items())


def _words(entries: dict[str, list[str]]) -> tuple[dict[str, str], str]:
    canonical = {word.lower(): key for key, words in entries.items() for word in words}
    longest_first = sorted(canonical, key=len, reverse=True)
    return canonical, "|".join(rf"\b{word}s?\b" if word.isascii() else word for word in longest_first)


def _patterns(entries: dict[str, IntentEntry]) -> list[Pattern]:
    return [
        Pattern(intent, strength, _regex(f"intents.yaml: {intent}.{strength}", patterns))
        for intent, entry in entries.items()
        for strength in ("strong", "medium", "weak", "whole")
        if (patterns := getattr(entry, strength))
    ]


@cache
def lexicon() -> Lexicon:
    """The package's lexicon. Raises LexiconError naming the file and entry that is wrong."""
    try:
        intents = IntentFile.model_validate(_yaml("intents.yaml"))
        words = WordFile.model_validate(_yaml("words.yaml"))
    except ValidationError as error:
        raise LexiconError(str(error)) from error
    patterns = _patterns(intents.intents)
    colours, colour = _words(words.colours)
    categories, category = _words(words.categories)
    han = "".join(sorted({word for word in colours if len(word) == 1 and not word.isascii()}))
    bare = rf"[{han}](?=色)|[{han}](?=的?(?:{category}))"  # a lone 白 is a word of its own in 明白
    named = "|".join(part for part in colour.split("|") if len(part) > 1)
    return Lexicon(
        scoring=intents.scoring,
        suppresses={key: frozenset(value) for key, value in intents.suppresses.items()},
        patterns=tuple(pattern for pattern in patterns if pattern.strength != "whole"),
        whole=tuple(pattern for pattern in patterns if pattern.strength == "whole"),
        colours=colours, categories=categories,
        colour=re.compile(f"{named}|{bare}", FLAGS), category=re.compile(category, FLAGS),
        reasons=_named("words.yaml: reasons", words.reasons),
        sentiment=_named("words.yaml: sentiment", words.sentiment),
        urgency=_named("words.yaml: urgency", words.urgency),
        return_words=_regex("words.yaml: return_words", words.return_words),
        time=_regex("words.yaml: time", words.time), forged=_regex("words.yaml: forged", words.forged),
        filler=_regex("words.yaml: fillers", words.fillers),
        expects=tuple((key, _regex(f"words.yaml: expects.{key}", value)) for key, value in words.expects.items()),
    )  # fmt: skip
