"""From a reading in clear to the message that is published: masked, with what was masked sealed beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Literal

import orjson
from pydantic import ValidationError

from agents.understanding.fold import fold, scrub
from agents.understanding.port import Found, Language, Reading, Slots, Wish
from memory.masking import hide, mask
from schemas.base import MAX_TEXT_CHARS
from schemas.events import Seal
from schemas.messages import Address, Evidence, MessageRef, NormalizedMessage, SecondaryIntent, TargetItem

Sealer = Callable[[bytes], Seal]
UNREADABLE, MISSING_ITEM, CONTRADICTS = "unreadable", "missing_item", "contradicts_return_words"
CONTRADICTION = 0.2  # taken off: a wish that was only likely is asked about, a clear one goes on (R-000-18)
NEED_ITEM = frozenset({"refund", "return", "exchange"})  # R-002-03
OF_RETURNING = frozenset({"refund", "refund_status", "refund_amount", "return", "return_status"})
OF_OTHER_THINGS = frozenset({
    "logistics", "change_address", "change_phone", "change_order", "points", "cancel", "invoice", "payment",
    "coupon_price", "account", "hurry_up",
})  # fmt: skip
MASK = "*"
SEALED = ("phone", "address")
_KNOWN: dict[str, Literal["name", "address"]] = {
    "address": "address",
    "person_name": "name",
}  # fields whose value is hidden whatever its shape
_EACH = 20  # pieces of evidence of one field: a message of nothing but numbers must still fit its topic
_SHORTEST = 6  # nothing that is masked is shorter ("a@b.cn")


def masked(raw: str) -> str:
    """The raw text with everything sensitive hidden, also what only folding reveals; of the same length."""
    folded = fold(raw)
    if folded.text == raw:
        return mask(raw)[0]
    # Twice: zero-width characters hide a phone from the first look, and full-width digits from the second.
    shown, found = mask(folded.text)
    chars = list(raw)
    for hit in found:
        for index in range(hit.start, hit.end):
            if shown[index] == MASK:
                start, end = folded.raw(index, index + 1)  # a digit may have been said in a whole word
                chars[start:end] = MASK * (end - start)
    return mask("".join(chars))[0]


def checked(reading: Reading, *, has_order: bool = False) -> tuple[Reading, tuple[str, ...]]:
    """The reading and its marks (R-000-18, R-002-04): less sure where it contradicts the return words.

    `has_order`: a flow under way knows the order, so that a wish without one lacks nothing.
    """
    if not reading.wishes:
        return reading, ()
    main, *others = reading.wishes
    named = main.slots.order_id or main.slots.sku_id or has_order
    marks = () if named or main.intent not in NEED_ITEM else (MISSING_ITEM,)
    if _contradicts(reading):
        main = replace(main, confidence=max(0.0, round(main.confidence - CONTRADICTION, 3)))
        return replace(reading, wishes=(main, *others)), (*marks, CONTRADICTS)
    return reading, marks


def _contradicts(reading: Reading) -> bool:
    """Words of returning and an intent that has nothing to do with it, or such an intent without any such word."""
    main = reading.wishes[0].intent
    if main in OF_RETURNING:
        return not reading.return_words
    told = {wish.intent for wish in reading.wishes}
    return reading.return_words and main in OF_OTHER_THINGS and not told & {*OF_RETURNING, "exchange", "stop"}


def normalized(
    reading: Reading, raw: str, ref: MessageRef, seal: Sealer, marks: tuple[str, ...] = ()
) -> NormalizedMessage:
    """The message of a reading. Raises ValidationError for a reading that the contract refuses."""
    main, *others = reading.wishes or (Wish("", 0.0),)  # a reading without a wish is refused like any broken one
    shown = _shown(raw, reading.evidence)
    return NormalizedMessage(
        ref=ref, intent=main.intent, confidence=main.confidence,
        evidence=tuple(_evidence(found, raw, shown) for found in _first_of_each(reading.evidence)),
        urgency=reading.urgency, language=reading.language, sentiment=reading.sentiment, text=_text(shown),
        target_item=_item(main.slots), amount=main.slots.amount, address=_address(main.slots),
        time_reference=reading.time_reference, secondary_intents=tuple(map(_secondary, others)),
        return_words=reading.return_words, reason=None if reading.reason is None else _part(reading.reason, raw, shown),
        seal=_seal(reading, seal), marks=marks,
    )  # fmt: skip


def _evidence(found: Found, raw: str, shown: str) -> Evidence:
    span = slice(found.start, found.end)
    value = scrub(shown[span]) if raw[span] == found.value else _hidden(found.value, found.field)
    return Evidence(field=found.field, value=value, start=found.start, end=found.end)


def _first_of_each(evidence: Iterable[Found]) -> Iterator[Found]:
    seen: Counter[str] = Counter()
    for found in evidence:
        seen[found.field] += 1
        if seen[found.field] <= _EACH:
            yield found


def unreadable(raw: str, ref: MessageRef, language: Language) -> NormalizedMessage:
    """A message whose reading fails the schema goes to a person, and is not tried again (R-002-04)."""
    return NormalizedMessage(ref=ref, intent="human", confidence=0.0, evidence=(), language=language,
                             sentiment="neutral", text=_text(masked(raw)), marks=(UNREADABLE,))  # fmt: skip


def first_fault(error: ValidationError) -> str:
    """The field that the contract refused and why, without the value."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def _shown(raw: str, evidence: Iterable[Found] = ()) -> str:
    """Masked by shape, and where the reader found a name or an address that only the context tells."""
    chars = list(masked(raw))
    for found in evidence:
        kind, span = _KNOWN.get(found.field), slice(found.start, found.end)
        if kind is not None:
            hidden = hide(kind, raw[span])
            chars[span] = [MASK if MASK in pair else pair[0] for pair in zip(chars[span], hidden, strict=True)]
    return "".join(chars)


def _text(shown: str) -> str:
    return scrub(shown)[:MAX_TEXT_CHARS]


def _part(value: str, raw: str, shown: str) -> str:
    """A value as it is shown where it stands in the text: its cue may lie outside it."""
    at = raw.find(value)
    return scrub(shown[at : at + len(value)]) if at >= 0 else _hidden(value)


def _hidden(value: str, field: str = "") -> str:
    kind = _KNOWN.get(field)
    if kind is not None:
        return scrub(hide(kind, value))
    if len(value) < _SHORTEST or (value.isascii() and value.isalpha()):
        return scrub(value)
    return scrub(mask(value)[0])


def _item(slots: Slots) -> TargetItem | None:
    if not (slots.order_id or slots.sku_id or slots.category or slots.colour or slots.size):
        return None
    return TargetItem(category=slots.category, sku_id=slots.sku_id, order_id=slots.order_id, colour=slots.colour,
                      size=slots.size)  # fmt: skip


def _address(slots: Slots) -> Address | None:
    if not (slots.address or slots.phone):
        return None
    return Address(text=_hidden(slots.address or "", "address"), phone=_hidden(slots.phone) if slots.phone else None)


def _secondary(wish: Wish) -> SecondaryIntent:
    return SecondaryIntent(intent=wish.intent, confidence=wish.confidence, target_item=_item(wish.slots),
                           amount=wish.slots.amount, address=_address(wish.slots))  # fmt: skip


def _seal(reading: Reading, seal: Sealer) -> Seal | None:
    """The clear values of masked slots, by field; of two of a field the first counts."""
    clear: dict[str, str] = {}
    for wish in reading.wishes:
        for name in SEALED:
            value = getattr(wish.slots, name)
            if value and MASK not in value and _hidden(value, name) != value:
                clear.setdefault(name, value)
    return seal(orjson.dumps(clear, option=orjson.OPT_SORT_KEYS)) if clear else None
