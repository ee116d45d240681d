r"""The lexicons of understanding: YAML in the package, read and compiled once.

In a pattern `~` stands for up to 14 characters of the same clause, `^` and `$` for its start and end. All are
matched without case and in ASCII mode, so that `\b` also ends an English word that touches a Chinese one (case F09).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import ValidationError

from agents.understanding.port import Expects
from schemas.base import Model

FLAGS = re.IGNORECASE | re.ASCII
_GAP = r"[^,.。;!?\n]{0,14}?"
_CLAUSE_START, _CLAUSE_END = r"(?:^|(?<=[,;。!?\n] )|(?<=[,;。!?\n]))", r"(?=[ .]*(?:$|[,;。!?\n]))"
_HAN = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[A-Za-z]")
_ENGLISH = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2,}(?![A-Za-z0-9])")  # OD100001 makes no text English
_PLACES = re.compile(r"(?<![\[\\])[~^$]")  # not the ^ of [^…], not \$
_ESCAPE = re.compile(r"\\.")


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
    reads_as: dict[str, str]
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


class View:
    """A folded text and the scripts in it: patterns of a script that is not there are not tried."""

    __slots__ = ("scripts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        han, latin = _HAN.search(text), _ENGLISH.search(text)
        # Half of all patterns are not tried on a text of one script: reading is on the path of every message.
        self.scripts: tuple[int, ...] = (0, 1) if han and latin else (0,) if han else (1,)


class Words:
    """Patterns of one meaning, compiled once for Chinese (0) and once for English (1)."""

    __slots__ = ("_by_script",)

    def __init__(self, name: str, patterns: list[str]) -> None:
        self._by_script = tuple(_regex(name, [one for one in patterns if script in _scripts(one)]) for script in (0, 1))

    def search(self, view: View) -> re.Match[str] | None:
        """The first match, Chinese before English."""
        for script in view.scripts:
            regex = self._by_script[script]
            match = regex.search(view.text) if regex else None
            if match:
                return match
        return None

    def regex(self, script: int) -> re.Pattern[str] | None:
        """The patterns of one script, if there are any."""
        return self._by_script[script]

    def finditer(self, view: View) -> Iterator[re.Match[str]]:
        """All matches, Chinese before English."""
        for script in view.scripts:
            regex = self._by_script[script]
            if regex:
                yield from regex.finditer(view.text)

    def fullmatch(self, view: View, start: int, end: int) -> bool:
        """Whether the stretch as a whole is one of these."""
        regexes = [self._by_script[script] for script in view.scripts]
        return any(regex and regex.fullmatch(view.text, start, end) for regex in regexes)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The patterns of an intent that give one strength."""

    intent: str
    strength: str
    base: float
    words: Words


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Everything that the rules read, compiled."""

    scoring: Scoring
    suppresses: dict[str, frozenset[str]]
    reads_as: dict[str, str]
    patterns: tuple[tuple[tuple[Pattern, re.Pattern[str]], ...], ...]
    whole: tuple[Pattern, ...]
    colours: dict[str, str]
    categories: dict[str, str]
    colour: Words
    category: Words
    reasons: tuple[tuple[str, Words], ...]
    sentiment: tuple[tuple[str, Words], ...]
    urgency: tuple[tuple[str, Words], ...]
    return_words: Words
    time: Words
    forged: Words
    filler: re.Pattern[str]
    expects: tuple[tuple[Expects, re.Pattern[str]], ...]


def _yaml(name: str) -> Any:
    return yaml.safe_load((files("agents.understanding") / "lexicons" / name).read_text("utf-8"))


def _scripts(pattern: str) -> tuple[int, ...]:
    if _HAN.search(pattern):
        return (0,)
    return (1,) if _LETTER.search(_ESCAPE.sub("", pattern)) else (0, 1)  # digits and signs belong to both


def _regex(name: str, patterns: list[str]) -> re.Pattern[str] | None:
    if not patterns:
        return None
    try:
        return re.compile("|".join(f"(?:{_expanded(pattern)})" for pattern in patterns), FLAGS)
    except re.error as error:
        message = f"{name}: {error.pattern!r} is no pattern: {error}"
        raise LexiconError(message) from error


def _expanded(pattern: str) -> str:
    places = {"~": _GAP, "^": _CLAUSE_START, "$": _CLAUSE_END}
    return _PLACES.sub(lambda sign: places[sign[0]], pattern)


def _required(name: str, patterns: list[str]) -> re.Pattern[str]:
    regex = _regex(name, patterns)
    if regex is None:
        message = f"{name}: needs at least one pattern"
        raise LexiconError(message)
    return regex


def _named(section: str, entries: dict[str, list[str]]) -> tuple[tuple[str, Words], ...]:
    return tuple((key, Words(f"words.yaml: {section}.{key}", patterns)) for key, patterns in entries.items())


def _canonical(entries: dict[str, list[str]]) -> dict[str, str]:
    return {word.lower(): key for key, words in entries.items() for word in words}


def _alternatives(words: Iterable[str]) -> list[str]:
    """One pattern a script, longest word first: an alternation costs its first letters, not all of its words."""
    longest_first = sorted(words, key=len, reverse=True)
    english = "|".join(word for word in longest_first if word.isascii())
    chinese = "|".join(word for word in longest_first if not word.isascii())
    return [*([rf"\b(?:{english})s?\b"] if english else []), *([chinese] if chinese else [])]


def _patterns(file: IntentFile) -> list[Pattern]:
    rules = file.scoring
    return [
        Pattern(intent, strength, getattr(rules, strength), Words(f"intents.yaml: {intent}.{strength}", patterns))
        for intent, entry in file.intents.items()
        for strength in ("strong", "medium", "weak", "whole")
        if (patterns := getattr(entry, strength))
    ]


def _parts(patterns: list[Pattern], script: int) -> tuple[tuple[Pattern, re.Pattern[str]], ...]:
    pairs = ((pattern, pattern.words.regex(script)) for pattern in patterns if pattern.strength != "whole")
    return tuple((pattern, regex) for pattern, regex in pairs if regex)


def _colour(colours: dict[str, str], categories: dict[str, str]) -> Words:
    """A lone character is a colour before 色 or a category: 白 is a word of its own in 明白."""
    lone = "".join(sorted(word for word in colours if len(word) == 1))
    things = "|".join(word for word in categories if not word.isascii())
    named = _alternatives(word for word in colours if len(word) > 1)
    return Words("words.yaml: colours", [*named, f"[{lone}](?=色|的?(?:{things}))"])


@cache
def lexicon() -> Lexicon:
    """The package's lexicon. Raises LexiconError naming the file and entry that is wrong."""
    try:
        intents = IntentFile.model_validate(_yaml("intents.yaml"))
        words = WordFile.model_validate(_yaml("words.yaml"))
    except ValidationError as error:
        raise LexiconError(str(error)) from error
    patterns = _patterns(intents)
    colours, categories = _canonical(words.colours), _canonical(words.categories)
    return Lexicon(
        scoring=intents.scoring,
        suppresses={key: frozenset(value) for key, value in intents.suppresses.items()},
        reads_as=intents.reads_as,
        patterns=tuple(_parts(patterns, script) for script in (0, 1)),
        whole=tuple(pattern for pattern in patterns if pattern.strength == "whole"),
        colours=colours, categories=categories, colour=_colour(colours, categories),
        category=Words("words.yaml: categories", _alternatives(categories)),
        reasons=_named("reasons", words.reasons), sentiment=_named("sentiment", words.sentiment),
        urgency=_named("urgency", words.urgency), return_words=Words("words.yaml: return_words", words.return_words),
        time=Words("words.yaml: time", words.time), forged=Words("words.yaml: forged", words.forged),
        filler=_required("words.yaml: fillers", words.fillers),
        expects=tuple((key, _required(f"words.yaml: expects.{key}", value)) for key, value in words.expects.items()),
    )  # fmt: skip
