"""Preferences in a customer's words: what they like or want no more, from now on, and not for this once.

Clause by clause, from left to right: a cue says like or avoid, and the options behind it (or before it, "SF, never
again") take it. In doubt nothing is kept: a wrong memory costs more than a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agents.remembering.lexicon import Rules, Subject, rules
from agents.remembering.port import Wanted
from agents.understanding.fold import fold

_NONE = Wanted("preference", "", "")
MOST = 2_000  # characters that are looked at: nobody says a preference behind them
_SENTENCES = re.compile(r"(?<=[。!?;\n])|(?<=\.)(?=\s)")
_VERB = re.compile(r"[用发寄走选找放送叫]$| (?:use|using|ship|send|call|deliver)", re.IGNORECASE)
_CLAUSES = re.compile(r"[,，、:：]|(?<![A-Za-z])but(?![A-Za-z])|但是?|不过", re.IGNORECASE)


def preferences(text: str) -> list[Wanted]:
    """What the text says for every subject, the last word of a subject counts."""
    found: dict[str, Wanted] = {}
    folded = fold(text[:MOST]).text
    subjects = [one for one in rules().subjects if one.hint.search(folded)]
    for sentence in _SENTENCES.split(folded) if subjects else ():
        told = {wanted.subject: wanted for wanted in _sentence(sentence, subjects)}
        # "don't call in the morning" says when, and nothing against calls
        if "contact_time" in told and "phone" in (channel := told.get("contact_channel", _NONE)).likes + channel.avoids:
            del told["contact_channel"]
        found |= told
    return list(found.values())


def options_in(subject: Subject, text: str) -> tuple[str, ...]:
    """The subject's options that are named in the text, each once."""
    return tuple(dict.fromkeys(_value(subject, match) for match in subject.pattern.finditer(fold(text).text)))


def spoken_against(text: str, evidence: str, wanted: Wanted) -> str:
    """The cue by which the rules take these words for no such wish, or for its opposite; empty without any."""
    subject = next(one for one in rules().subjects if one.name == wanted.subject)
    quote = fold(evidence).text.strip()
    sentences = [one for one in _SENTENCES.split(fold(text[:MOST]).text) if one.strip()]
    near = [one for one in sentences if quote in one or one.strip() in quote] or sentences
    return next((cue for sentence in near for cue in _against(subject, sentence, wanted)), "")


def _against(subject: Subject, sentence: str, wanted: Wanted) -> Iterator[str]:
    cues = rules().cues
    future = cues["future"].search(sentence)
    yield from (cue for cue in ("others", "unsure") if cues[cue].search(sentence))
    yield from (cue for cue in ("once", "past") if cues[cue].search(sentence) and not future)
    if _only_asks(subject, sentence):
        yield "asks"
    heard = _Heard(subject)
    for clause in _CLAUSES.split(sentence):
        heard.clause(clause)
    if set(wanted.likes) & set(heard.avoids):
        yield "avoid"
    if set(wanted.avoids) & set(heard.likes):
        yield "like"
    if subject.needs and not subject.needs.search(sentence):
        yield "needs"


def _only_asks(subject: Subject, sentence: str) -> bool:
    """Whether it wants to know ("do you usually ship with SF?") and not to have ("can you always use SF?")."""
    cues = rules().cues
    return cues["asks"].search(sentence) is not None and not (
        cues["request"].search(sentence) and (cues["future"].search(sentence) or not subject.lasting)
    )


def _sentence(sentence: str, subjects: Sequence[Subject]) -> Iterator[Wanted]:
    book = rules()
    named = [one for one in subjects if one.hint.search(sentence) and (not one.needs or one.needs.search(sentence))]
    if not named or any(book.cues[cue].search(sentence) for cue in ("others", "unsure")):
        return
    for subject in named:
        heard = _Heard(subject)
        for clause in _CLAUSES.split(sentence):
            heard.clause(clause)
        yield from heard.outcome(sentence)


@dataclass(slots=True)
class _Heard:
    """One subject in one sentence."""

    subject: Subject
    likes: list[str] = field(default_factory=list)
    avoids: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)  # options without a cue yet
    lasting: bool = False
    indifferent: bool = False

    def clause(self, clause: str) -> None:
        """Take in one clause."""
        cues = rules().cues
        future = cues["future"].search(clause)
        if cues["lasting"].search(clause):
            self.lasting = True
        # "This time SF": what is said of one order is no habit, whatever else the sentence says of later.
        if not future and any(cues[cue].search(clause) for cue in ("once", "past")):
            self.waiting = []
            return
        if cues["indifferent"].search(clause) and self.subject.words.search(clause):
            self.indifferent = True
        self._take(clause)

    def _take(self, clause: str) -> None:
        polarity, fresh, verb, any_option = "", True, False, False
        for kind, match in _tokens(self.subject, rules(), clause):
            if kind == "option":
                any_option = True
                self._option(_value(self.subject, match), polarity)
                fresh, polarity = True, "" if polarity == "less" else polarity
            elif kind == "like" and polarity == "avoid" and not fresh:
                continue  # the verb of "don't use": it says the same
            else:
                verb = kind == "avoid" and _VERB.search(match[0]) is not None
                self._settle(kind, any_option=any_option)
                polarity, fresh = kind, False
        if polarity == "avoid" and verb and not any_option:
            self._settle("avoid", any_option=True)

    def _option(self, value: str, polarity: str) -> None:
        if polarity in ("like", "avoid"):
            self._put(value, polarity)
        elif not polarity:
            self.waiting.append(value)

    def _settle(self, polarity: str, *, any_option: bool) -> None:
        """The cue comes behind what it is about, as in: SF, never again."""
        if not any_option or polarity not in ("like", "avoid"):
            return
        for value in self.waiting:
            self._put(value, polarity)
        self.waiting = []

    def _put(self, value: str, polarity: str) -> None:
        here, there = (self.likes, self.avoids) if polarity == "like" else (self.avoids, self.likes)
        if value in there:
            there.remove(value)
        if value not in here:
            here.append(value)

    def outcome(self, sentence: str) -> Iterator[Wanted]:
        """What is kept of the sentence."""
        lasting = self.lasting or not self.subject.lasting
        rule = f"preference.{self.subject.name}"
        if _only_asks(self.subject, sentence):
            return
        if (self.likes or self.avoids) and lasting:
            yield Wanted("preference", self.subject.name, rule, likes=tuple(self.likes), avoids=tuple(self.avoids))
        elif self.indifferent:
            yield Wanted("preference", self.subject.name, rule, clears=True)


def _tokens(subject: Subject, book: Rules, clause: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Options and cues in text order. A longer cue at the same place wins; an option is never part of a cue."""
    options = [("option", match) for match in subject.pattern.finditer(clause)]
    # blanked, so that "don't call me" ends where "call me" begins
    rest, taken = subject.pattern.sub(lambda match: "\0" * len(match[0]), clause), list[tuple[int, int]]()
    cues: list[tuple[str, re.Match[str]]] = []
    for kind in ("less", "avoid", "like"):
        for match in book.cues[kind].finditer(rest):
            start, end = match.span()
            if not any(start < right and left < end for left, right in taken):
                taken.append((start, end))
                cues.append((kind, match))
    yield from sorted([*options, *cues], key=lambda item: item[1].start())


def _value(subject: Subject, match: re.Match[str]) -> str:
    if subject.free:
        return next(part for part in match.groups() if part).upper()
    return match.lastgroup or ""
