"""Two readings of one message, ours and a model's: what agrees, what is doubted, and the little that is taken over.

A model never acts (promise 7). Alone it may name a question that is looked up, or a change that planning asks about
first; a yes, a stop, a person and every number that the customer did not write are never its to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from agents.models.form import Form
from agents.understanding.forged import FIELD, HINT
from agents.understanding.intents import CLEAR, KIN
from agents.understanding.normalize import MISSING_ITEM, NEED_ITEM, masked
from schemas.messages import Evidence, NormalizedMessage, TargetItem

AGREES, DISAGREES, TAKEN, REFUSED = "model_agrees", "model_disagrees", "model_taken", "model_refused"
TRUST = 0.5  # share of the doubt that a model which agrees takes away; what it says of its own certainty is no measure
RAISED_MOST = 0.9
DOUBT = 0.2  # taken off when it disagrees, as for words of returning (R-000-18)
LOOKED_UP = 0.65  # a question that the model alone understood: answered, yet below what we read ourselves
READS = frozenset({
    "refund_status", "refund_amount", "return_status", "logistics", "points", "coupon_price", "product_question",
    "greeting", "thanks",
})  # fmt: skip
"""Intents after which nothing is changed."""
OWN_WORDS = frozenset({"confirm", "deny", "stop", "human", "inform", "hurry_up", "complaint", "account"})
"""Intents that only the customer's own words give: a yes moves money, a stop ends a flow, a person is a cost."""
_CHANGES = frozenset({"change", "pay"})
_ORDER = re.compile(r"(?=[A-Za-z0-9\-]*[0-9])(?=[0-9\-]*[A-Za-z])[A-Za-z0-9\-]{4,24}")
_BESIDE = frozenset({"intent", "reason", "return_words", "sentiment", "urgency", "order_id"})  # spans that exclude none


@dataclass(frozen=True, slots=True)
class Compared:
    """The message as it goes on, how the readings stand to each other, and that in words."""

    message: NormalizedMessage
    verdict: Literal["agrees", "disagrees", "taken"]
    why: str
    refused: tuple[str, ...] = ()


def compared(message: NormalizedMessage, form: Form, shown: Collection[str], *, asked: bool) -> Compared:
    """Our message after a model's form. `shown`: orders that were talked of; `asked`: a flow waits for an answer."""
    basis = _basis(message, form)
    result = _judged(message, form, basis, asked=asked)
    return _with_orders(result, form, shown if basis else ())


def _judged(message: NormalizedMessage, form: Form, basis: Evidence | None, *, asked: bool) -> Compared:
    ours, theirs = message.intent, form.intent
    said = f"the model reads {theirs}{f' from {basis.value!r}' if basis else ' without the words for it'}"
    if _kin(theirs) == _kin(ours) or ours in form.other_intents:
        surer = basis is not None and _kin(theirs) == _kin(ours) and ours not in OWN_WORDS
        sure = _raised(message.confidence) if surer else message.confidence
        return Compared(_marked(message, AGREES, confidence=sure), "agrees", said)
    if basis is not None and not asked and message.confidence < CLEAR and _open(ours, theirs):
        sure = LOOKED_UP if theirs in READS else min(message.confidence, HINT)
        return Compared(_taken(message, theirs, sure, basis), "taken", said)
    # without the words for it, its reading is none: a model that only makes things up must not make us ask all day
    less = message.confidence if basis is None else max(0.0, round(message.confidence - DOUBT, 3))
    return Compared(_marked(message, DISAGREES, confidence=less), "disagrees", f"{said}, we read {ours}")


def _kin(intent: str) -> str:
    """A return is the refund of its money: one flow, so no disagreement. A plea to hurry is no question, though."""
    return intent if intent == "hurry_up" else KIN.get(intent, intent)


def _raised(confidence: float) -> float:
    return round(max(confidence, min(RAISED_MOST, 1 - (1 - confidence) * (1 - TRUST))), 3)


def _open(ours: str, theirs: str) -> bool:
    """Whether our doubtful reading gives way: an abstain to anything that may be taken, a question to a question."""
    if theirs in OWN_WORDS:
        return False
    return ours == "out_of_scope" or (ours in READS and theirs in READS)


def _taken(message: NormalizedMessage, intent: str, confidence: float, basis: Evidence) -> NormalizedMessage:
    others = tuple(one for one in message.secondary_intents if one.intent != intent)
    marks = message.marks
    if intent in NEED_ITEM and message.target_item is None and MISSING_ITEM not in marks:
        marks = (*marks, MISSING_ITEM)
    sure = min(confidence, round(confidence, 3))  # a digit less must not make it surer
    return _marked(message, TAKEN, intent=intent, confidence=sure, secondary_intents=others,
                   evidence=(*message.evidence, basis), marks=marks)  # fmt: skip


def _marked(message: NormalizedMessage, mark: str, **changes: Any) -> NormalizedMessage:
    marks = (*changes.pop("marks", message.marks), mark)
    return message.model_copy(update={**changes, "marks": marks})


def _basis(message: NormalizedMessage, form: Form) -> Evidence | None:
    """The words that the model rests on, where they stand in the message and its plan fits its intent (R-000-03)."""
    if form.intent in READS and _CHANGES & set(form.plan):
        return None  # it would look something up and change something: it does not know what it reads
    quoted = next((found for quote in form.evidence for found in places(message, quote)), None)
    return None if quoted is None else Evidence(field="intent", value=quoted[0], start=quoted[1], end=quoted[2])


def places(message: NormalizedMessage, quote: str) -> Iterator[tuple[str, int, int]]:
    """Where a quote stands in what the customer said themselves; quoted and forged text is none of that (case E15)."""
    end = min((found.start for found in message.evidence if found.field == FIELD), default=len(message.text))
    wanted = quote.strip()
    start = message.text.find(wanted, 0, end) if any(map(str.isalnum, wanted)) else -1  # a comma stands anywhere
    if start >= 0:
        yield wanted, start, start + len(wanted)


def _with_orders(result: Compared, form: Form, shown: Collection[str]) -> Compared:
    """The first number that may count, where we found none; those that stand nowhere are refused, and told."""
    message, known = result.message, _known(result.message)
    strange = [number for number in form.order_ids if number not in known]
    found = None
    if not known and message.intent not in OWN_WORDS:
        found = next((place for number in strange if (place := _own(message, number, shown))), None)
    refused = tuple(number for number in strange if found is None or number != found[0])
    if found is not None:
        message = _filled(message, *found)
    if refused:
        message = _marked(message, REFUSED)
    return Compared(message, result.verdict, result.why, refused)


def _known(message: NormalizedMessage) -> set[str]:
    """The order numbers that we read ourselves, in the message or by what it points to."""
    items = [message.target_item, *(one.target_item for one in message.secondary_intents)]
    spans = {found.value for found in message.evidence if found.field == "order_id"}
    return spans | {item.order_id for item in items if item is not None and item.order_id}


def _own(message: NormalizedMessage, number: str, shown: Collection[str]) -> tuple[str, Evidence | None] | None:
    """A number that the customer wrote, or, for a question, one that was talked of."""
    if number in shown and message.intent in READS:
        return number, None
    span = own_number(message, number)
    return None if span is None else (number, span)


def own_number(message: NormalizedMessage, number: str) -> Evidence | None:
    """Where the customer wrote the order number, if it is one.

    Digits alone may be a price or a date: those count only where our own reading takes them for an order.
    """
    if not _ORDER.fullmatch(number) or masked(number) != number:
        return None
    for value, start, end in places(message, number):
        around = f"{message.text[start - 1 : start]}{message.text[end : end + 1]}"
        other = any(found.field not in _BESIDE and found.start < end and start < found.end
                    for found in message.evidence)  # fmt: skip
        if not other and not any(char == "*" or (char.isascii() and char.isalnum()) for char in around):
            return Evidence(field="order_id", value=value, start=start, end=end)
    return None


def _filled(message: NormalizedMessage, number: str, span: Evidence | None) -> NormalizedMessage:
    item = (message.target_item or TargetItem()).model_copy(update={"order_id": number})
    evidence = message.evidence if span is None else (*message.evidence, span)
    marks = tuple(mark for mark in message.marks if mark != MISSING_ITEM)
    return message.model_copy(update={"target_item": item, "evidence": evidence, "marks": marks})
