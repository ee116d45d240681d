"""Which intents a text's words speak of, by segment, with a confidence that follows from documented scores.

See lexicons/intents.yaml for the patterns and for what each number means.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.understanding import denials
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
_DONE = ORDERED - QUERIES - {"hurry_up", "payment"} | {"stop"}  # what has something done, or undone
COURTESIES = frozenset({"greeting", "thanks"})
# A wish for goods to go back is the wish for their money, and so is the question after it: one flow, not two.
KIN = {"return": "refund", "return_status": "refund_status", "hurry_up": "logistics"}
_LONGEST_ANSWER = 40  # characters of a clause that may still be nothing but a yes, a no or a courtesy
_CANCELS = re.compile(
    r"(?:cancel(?!l?ation)|取消)(?!.*(?:refund|return|exchange|replacement|退|换))", re.IGNORECASE
)  # a refund is stopped
# "Refund it, I won't send it back" is about the goods alone
_GOODS = re.compile(r"退货(?!.*了)|\breturn(?!.*(?:any ?more|any longer|after all|now))", re.IGNORECASE)
CLEAR = 0.6  # below it planning asks before it acts (design section 6)


@dataclass(frozen=True, slots=True)
class Mention:
    """Words of a text that speak of an intent; `denies`: it is a stop that only says that this one is not wanted."""

    intent: str
    confidence: float
    segment: int
    start: int
    end: int
    denies: str | None = None


@dataclass(slots=True)
class _Score:
    base: float
    start: int
    end: int
    hits: int = 1


def mentions(view: View, cut: Layout, context: Context, words: Lexicon) -> list[Mention]:
    """The intents of a text in the order of their words; nothing below the abstain score."""
    # By segment, so that words of one wish neither feed nor hush the words of the next.
    by_segment, unwanted = _noted(view, cut, words)
    for index, segment in enumerate(cut.segments):
        scores = by_segment[index]
        if not scores and index not in unwanted and (bare := denials.few(view.text, segment)) is not None:
            unwanted[index] = bare
        _answers(view, segment, scores, context, words)
        for strong in sorted(
            scores, key=lambda one: one != "stop"
        ):  # "宁可退款也不换货": what is stopped hushes nothing
            # A suppressed intent may be a key itself: it hushes nothing any more once it is gone.
            for weak in words.suppresses.get(strong, ()) if strong in scores else ():
                if weak in scores and (strong != "stop" or _stops(view.text, scores["stop"], weak, scores[weak])):
                    scores.pop(weak)
    found = [mention for index, scores in enumerate(by_segment) for mention in _scored(index, scores, words)]
    found += _denials(
        unwanted, {one.segment for one in found if one.intent in TASKS and one.confidence >= CLEAR}, words
    )
    best = max((mention.confidence for mention in found), default=0.0)
    floor = CLEAR if best >= CLEAR else words.scoring.abstain  # a hint beside a clear wish is no wish
    return sorted((mention for mention in found if mention.confidence >= floor), key=lambda mention: mention.start)


def _noted(view: View, cut: Layout, words: Lexicon) -> tuple[list[dict[str, _Score]], dict[int, tuple[str, int, int]]]:
    """What the words of each segment speak of, and the first wish of each that is denied."""
    by_segment: list[dict[str, _Score]] = [{} for _ in cut.segments]
    unwanted: dict[int, tuple[str, int, int]] = {}
    matches: list[list[tuple[Pattern, tuple[int, int]]]] = [[] for _ in cut.segments]
    for script in view.scripts if cut.segments else ():
        for pattern, regex in words.patterns[script]:
            for match in regex.finditer(view.text):
                matches[cut.segment_at(match.start())].append((pattern, match.span()))
    for index, (segment, found) in enumerate(zip(cut.segments, matches, strict=True)):
        ordered = [(pattern.intent, *span) for pattern, span in found if pattern.intent in ORDERED]
        spans = denials.conditions(view.text, segment) if ordered else []
        if all(_within(one[1], spans) for one in ordered):
            spans = []  # a condition of nothing: "tell me if it can be returned"
        no = [one for one in ordered if denials.denied(view.text, segment, one[1], one[2])]
        if no:
            unwanted[index] = no[0]
        spans = sorted(
            [*spans, *((one[1], denials.until(view.text, one[2])) for one in no)]
        )  # in "没说要改地址" the address alone is no wish either
        for pattern, span in found:
            if pattern.intent not in ORDERED or not _within(span[0], spans):
                _note(by_segment[index], pattern, span)
    return by_segment, unwanted


def _within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a place is in one of the last few spans that begin before it, in order: a message may have thousands."""
    at = bisect_right(spans, (place, 1 << 30))
    return any(place < right for _, right in spans[max(0, at - 8) : at])


def _stops(text: str, stop: _Score, intent: str, score: _Score) -> bool:
    """Whether a stop hushes a wish of its clause, which "不要退货要换货" does with one of the two."""
    if stop.start <= score.start < stop.end:
        return True
    family = denials.stopped(text[stop.start : stop.end])
    return family is None or intent in family or intent not in ORDERED


def _denials(unwanted: dict[int, tuple[str, int, int]], heard: set[int], words: Lexicon) -> list[Mention]:
    """Of each segment that says of a wish that it is none, and wishes for nothing, a stop of that one."""
    base = words.scoring.whole
    return [
        Mention("stop", base, index, start, end, words.reads_as.get(intent, intent))
        for index, (intent, start, end) in unwanted.items()
        if index not in heard
    ]


def wanted(spoken: Sequence[Mention], text: str, cut: Layout, *, order_named: bool = False) -> list[Mention]:
    """The mentions without the condition of a wish behind it, and with each cancellation as what it cancels.

    `order_named`: the text names an order while nothing is under way that could be cancelled instead.
    """
    last = max((one.segment for one in spoken if one.intent in TASKS), default=0)
    told = [one for one in spoken if one.segment >= last or not conditional(text, cut.segments[one.segment])]
    ordered = sorted({one.segment for one in told if one.intent in ORDERED})
    first = denials.taken_back(text, cut, ordered)
    told = [one for one in told if one.segment >= first or one.intent not in ORDERED]
    told = _standing(told, text, cut)
    if ordered and denials.ends(text, cut):
        return [replace(one, intent="stop") if one.intent in ORDERED else one for one in told if one.intent != "deny"]
    again = {
        id(one)
        for one in told
        if one.intent == "stop" and not one.denies and _CANCELS.search(text[one.start : one.end])
    }
    # "Don't ship 1001, cancel it": the order is meant, and not what the agent is doing.
    if any(one.intent == "cancel" for one in told):
        return [one for one in told if id(one) not in again]
    return [replace(one, intent="cancel") if id(one) in again and order_named else one for one in told]


def _standing(told: list[Mention], text: str, cut: Layout) -> list[Mention]:
    """Without the wishes that a later stop is about ("cancel 1001 ... wait, don't cancel it"): said last, it counts."""
    last = max((one.segment for one in told if one.intent in _DONE), default=0)
    stops = [one for one in told if one.intent == "stop"][-8:]  # a message may have thousands
    left = [
        one
        for one in told
        if one.intent not in ORDERED
        or not (
            denials.given_up(text, cut, one.segment, last)
            or any(stop.segment > one.segment and _about(stop, one, text, cut) for stop in stops)
        )
    ]
    gone = [] if any(one.intent in TASKS for one in left) else [one for one in told if one.intent in ORDERED]
    return [*left, *(replace(one, intent="stop", denies=one.intent) for one in gone[:1])]


def _about(stop: Mention, wish: Mention, text: str, cut: Layout) -> bool:
    family = denials.stopped(text[stop.start : stop.end]) or frozenset()
    if stop.denies is not None:
        family |= {stop.denies}
    if wish.intent == "refund" and _GOODS.search(text, stop.start, cut.segments[stop.segment].end):
        return False
    kin = {KIN.get(one, one) for one in family}
    span = (stop.segment, stop.start, stop.end)
    return KIN.get(wish.intent, wish.intent) in kin and denials.stops_all(text, cut, span, wish.segment)


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
