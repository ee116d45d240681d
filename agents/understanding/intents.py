"""Which intents a text's words speak of, by segment, with a confidence that follows from documented scores.

See lexicons/intents.yaml for the patterns and for what each number means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.understanding.clauses import Layout, Segment, conditional
from agents.understanding.lexicon import Lexicon, Pattern, View
from agents.understanding.port import Context

# Questions whose answer changes nothing: they take the light path (R-003-20).
QUERIES = frozenset(
    {"refund_status", "refund_amount", "return_status", "logistics", "points", "invoice", "coupon_price",
     "product_question"}
)  # fmt: skip
# Wishes that are about an order, so that a message's order number is theirs.
ORDERED = frozenset(
    {"refund", "refund_status", "refund_amount", "return", "return_status", "exchange", "cancel", "change_address",
     "change_phone", "change_order", "invoice", "logistics", "hurry_up", "payment"}
)  # fmt: skip
TASKS = QUERIES | ORDERED | {"account", "complaint", "human", "stop", "out_of_scope"}
COURTESIES = frozenset({"greeting", "thanks"})
# A wish for goods to go back is the wish for their money, and so is the question after it: one flow, not two.
KIN = {"return": "refund", "return_status": "refund_status", "hurry_up": "logistics"}
_LONGEST_ANSWER = 40  # characters of a clause that may still be nothing but a yes, a no or a courtesy
_CANCELS = re.compile(r"cancel|取消", re.IGNORECASE)
CLEAR = 0.6  # below it planning asks before it acts (design section 6)


@dataclass(frozen=True, slots=True)
class Mention:
    """Words of a text that speak of an intent."""

    intent: str
    confidence: float
    segment: int
    start: int
    end: int


@dataclass(slots=True)
class _Score:
    base: float
    start: int
    end: int
    hits: int = 1


def mentions(view: View, cut: Layout, context: Context, words: Lexicon) -> list[Mention]:
    """The intents of a text in the order of their words; nothing below the abstain score."""
    # By segment, so that words of one wish neither feed nor hush the words of the next.
    by_segment: list[dict[str, _Score]] = [{} for _ in cut.segments]
    for script in view.scripts if cut.segments else ():
        for pattern, regex in words.patterns[script]:
            for match in regex.finditer(view.text):
                _note(by_segment[cut.segment_at(match.start())], pattern, match.span())
    for scores, segment in zip(by_segment, cut.segments, strict=True):
        _answers(view, segment, scores, context, words)
        for strong in list(scores):
            # A suppressed intent may be a key itself: it hushes nothing any more once it is gone.
            for weak in words.suppresses.get(strong, ()) if strong in scores else ():
                scores.pop(weak, None)
    found = [mention for index, scores in enumerate(by_segment) for mention in _scored(index, scores, words)]
    best = max((mention.confidence for mention in found), default=0.0)
    floor = CLEAR if best >= CLEAR else words.scoring.abstain  # a hint beside a clear wish is no wish
    return sorted((mention for mention in found if mention.confidence >= floor), key=lambda mention: mention.start)


def wanted(spoken: Sequence[Mention], text: str, cut: Layout, *, order_named: bool = False) -> list[Mention]:
    """The mentions without the condition of a wish behind it, and with each cancellation as what it cancels.

    `order_named`: the text names an order while nothing is under way that could be cancelled instead.
    """
    last = max((one.segment for one in spoken if one.intent in TASKS), default=0)
    told = [one for one in spoken if one.segment >= last or not conditional(text, cut.segments[one.segment])]
    again = {id(one) for one in told if one.intent == "stop" and _CANCELS.search(text[one.start : one.end])}
    # "Don't ship 1001, cancel it": the order is meant, and not what the agent is doing.
    if any(one.intent == "cancel" for one in told):
        return [one for one in told if id(one) not in again]
    return [replace(one, intent="cancel") if id(one) in again and order_named else one for one in told]


def _note(scores: dict[str, _Score], pattern: Pattern, span: tuple[int, int]) -> None:
    base = pattern.base
    start, end = span
    known = scores.get(pattern.intent)
    if known is None:
        scores[pattern.intent] = _Score(base, start, end)
    elif base > known.base:
        scores[pattern.intent] = _Score(base, start, end, known.hits + 1)
    else:
        known.hits += 1


def _answers(view: View, segment: Segment, scores: dict[str, _Score], context: Context, words: Lexicon) -> None:
    """Clauses that are an answer or a courtesy as a whole; an expected yes outranks the words in it ("确认退款")."""
    text = view.text
    body = text[segment.body : segment.end]
    filler = words.filler.match(body)
    start = segment.body + (filler.end() if filler else 0)
    start += len(text[start : segment.end]) - len(text[start : segment.end].lstrip())
    end = segment.body + len(body.rstrip(" \t~.。"))
    if not 0 < end - start <= _LONGEST_ANSWER:
        return
    for pattern in words.whole:
        if pattern.intent == "no_number" and context.expects != "order_id":
            continue  # "I don't know" answers a question for the number and nothing else
        if pattern.words.fullmatch(view, start, end) or (filler and pattern.words.fullmatch(view, segment.body, end)):
            awaited = context.expects == "confirm" and pattern.intent in ("confirm", "deny", "stop")
            if pattern.intent in ("confirm", "stop"):
                scores.clear()
            scores[pattern.intent] = _Score(words.scoring.expected if awaited else words.scoring.whole, start, end)
            return


def _scored(index: int, scores: dict[str, _Score], words: Lexicon) -> list[Mention]:
    rules = words.scoring
    tasks = sum(intent in TASKS and score.base >= rules.medium for intent, score in scores.items())
    result = []
    for intent, score in scores.items():
        rivals = tasks - 1 if intent in TASKS and score.base >= rules.medium else min(tasks, 1)
        confidence = score.base + rules.more * min(score.hits - 1, 2) - rules.rival * min(rivals, 1)
        bounded = round(min(confidence, rules.most), 3)
        told = words.reads_as.get(intent, intent)
        result.append(Mention(told, bounded, index, score.start, score.end))
    return result
