"""Which records go to a topic, in which order: rubbish, and a valid record after at most 50 of it on each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memory.sealing import KeyStore
from tests.fuzz import envelopes, forged, values
from tests.fuzz.cases import Case, Expect, Maker

BETWEEN = 50  # bad records between two valid ones at most, half of the limit
BIG_EVERY = 2_500  # one value of 2 MiB for so many records: a run sends them through a small machine
_STORIES = 0.04  # share of forged stories among all draws
KEYLESS = 0.9  # share of keyless rubbish in a stretch that has hardly anything else


def partition_plan(maker: Maker, partition: int, bad: int, keys: KeyStore, big: int) -> Iterator[Case]:
    """At least `bad` records that are not valid, `big` of them of 2 MiB, and the valid ones between them."""
    rng = maker.rng
    kinds: Sequence[Callable[[Maker, int], Case]] = (*values.KINDS.values(), values.mutated, values.mutated,
                                                     *envelopes.KINDS.values())  # fmt: skip
    at = set(rng.sample(range(bad), min(big, bad)))
    row = sent = 0
    keyless = range(bad // 2, bad // 2 + bad // 5)  # one producer that has lost its keys, in the middle of the run
    yield maker.valid(partition)
    while sent < bad:
        drawn = _draw(maker, partition, keys, kinds, big=sent in at, keyless=sent in keyless)
        for case in drawn:
            yield case
            if case.expect is Expect.HANDLED:
                row = 0
                continue
            sent, row = sent + 1, row + 1
        if row >= rng.randint(BETWEEN // 2, BETWEEN) - len(drawn):
            yield maker.valid(partition)
            row = 0
    yield maker.valid(partition)


def _draw(maker: Maker, partition: int, keys: KeyStore, kinds: Sequence[Callable[[Maker, int], Case]],
          *, big: bool, keyless: bool) -> Sequence[Case]:  # fmt: skip
    rng = maker.rng
    if big:
        return [values.two_mib(maker, partition)]
    if keyless and rng.random() < KEYLESS:
        return [envelopes.no_key(maker, partition)]
    if rng.random() < _STORIES:
        return rng.choice((
            lambda: forged.positions(maker, partition), lambda: forged.same_id(maker, partition),
            lambda: forged.sealed(maker, partition, keys),
        ))()  # fmt: skip
    return [rng.choice(kinds)(maker, partition)]


def topic_plan(maker: Maker, bad: int, keys: KeyStore) -> Iterator[Case]:
    """`bad` records over all partitions, taken in turn."""
    count = maker.partitions
    big = -(-bad // BIG_EVERY)
    shares = [bad // count + (number < bad % count) for number in range(count)]
    plans = [partition_plan(maker, number, share, keys, big // count + (number < big % count))
             for number, share in enumerate(shares)]  # fmt: skip
    while plans:
        for plan in list(plans):
            case = next(plan, None)
            if case is None:
                plans.remove(plan)
            else:
                yield case
