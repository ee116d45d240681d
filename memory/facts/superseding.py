"""What a batch of writes does to what is stored: the one rule of both stores, without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memory.facts.port import Fact
from memory.facts.vectors import Vector, Vectors, unfit

SUMMARY_MAX = 500  # characters; longer is a conversation, not what is known from it


@dataclass(frozen=True, slots=True)
class Plan:
    """The objects to write: first the trail, then what is known now; a crash between them repairs itself.

    `again` are those that a batch before this one has stored: a store that may hold halves of them writes them once
    more, together with the trail.
    """

    trail: Mapping[UUID, Fact]
    current: Mapping[UUID, Fact]
    again: Mapping[UUID, Fact]


def plan(facts: Sequence[Fact], known: Mapping[UUID, Fact]) -> Plan:
    """The plan of a batch, given what is stored under its facts' ids and trail ids.

    A write that is known, or that a later one replaced, is not new: repeating a batch changes nothing (case I01).
    """
    now: dict[UUID, Fact] = {}
    trail: dict[UUID, Fact] = {}
    again: dict[UUID, Fact] = {}
    for fact in facts:
        old = now.get(fact.id) or known.get(fact.id)
        if old is not None and old.write_id == fact.write_id:
            again[fact.id] = old
        elif fact.trail_id in known:
            again[fact.trail_id] = known[fact.trail_id]
        elif fact.trail_id not in trail:
            if old is not None:
                trail[old.trail_id] = replace(old, active=False)
            now[fact.id] = replace(fact, supersedes=old.write_id if old is not None else "")
    return Plan(trail, now, {one: fact for one, fact in again.items() if one not in now and one not in trail})


def refusal(fact: Fact, vector: Vector, vectors: Vectors) -> str:
    """Why a fact is not stored; empty when it is."""
    if len(fact.summary) > SUMMARY_MAX:
        return f"a summary of {len(fact.summary)} characters, at most {SUMMARY_MAX}: a fact is no chat (R-002-18)"
    return unfit(vector, vectors)


def newest_first(facts: Sequence[Fact]) -> list[Fact]:
    """A key's history, along the chain of what replaced what."""
    best = {fact.write_id: fact for fact in once(facts)}
    replaced = {fact.supersedes for fact in best.values()}
    ordered: list[Fact] = []
    rest = [fact for write, fact in best.items() if write not in replaced]
    while rest:
        ordered += sorted(rest, key=lambda fact: (fact.at, fact.write_id), reverse=True)
        before = {fact.supersedes for fact in rest} & best.keys()
        rest = [best[write] for write in before]
    return ordered


def once(facts: Iterable[Fact]) -> list[Fact]:
    """A crash between trail and current object leaves a write in both: the current one is what holds."""
    best: dict[str, Fact] = {}
    for fact in facts:
        if fact.write_id not in best or fact.active:
            best[fact.write_id] = fact
    return list(best.values())


def restored(facts: Sequence[Fact]) -> Plan:
    """The plan that gives a backup's facts their places again: of each key the last one is current."""
    keys: dict[UUID, list[Fact]] = {}
    for fact in facts:
        keys.setdefault(fact.id, []).append(fact)
    trail: dict[UUID, Fact] = {}
    current: dict[UUID, Fact] = {}
    for object_id, history in keys.items():
        first, *rest = newest_first(history)
        current[object_id] = first
        trail.update({fact.trail_id: fact for fact in rest})
    return Plan(trail, current, {})
