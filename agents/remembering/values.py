"""The values that are kept: a one-line summary in the customer's language, and key fields (R-002-18)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from agents.remembering.lexicon import Subject, named, rules
from agents.remembering.port import Value, Wanted
from agents.understanding.normalize import OF_RETURNING
from memory.masking import mask
from schemas.events import Seal
from schemas.messages import Address, NormalizedMessage, TargetItem

Sealer = Callable[[bytes], Seal]
WORDS = 40  # characters of the customer's own words in a field, at most: a fact is no chat
_ID = re.compile(r"[A-Za-z0-9._#-]{1,40}")
_TOWN = re.compile(r" *[A-Z][A-Za-z.'’-]+(?: [A-Z][A-Za-z.'’-]+){0,2} *")
_STREET = re.compile(
    r"\b(?:street|road|avenue|lane|drive|way|court|square|place|close|st|rd|ave|ln|dr)\b", re.IGNORECASE
)
_REGION = re.compile(r"^.{0,24}?(?:自治区|[省市区县旗])(?:.{0,8}?(?:自治州|[市州]))?(?:.{0,8}?[市区县旗])?")


def preference(subject: Subject, known: Value | None, wanted: Wanted, language: str) -> Value | None:
    """A preference laid over what is known: a new wish replaces the old one, what is not wanted adds up (case J07)."""
    if wanted.clears:
        return None
    likes, avoids = list(wanted.likes), list(wanted.avoids)
    choice = likes or [one for one in (known or {}).get("choice", ()) if one not in avoids]
    avoid = [one for one in (known or {}).get("avoid", ()) if one not in likes and one not in avoids] + avoids
    names, no = {one: named(subject.options[one], language) if one in subject.options else one
                 for one in (*choice, *avoid)}, named(rules().names["avoid"], language)  # fmt: skip
    space = " " if language == "en" else ""
    parts = [*(names[one] for one in choice), *(f"{no}{space}{names[one]}" for one in avoid)]
    return {"summary": _line(named(subject.names, language), ", ".join(parts), language), "choice": choice,
            "avoid": avoid}  # fmt: skip


def address(given: Address, sealed: Seal | None, seal: Sealer, language: str, order_id: str | None) -> Value | None:
    """An address: the region in clear, the rest behind the seal (promise 9)."""
    if not given.text.strip():
        return None
    shown = given.text
    if "*" not in shown:
        clear = {"address": given.text} | ({"phone": given.phone} if given.phone and "*" not in given.phone else {})
        shown, sealed = hidden(shown), seal(orjson.dumps(clear, option=orjson.OPT_SORT_KEYS))
    value: Value = {"summary": _line(named(rules().names["address"], language), shown, language), "text": shown,
                    "seal": sealed.model_dump(mode="json") if sealed else None}  # fmt: skip
    return (
        value | ({"phone": mask(given.phone)[0]} if given.phone else {}) | ({"order_id": order_id} if order_id else {})
    )


def hidden(text: str) -> str:
    """The province, city and district of an address, or the last part of an English one; stars for the rest."""
    region = _REGION.match(text)
    if region:
        return text[: region.end()] + "*" * min(8, max(3, len(text) - region.end()))
    head, comma, tail = text.rpartition(",")
    town = comma and head and _TOWN.fullmatch(tail) and not _STREET.search(tail)  # "7, Main Street" names none
    return f"***,{tail}" if town else "***"


def complaint(message: NormalizedMessage) -> Value:
    """What was complained of."""
    fields = {**_fields(message.target_item), "reason": _words(message.reason), "about": _about(message),
              "sentiment": message.sentiment}  # fmt: skip
    told = ", ".join(
        part for part in (_order(fields, message.language), fields["reason"] or fields.get("category")) if part
    )
    return _value("complaint", told, message.language, fields)


def _about(message: NormalizedMessage) -> str:
    """The matter in one word, for counting: returns, parcels, or something else."""
    wishes = {message.intent, *(one.intent for one in message.secondary_intents)}
    if message.return_words or wishes & OF_RETURNING:
        return "return"
    return "logistics" if wishes & {"logistics", "hurry_up"} else "other"


def item(target: TargetItem, language: str) -> Value | None:
    """The order or article that the customer talks of (R-002-12)."""
    fields = _fields(target)
    if not fields:
        return None
    told = ", ".join(part for part in (_order(fields, language), *(fields.get(name) for name in
                     ("category", "colour", "size", "sku_id"))) if part)  # fmt: skip
    return _value("item", told, language, fields)


def named_item(words: str, language: str) -> Value:
    """An article in a few of the customer's words, masked."""
    return _value("item", _words(words) or "", language, {"named": _words(words)})


def promise(template_id: str, params: Mapping[str, Any], language: str) -> Value:
    """What the agent promised, from the approved template and its order number alone (R-004-09)."""
    fields = {"template_id": template_id, "order_id": identifier(params.get("order_id"))}
    told = ", ".join(
        part for part in (_order(fields, language), named(rules().promises[template_id], language)) if part
    )
    return _value("promise", told, language, fields)


def staff_promise(words: str, language: str) -> Value:
    """What a colleague promised, in a few of their words, masked."""
    return _value("promise", _words(words) or "", language, {"by": "staff"})


def told_promise(words: str, language: str) -> Value:
    """What the customer says that they were promised, in a few of their words, masked: it is said, and not proven."""
    return _value("told_promise", _words(words) or "", language, {"by": "customer"})


def problem(ended: Mapping[str, Any], slots: Mapping[str, Any], language: str) -> Value:
    """An earlier problem and what became of it: names of the flow's files, an order number, an amount (R-003-22)."""
    flow, outcome = ended["flow"], ended["status"]
    amount = slots.get("amount_fen")
    fields = {"flow": flow, "outcome": outcome, "order_id": identifier(ended.get("order_id")),
              "amount_fen": amount if type(amount) is int and flow == "refund" else None}  # fmt: skip
    book = rules()
    name, end = (named(table[word], language) if word in table else word
                 for table, word in ((book.flows, flow), (book.outcomes, outcome)))  # fmt: skip
    told = ", ".join(part for part in (_order(fields, language), end) if part)
    return {"summary": _line(name, told, language), **{key: part for key, part in fields.items() if part is not None}}


def short(message_id: str) -> str:
    """A subject for what one message said: message ids are the channel's, of any length and sign."""
    return hashlib.blake2b(message_id.encode(), digest_size=8).hexdigest()


def identifier(value: object) -> str | None:
    """The value when it has the shape of a number or id, which no sentence has (R-004-09)."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def _fields(target: TargetItem | None) -> dict[str, Any]:
    return target.model_dump(exclude_none=True) if target else {}


def _words(text: str | None) -> str | None:
    return mask(text.strip())[0][:WORDS] if text and text.strip() else None


def _order(fields: Mapping[str, Any], language: str) -> str | None:
    order_id = fields.get("order_id")
    return f"{named(rules().names['order'], language)}{' ' if language == 'en' else ''}{order_id}" if order_id else None


def _value(kind: str, told: str, language: str, fields: Mapping[str, Any]) -> Value:
    known = {key: part for key, part in fields.items() if part is not None}
    return {"summary": _line(named(rules().names[kind], language), told, language), **known}


def _line(head: str, told: str, language: str) -> str:
    """`head: told`, in the signs of the language."""
    if language == "en":
        return f"{head}: {told}" if told else head
    return f"{head}:{told}".replace(", ", ",").replace(":", "：").replace(",", "，") if told else head
