"""Rules and classifier, combined: exact words win where they are certain, and a disagreement lowers confidence.

The rules say what a clause's words mean; the classifier, what a sentence like it usually meant. Each is right where
the other is not: the rules on answers, numbers and negations, the classifier on wordings that nobody listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from agents.understanding.clauses import Layout
from agents.understanding.intents import CLEAR, COURTESIES, TASKS, Mention
from agents.understanding.model.classify import Guess
from agents.understanding.port import Context

CERTAIN = 0.8  # rules this sure are not overruled, only doubted
HINT = 0.25  # a guess that no other comes near is a hint from here on: planning asks whether it is meant
_STANDS_OUT = 2.5  # times as likely as the next
ABSTAIN = 0.5  # a guess below this is none
_OVERRULES = 0.7  # a guess this sure stands against words that only usually mean something
_BESIDE = 0.85  # and this sure it is a wish of its own in a clause without known words
_INTERRUPTS = 0.9  # and this sure it is more than an odd answer to what the flow asked
MOST = 0.99  # no reading is certain
_LEAST = 2  # words or Chinese characters: from fewer nothing is guessed
# kana, hangul, Cyrillic, Greek, Arabic, Hebrew, Thai and other letters that are neither Latin nor Han
_UNKNOWN = re.compile(r"[\u0370-\u1fff\u3040-\u30ff\u31f0-\u31ff\ua960-\ua97f\uac00-\ud7ff]")
_WORDS = re.compile(r"[\u3400-\u9fff]|[A-Za-z]{2,}")
_DOUBT = 0.3  # taken off at most when the classifier is certain of something else
_NEVER_GUESSED = frozenset({"confirm", "deny", "inform"})  # a yes moves money: only its exact words are one (promise 7)
# Among these the words tell wishes apart that sentences do not: "能退吗" asks for a refund, "能退多少" for a sum.
_CLOSE = frozenset({"refund", "refund_status", "refund_amount", "return", "return_status"})
# A wish beside another must not end the other: that takes exact words.
_ADDED = TASKS - {"complaint", "human", "out_of_scope", "stop"}
_KEPT = frozenset({"confirm", "deny", "stop", "human", *COURTESIES})  # exact words that need no second opinion


class Classifier(Protocol):
    """Gives each intent that it knows a probability. Pure."""

    def guesses(self, text: str) -> list[Guess]:
        """The intents, the likeliest first; empty where the text holds nothing that it knows."""
        ...


def combined(spoken: Sequence[Mention], text: str, cut: Layout, model: Classifier, context: Context, *,
             bare: bool) -> list[Mention]:  # fmt: skip
    """The mentions of a text after the classifier's opinion, in order. `bare`: the text is slots and little else."""
    if not cut.segments or bare or len(_WORDS.findall(text)) < _LEAST or _foreign(text):
        return list(spoken)
    whole = model.guesses(text)
    if not whole:
        return list(spoken)
    if not spoken:
        return _guessed(whole, text, context)
    opinions = {0: whole} if len(cut.segments) == 1 else _by_segment(text, cut, model)
    kept = [_judged(mention, opinions.get(mention.segment, ()), context) for mention in spoken]
    return sorted(kept + _beside(kept, opinions, cut, whole, context), key=lambda mention: mention.start)


def _foreign(text: str) -> bool:
    """Whether a script stands in the text that the classifier was never shown: Han letters alone make no Chinese."""
    return len(_UNKNOWN.findall(text)) >= _LEAST


def _by_segment(text: str, cut: Layout, model: Classifier) -> dict[int, list[Guess]]:
    return {index: model.guesses(text[one.body : one.end]) for index, one in enumerate(cut.segments[:8])}


def _guessed(whole: Sequence[Guess], text: str, context: Context) -> list[Mention]:
    """The classifier alone; what the flow asked for is not lightly taken for something else."""
    first = whole[0]
    near = max((guess.probability for guess in whole[1:]), default=0.0)
    alone = first.intent in TASKS and first.probability >= _STANDS_OUT * near
    least = _INTERRUPTS if context.expects else HINT if alone else ABSTAIN
    if first.probability < least or first.intent in _NEVER_GUESSED or context.expects == "reason":
        return []
    start = len(text) - len(text.lstrip())
    return [Mention(first.intent, min(first.probability, MOST), 0, start, len(text.rstrip()))]


def _judged(mention: Mention, guesses: Sequence[Guess], context: Context) -> Mention:
    if mention.intent in _KEPT or not guesses:
        return mention
    likely, rival = _share(guesses, mention.intent), guesses[0]
    if rival.intent == mention.intent:
        # An answer that is waited for must not lose to words that only got surer by being said twice.
        sure = 0.0 if context.expects else likely
        return replace(mention, confidence=round(min(1 - (1 - mention.confidence) * (1 - sure), MOST), 3))
    settled = mention.confidence >= CERTAIN or context.expects or {mention.intent, rival.intent} <= _CLOSE
    if not settled and rival.intent not in _NEVER_GUESSED and rival.probability >= _OVERRULES:
        return replace(mention, intent=rival.intent, confidence=round(rival.probability * (1 - _DOUBT / 2), 3))
    return replace(mention, confidence=round(mention.confidence - _DOUBT * (rival.probability - likely), 3))


def _share(guesses: Sequence[Guess], intent: str) -> float:
    return next((guess.probability for guess in guesses if guess.intent == intent), 0.0)


def _beside(kept: Sequence[Mention], opinions: dict[int, list[Guess]], cut: Layout, whole: Sequence[Guess],
            context: Context) -> list[Mention]:  # fmt: skip
    """Wishes in clauses where the rules know no word; not while a flow waits for an answer."""
    told, heard = {mention.intent for mention in kept}, {mention.segment for mention in kept}
    found: list[Mention] = []
    for index, guesses in opinions.items():
        if index in heard or not guesses or context.expects:
            continue
        first = guesses[0]
        wish = first.intent in _ADDED and first.intent not in told
        if wish and first.probability >= _BESIDE and _share(whole, first.intent) >= 1 - _BESIDE:
            segment = cut.segments[index]
            found.append(Mention(first.intent, max(CLEAR, round(first.probability - _DOUBT / 2, 3)), index,
                                 segment.body, segment.end))  # fmt: skip
            told.add(first.intent)
    return found
