"""What a batch of writes does to what is stored: the one rule of both stores, without I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memory.facts.port import Fact
from memory.facts.vectors import Vector, Vectors, unfit

SUMMARY_MAX = 500  # characters; longer is a conversation, not what is known from it


@dataclass(frozen=True, slots=True)
class Plan:
    """The objects to write: first the trail, then what is known now; a crash between them repairs itself."""

    trail: Mapping[UUID, Fact]
    current: Mapping[UUID, Fact]


def plan(facts: Sequence[Fact], current: Mapping[UUID, Fact], replaced: Collection[UUID]) -> Plan:
    """The plan of a batch, given what is known under its keys and which of its writes stand in the trail.

    A write that is known, or that a later one replaced, is left out: repeating a batch changes nothing (case I01).
    """
    now: dict[UUID, Fact] = {}
    trail: dict[UUID, Fact] = {}
    for fact in facts:
        old = now.get(fact.id) or current.get(fact.id)
        if fact.trail_id in replaced or fact.trail_id in trail or (old is not None and old.write_id == fact.write_id):
            continue
        if old is not None:
            trail[old.trail_id] = replace(old, active=False)
        now[fact.id] = replace(fact, supersedes=old.write_id if old is not None else "")
    return Plan(trail, now)


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
    return Plan(trail, current)
