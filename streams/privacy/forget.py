"""Forgetting a customer: keys first, then what stands in stores and files, then the proof (promise 9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.sealing import HeldError, KeyStore
from schemas.errors import InterlockError
from schemas.system import SystemEvent
from streams.privacy.records import event_record, linked, opened, records_of, state_of
from streams.privacy.search import Needles, in_files, in_topics, sensitive
from streams.privacy.unseal import Publish
from streams.reader import LogSource
from streams.replay.find import NotFoundError
from streams.replay.letters import Letter, LetterError, exact_bytes, find_letter, letters

LETTER = "letter:"  # the owner of a dead letter that names no conversation


class OpenWorkError(InterlockError):
    """Something is under way for the customer whose outcome would be lost."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be forgotten. `needles` are the customer's clear values, only in memory, for the proof."""

    conversations: tuple[str, ...]
    letters: tuple[str, ...]
    needles: Needles
    seals: int
    open_work: tuple[str, ...]


def plan(source: LogSource, keys: KeyStore, conversation: str, also: Iterable[str] = ()) -> Plan:
    """Find all that is theirs, while it can still be opened. Raises NotFoundError, HeldError.

    `also` are references of dead letters that name nobody and hold no value that is known, but are theirs.
    """
    names = linked(source, conversation)
    for name in names:
        hold = keys.held(name)
        if hold is not None:
            raise HeldError(name, hold)
    values: dict[str, None] = {}
    seals = 0
    for one in opened(records_of(source, names), keys):
        seals += 1
        values |= dict.fromkeys(sensitive(one.clear))
    needles = Needles(values)
    named = [find_letter(source, one).letter.owner for one in also]
    theirs = dict.fromkeys((*_letters(source, keys, names, needles), *(one for one in named if one.startswith(LETTER))))
    return Plan(tuple(names), tuple(theirs), needles, seals, tuple(_open_work(source, names)))


def carry_out(
    plan: Plan, keys: KeyStore, publish: Publish, by: str, reason: str, event_id: str, now_ms: int, partitions: int
) -> int:
    """Destroy the keys, then tell the owners of the states; how many keys were there. Safe to repeat."""
    gone = sum(keys.forget(name, now_ms) for name in plan.conversations)
    gone += sum(keys.forget(name, now_ms) for name in plan.letters)
    events = [SystemEvent(event_id=f"{event_id}-{number}", kind="forgotten", subject=name, by=by, at=now_ms,
                          data={"reason": reason, "linked": len(plan.conversations)})
              for number, name in enumerate(plan.conversations)]  # fmt: skip
    publish([event_record(event, event.subject, partitions) for event in events])
    return gone


def emptied(source: LogSource, plan: Plan) -> bool:
    """Whether the owners have emptied every state."""
    return not any(_holds_words(source, name) for name in plan.conversations)


def _holds_words(source: LogSource, conversation: str) -> bool:
    try:
        state = state_of(source, conversation)
    except NotFoundError:
        return False  # known by a link only
    return bool(state["perception"]["messages"] or state["memory"].get("known"))


@dataclass(frozen=True, slots=True)
class Proof:
    """What was looked for and what was found; `opens` are seals of theirs that still open."""

    values: int
    found: tuple[tuple[str, str], ...]
    opens: tuple[str, ...]


def prove(source: LogSource, keys: KeyStore, plan: Plan, folders: Sequence[Path]) -> Proof:
    """Search every topic and every file below the folders for the customer's values, and try every seal of theirs."""
    found = (*in_topics(source, plan.needles), *in_files(folders, plan.needles))
    opens = tuple(one.where for one in opened(records_of(source, plan.conversations), keys))
    return Proof(len(plan.needles.values), found, opens)


def _letters(source: LogSource, keys: KeyStore, names: Iterable[str], needles: Needles) -> Iterator[str]:
    """Dead letters that name no conversation and yet are theirs: they hold one of their values, or their id."""
    ids = [name.encode() for name in names] + [f'"{name.rpartition("/")[2]}"'.encode() for name in names]
    for letter in letters(source):
        owner = letter.letter.owner
        if owner.startswith(LETTER):
            value = _bytes(letter, keys)
            if needles.found(value) or any(one in value for one in ids):
                yield owner


def _bytes(letter: Letter, keys: KeyStore) -> bytes:
    try:
        return exact_bytes(letter, keys) or b""
    except LetterError:
        return b""  # its key was destroyed before


def _open_work(source: LogSource, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        try:
            state = state_of(source, name)
        except NotFoundError:
            continue
        yield from (f"{name}: {effect['kind']} {effect_id}" for effect_id, effect in state["pending"].items())
        yield from (f"{name}: review {review_id}" for review_id, review in state["planning"]["reviews"].items()
                    if review["status"] == "open")  # fmt: skip
