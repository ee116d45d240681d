"""The words of a message that point back to something without naming it (R-002-08), Chinese and English."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import ValidationError

from agents.understanding.lexicon import FLAGS, LexiconError
from memory.cues import MEASURE, cites_past
from schemas.base import Model

Pointer = Literal["ordinal", "other", "past", "deictic", "pronoun", "kind", "bare"]
_NOUN = r"(?:ones?|orders?|items?|parcels?|packages?|products?|things?)"
_ZH_NUMBER = dict(zip("一二三四五六七八九十两", (*range(1, 11), 2), strict=True))
_EN_NUMBER = {word: at for at, word in enumerate(
    ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"), 1)}  # fmt: skip
_ORDINAL = re.compile(
    rf"(?P<back>倒数)?第(?P<zh>[一二两三四五六七八九十]|[0-9]{{1,2}}){MEASURE}|(?P<final>最后(?:那|的)?一?{MEASURE})"
    rf"|\bthe (?:(?P<en>{'|'.join(_EN_NUMBER)})|(?P<last>last|bottom)) {_NOUN}\b"
    r"|(?P<former>前者|\bthe former\b)|(?P<latter>后者|\bthe latter\b)",
    FLAGS,
)
_LEFT = 200  # characters before a kind that can belong to it; more would make long texts slow
_SAYING = re.compile(r"\w")
_CLAUSE = re.compile(r"[,，.。;；!！?？、~\n]")


class PointerFile(Model):
    """references.yaml."""

    kinds: dict[str, list[str]]
    traits: dict[str, list[str]]
    near: list[str]
    new: list[str]
    remembered: list[str]
    filler: list[str]
    pointers: dict[Literal["other", "deictic", "pronoun", "past"], list[str]]
    bound: list[str]
    queries: list[str]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of references, compiled; `of` gives the same for things of other kinds."""

    kinds: tuple[tuple[str, re.Pattern[str]], ...]
    traits: tuple[tuple[str, re.Pattern[str]], ...]
    new: re.Pattern[str]
    remembered: re.Pattern[str]
    filler: re.Pattern[str]
    pointers: tuple[tuple[Pointer, re.Pattern[str]], ...]
    bound: frozenset[str]
    queries: frozenset[str]

    def of(self, kinds: Mapping[str, Sequence[str]], traits: Mapping[str, Sequence[str]]) -> Vocabulary:
        """The vocabulary of a domain whose things are of these kinds."""
        return replace(self, kinds=_named(kinds), traits=_named(traits))


@dataclass(frozen=True, slots=True)
class Cues:
    """How a message points: `start` and `end` are code points of its text, 0 and 0 for a bare one.

    `kinds` are the kinds that it speaks of as known, `wanted` those that it asks for anew; `ordinal` counts from 1,
    from the end when negative, and `several` says that there is more than one.
    """

    pointer: Pointer
    start: int = 0
    end: int = 0
    ordinal: int = 0
    several: bool = False
    kinds: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    trait: str | None = None


@cache
def vocabulary() -> Vocabulary:
    """The shop's vocabulary. Raises LexiconError naming the entry of references.yaml that is wrong."""
    text = (files("agents.understanding") / "lexicons" / "references.yaml").read_text("utf-8")
    try:
        file = PointerFile.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        message = f"references.yaml: {error}"
        raise LexiconError(message) from error
    return Vocabulary(
        kinds=_named(file.kinds), traits=_named(file.traits), new=_any([*file.near, *file.new]),
        remembered=_any(file.remembered), filler=_any(file.filler),
        pointers=tuple((name, _any([*file.remembered, *patterns] if name == "past" else patterns))
                       for name, patterns in file.pointers.items()),
        bound=frozenset(file.bound), queries=frozenset(file.queries),
    )  # fmt: skip


def cues(text: str, words: Vocabulary) -> Cues:
    """How the text points; `kind` when it only says what kind of thing it means, `bare` when not even that."""
    kinds, wanted, span = _kinds(text, words)
    traits = [kind for kind, pattern in words.traits if pattern.search(text)]
    found = Cues("kind" if kinds else "bare", *span, kinds=kinds, wanted=wanted,
                 trait=traits[0] if len(traits) == 1 else None)  # fmt: skip
    ordinals = list(_ORDINAL.finditer(text))
    if ordinals:
        first = ordinals[0]
        return replace(found, pointer="ordinal", start=first.start(), end=first.end(), ordinal=_number(first),
                       several=len({_number(one) for one in ordinals}) > 1)  # fmt: skip
    for pointer, pattern in words.pointers:
        match = pattern.search(text)
        if match:
            # "那个" said of what was bought last week is no "那个" of the last sentence.
            past = pointer in ("deictic", "pronoun") and cites_past(text) is not None
            return replace(found, pointer="past" if past else pointer, start=match.start(), end=match.end())
    return found


def remembered(text: str, words: Vocabulary) -> float:
    """The share of the text that names a thing of the past as a whole ("the one I asked about last time"): 1 is all.

    What says nothing by itself ("and", "呢") is not counted.
    """
    match = words.remembered.search(text)
    if match is None:
        return 0.0
    around = f"{text[: match.start()]} {text[match.end() :]}"
    said, rest = (len(_SAYING.findall(part)) for part in (match[0], words.filler.sub(" ", around)))
    return said / (said + rest)


def _kinds(text: str, words: Vocabulary) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, int]]:
    """Kinds spoken of as known in text order, kinds asked for anew, and where the first known one stands."""
    known: list[tuple[int, int, str]] = []
    wanted: list[str] = []
    for kind, pattern in words.kinds:
        for match in pattern.finditer(text):
            left = _CLAUSE.split(text[max(0, match.start() - _LEFT) : match.start()])[-1]
            if _pointed(left, words):
                known.append((*match.span(), kind))
            elif words.new.search(left) or re.match("有(?:么|吗|没|嘛|什么|哪)", text[match.end() :]):
                wanted.append(kind)
            else:
                known.append((*match.span(), kind))
    known.sort()
    return tuple(kind for *_, kind in known), tuple(wanted), known[0][:2] if known else (0, 0)


def _pointed(left: str, words: Vocabulary) -> bool:
    """The words to the left end in a pointer ("这家" before 酒店)."""
    end = len(left.rstrip("的 "))
    return any(match.end() >= end for _, pattern in words.pointers for match in pattern.finditer(left))


def _number(match: re.Match[str]) -> int:
    if match["former"]:
        return 1
    if match["final"] or match["last"] or match["latter"]:
        return -1
    if match["en"]:
        return _EN_NUMBER[match["en"].lower()]
    number = _ZH_NUMBER.get(match["zh"]) or int(match["zh"])
    return -number if match["back"] else number


def _named(words: Mapping[str, Sequence[str]]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, _any([rf"\b{one}s?\b" if one.isascii() and one.isalpha() else one for one in some]))
                 for kind, some in words.items())  # fmt: skip


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    try:
        return re.compile("|".join(f"(?:{_expanded(one)})" for one in patterns), FLAGS)
    except re.error as error:
        message = f"references.yaml: {error.pattern!r} is no pattern: {error}"
        raise LexiconError(message) from error


def _expanded(pattern: str) -> str:
    """`#` is a count with its measure word, or in an English pattern a noun."""
    return pattern.replace("#", _NOUN if pattern.isascii() else f"[一两二三几0-9]?{MEASURE}")
