"""A message that cites the past, looked at once more with what the stores recalled for it (R-002-10)."""

from __future__ import annotations

from dataclasses import replace

from agents.context import looked_up
from agents.understanding.normalize import MISSING_ITEM
from agents.understanding.port import Found, Reading, Slots, Wish
from agents.understanding.references import OF_THING, Resolved
from schemas.messages import Evidence, NormalizedMessage, SecondaryIntent, TargetItem
from schemas.step import Draft


def read_again(draft: Draft, message: NormalizedMessage) -> tuple[NormalizedMessage, bool]:
    """The message with what it points to, and whether that is still ambiguous.

    Its words were read when it came; nothing but the thing that it means can change, and never one that it names.
    """
    found = looked_up(draft, _reading(message), message.text, message.ref.message_id)
    return (_filled(message, found) if found.status == "filled" else message), found.status == "ambiguous"


def _reading(message: NormalizedMessage) -> Reading:
    """What a message says, as the resolver takes it; what is masked in it stays so."""
    main = Wish(message.intent, message.confidence, _slots(message.target_item))
    others = (Wish(one.intent, one.confidence, _slots(one.target_item)) for one in message.secondary_intents)
    return Reading(
        (main, *others),
        tuple(Found(one.field, one.value, one.start, one.end) for one in message.evidence),
        return_words=message.return_words,
    )


def _slots(item: TargetItem | None) -> Slots:
    return replace(Slots(), **item.model_dump()) if item else Slots()


def _filled(message: NormalizedMessage, found: Resolved) -> NormalizedMessage:
    main, *others = found.reading.wishes
    secondary = tuple(_wish(old, new) for old, new in zip(message.secondary_intents, others, strict=True))
    evidence = tuple(Evidence(field=one.field, value=one.value, start=one.start, end=one.end)
                     for one in found.reading.evidence)  # fmt: skip
    named = main.slots.order_id or main.slots.sku_id
    marks = tuple(mark for mark in message.marks if mark != MISSING_ITEM or not named)
    return message.model_copy(update={
        "intent": main.intent, "confidence": main.confidence, "target_item": _item(main.slots), "evidence": evidence,
        "secondary_intents": secondary, "marks": (*marks, "resolved"),
    })  # fmt: skip


def _wish(old: SecondaryIntent, new: Wish) -> SecondaryIntent:
    return old.model_copy(update={"intent": new.intent, "confidence": new.confidence,
                                  "target_item": _item(new.slots)})  # fmt: skip


def _item(slots: Slots) -> TargetItem | None:
    values = {name: value for name in OF_THING if (value := getattr(slots, name)) is not None}
    return TargetItem(**values) if values else None
