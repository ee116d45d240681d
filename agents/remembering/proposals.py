"""What counts of what a model would remember: only what stands in the customer's own words, and what our rules allow.

A wrong memory costs more than a missing one, so that whatever is in doubt is refused, and why is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents.models.compare import own_number, places
from agents.remembering import values
from agents.remembering.lexicon import rules
from agents.remembering.port import Wanted
from agents.remembering.preferences import options_in, spoken_against
from agents.remembering.question import Facts, Preferred, Stated
from agents.understanding.places import addresses, likely
from memory.masking import mask
from schemas.messages import Address, NormalizedMessage, TargetItem

SHORTEST = 2  # characters of a value that is kept in words: one alone says nothing
KINDS = tuple(Facts.model_fields)


@dataclass(frozen=True, slots=True)
class Refused:
    """A kind that the model named and that is not kept; `why` holds no word of the model's."""

    kind: str
    why: str


def proposals(message: NormalizedMessage, facts: Facts, seal: values.Sealer) -> Iterator[Wanted | Refused]:
    """Each kind that the model named, as something that may be kept or as refused."""
    for kind in KINDS:
        stated: Stated | None = getattr(facts, kind)
        if stated is None:
            continue
        why = _unfounded(message, stated)
        found = why or _wanted(kind, message, stated, seal)
        yield Refused(kind, found) if isinstance(found, str) else found


def _unfounded(message: NormalizedMessage, stated: Stated) -> str:
    """Why the words are not the customer's; empty when they are."""
    quote = next(places(message, stated.evidence), None)
    if quote is None:
        return "its evidence does not stand in the message"
    words, begin, _ = quote
    value = stated.value.strip()
    if not value or value not in words:
        return "its value does not stand in its evidence"
    start = begin + words.index(value)
    # with what stands around it: half of a number or of an address is masked, too
    shown = message.text[max(0, start - 1) : start + len(value) + 1]
    return "its value is masked, or would have to be" if "*" in shown or mask(value)[0] != value else ""


def _wanted(kind: str, message: NormalizedMessage, stated: Stated, seal: values.Sealer) -> Wanted | str:
    value = stated.value.strip()
    if isinstance(stated, Preferred):
        return _preference(message, stated)
    if len(value) < SHORTEST or not any(map(str.isalpha, value)):
        return "its value says nothing"
    if kind == "address":
        return _address(message, value, seal)
    if kind == "item":
        return _item(message, value)
    if kind == "complaint" and message.sentiment == "pleased":
        return "the customer is pleased"
    kept = values.complaint(message.model_copy(update={"reason": value})) if kind == "complaint" else (
        values.told_promise(value, message.language))  # fmt: skip
    return Wanted(kind, values.short(message.ref.message_id), kind, kept)


def _preference(message: NormalizedMessage, stated: Preferred) -> Wanted | str:
    """One of the options that rules.yaml knows, where our own rules hear nothing that speaks against it."""
    subject = next(one for one in rules().subjects if one.name == stated.key)
    options = options_in(subject, stated.value)
    if not options:
        return f"its value is no option of {subject.name}"
    likes, avoids = (options, ()) if stated.stance == "like" else ((), options)
    wanted = Wanted("preference", subject.name, f"preference.{subject.name}", likes=likes, avoids=avoids)
    against = spoken_against(message.text, stated.evidence, wanted)
    return f"rules read the words otherwise: {against}" if against else wanted


def _address(message: NormalizedMessage, value: str, seal: values.Sealer) -> Wanted | str:
    """A place, by a word of streets and houses: a number alone is as well an amount."""
    place = next(addresses(value, expected=True), None)
    if place is None or not likely("".join(char for char in value if not char.isdigit())):
        return "its value is no place"
    kept = values.address(Address(text=place[1]), None, seal, message.language, None)
    return "its value is no place" if kept is None else Wanted("address", "delivery", "address", kept)


def _item(message: NormalizedMessage, value: str) -> Wanted | str:
    """An order number that the customer wrote, else a few words for an article."""
    number = own_number(message, value)
    if number is not None:
        kept = values.item(TargetItem(order_id=number.value), message.language)
    elif any(char.isdigit() for char in value) and value.isascii() and " " not in value:
        return "its value is no order number"
    else:
        kept = values.named_item(value, message.language)
    return Wanted("item", "current", "item", kept)
