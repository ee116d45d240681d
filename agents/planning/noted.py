"""What a customer said for good is acknowledged in words, once the write stands in this conversation's state.

The words say what was noted and no more: no order is changed by it, and no service is promised (E07, R-003-39).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.planning.desk import Desk
from agents.remembering import values
from agents.remembering.lexicon import named, rules
from agents.remembering.port import Remembering
from agents.remembering.step import by_rules
from schemas.delivery import EvidenceRef
from schemas.messages import NormalizedMessage
from schemas.step import same

TEMPLATE, OF_PARCELS = "memory.noted", "memory.noted_parcels"
ADDRESS = "address/delivery"
_PARCELS = frozenset({"preference/carrier", "preference/delivery_place", ADDRESS})


def noted(desk: Desk, message: NormalizedMessage, remembering: Remembering = by_rules) -> bool:
    """Say what of the message is kept; False, with nothing said, when nothing is.

    From the state, not from the words: when the write was left out of the decision, nothing is said of it.
    """
    kept = dict(_kept(desk.draft.get("memory", "known", default={}), message, remembering))
    if not kept:
        return False
    english = message.language == "en"
    told = ("; " if english else "；").join(_told(key, entry["value"], message.language) for key, entry in kept.items())
    refs = [EvidenceRef(kind="memory_write", id=entry["write_id"]) for entry in kept.values()]
    return desk.say(OF_PARCELS if _PARCELS & kept.keys() else TEMPLATE, {"noted": told}, evidence=refs)


def _kept(known: Mapping[str, Any], message: NormalizedMessage,
          remembering: Remembering) -> Iterator[tuple[str, dict[str, Any]]]:  # fmt: skip
    subjects = {subject.name: subject for subject in rules().subjects}
    for wanted in remembering(message):
        entry, subject = known.get(wanted.key), subjects.get(wanted.subject)
        if wanted.kind != "preference" or subject is None or entry is None or entry["value"] is None:
            continue
        # Also what was known before: said again, it is still so, and nothing else may be claimed of it.
        if same(values.preference(subject, entry["value"], wanted, message.language), entry["value"]):
            yield wanted.key, entry
    address = known.get(ADDRESS)
    if address is not None and address["value"] is not None and address["message_id"] == message.ref.message_id:
        yield ADDRESS, address


def _told(key: str, value: Mapping[str, Any], language: str) -> str:
    """The line of the register; of an address without a region that may be read, only that it is one."""
    if key == ADDRESS and not any(char.isalnum() for char in value["text"]):
        return named(rules().names["address"], language)
    return str(value["summary"])
