"""The keeper: memory.writes into both stores, in order, exactly once in effect, whatever fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.facts.port import Fact, PutResult
from memory.sealing import open_seal
from schemas.events import Seal
from schemas.memory import MemoryWrite
from schemas.topics import MEMORY_TOPIC
from streams.clock import SystemClock
from streams.keeper import Keeper
from streams.keeper_source import KafkaKeeping, LocalKeeping
from streams.privacy.stores import clear_stores
from streams.replay.chain import REDRIVE_HEADER
from streams.replay.letters import letters
from streams.replay.local import LocalSource
from streams.runtime.ports import Record
from streams.settings import Settings
from tests.streams.keeping import PARTITIONS, T0, Bench, dice, records, trail, wanted, writes

KEY = "demo/web/u-0/preference/carrier"


async def test_both_stores_get_every_write_in_order(tmp_path: Path) -> None:
    """Each key's trail is its history; the newest is what holds; complaints are relations, too (R-002-18, R-002-19)."""
    bench, made = Bench(tmp_path), list(writes(60))
    bench.publish(records(made))
    await bench.keep()
    assert wanted(made) == await trail(bench.facts, made)
    assert 60 == bench.outcome("applied")
    path = await bench.relations.customer_path("demo", "demo/web/u-0", T0, T0 + 1_000)
    assert ["FILED_COMPLAINT"] == [step.kind for step in path]
    assert sum(bench.offsets.values()) == len(bench.log.records(MEMORY_TOPIC))


@pytest.mark.timeout(60)
async def test_a_thousand_writes_through_killed_keepers_and_failing_stores(tmp_path: Path) -> None:
    """Keepers cut off anywhere, stores that fail before and after the deed: none lost, none twice (cases I01, I11)."""
    bench, made, chance = Bench(tmp_path, chance=0.3), list(writes(1_000)), dice(5)
    bench.publish(records(made))
    for _ in range(25):
        keeping = asyncio.create_task(bench.keep())
        await asyncio.sleep(next(chance) / 10)
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
    await bench.keep()
    assert wanted(made) == await trail(bench.facts, made)
    assert 1_000 == sum(bench.offsets.values())


async def test_nothing_is_committed_while_a_store_is_away(tmp_path: Path) -> None:
    """The keeper waits, says for how long and how often it tried, and goes on when the store is back (R-002-49)."""
    bench, made = Bench(tmp_path), list(writes(3, customers=1))
    bench.publish(records(made))
    bench.relations.chance = 1.0
    keeping = asyncio.create_task(bench.keep())
    while bench.metrics.value("interlock_keeper_retries_total", "relations") < 3:  # noqa: ASYNC110 (a counter, no event)
        await asyncio.sleep(0.01)
    assert {} == bench.offsets
    assert bench.metrics.value("interlock_keeper_waiting_seconds", "relations") > 0
    assert bench.metrics.value("interlock_keeper_lag_seconds") > 0
    bench.relations.chance = 0.0
    await keeping
    assert 0 == bench.metrics.value("interlock_keeper_waiting_seconds", "relations")
    assert wanted(made) == await trail(bench.facts, made)


async def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    """A keeper that waits for a store can be stopped; what it held is read again by the next one."""
    bench, made = Bench(tmp_path), list(writes(5))
    bench.publish(records(made))
    bench.facts.chance = 1.0
    keeper = bench.keeper()
    running = asyncio.create_task(keeper.run())
    await asyncio.sleep(0.05)
    keeper.stop()
    await asyncio.wait_for(running, 2)
    bench.facts.chance = 0.0
    await bench.keep()
    assert wanted(made) == await trail(bench.facts, made)


async def test_one_refused_write_of_a_batch_is_a_dead_letter(tmp_path: Path) -> None:
    """Nine stored, one told with its reason and exact bytes, and only then committed past it (case I03, promise 10)."""
    bench, made = Bench(tmp_path), list(writes(10, customers=1))
    bench.facts.refuses = lambda fact: fact.write_id == "w-4"
    bench.publish(records(made))
    await bench.keep()
    assert (9, 1) == (bench.outcome("applied"), bench.outcome("refused"))
    (letter,) = letters(LocalSource(bench.log.records(f"{MEMORY_TOPIC}.dlq"), PARTITIONS), [MEMORY_TOPIC])
    assert ("refused", "the store of facts: never") == (letter.letter.code, letter.letter.reason)
    clear = open_seal(bench.keys, Seal.model_validate(letter.letter.seal), letter.letter.owner)
    assert clear == bench.log.records(MEMORY_TOPIC)[4].value
    assert 10 == sum(bench.offsets.values())


async def test_what_one_store_refuses_the_other_does_not_get(tmp_path: Path) -> None:
    """A complaint that is no fact is no relation either: what a dead letter holds is nowhere else (case I03)."""
    bench, made = Bench(tmp_path), list(writes(10, customers=1))
    bench.facts.refuses = lambda fact: fact.kind == "complaint"
    bench.publish(records(made))
    await bench.keep()
    assert 3 == bench.outcome("refused")
    assert [] == await bench.relations.customer_path("demo", "demo/web/u-0", T0, T0 + 1_000)


async def test_a_record_that_is_no_write_is_a_dead_letter(tmp_path: Path) -> None:
    """Rubbish, and a record without a value, stop nobody (promise 10)."""
    bench, made = Bench(tmp_path), list(writes(3, customers=1))
    first, second, third = records(made)
    bench.publish([first, replace(second, value=b"{"), replace(second, value=None), second, third])
    await bench.keep()
    assert (3, 2) == (bench.outcome("applied"), bench.outcome("unreadable"))
    assert 2 == len(bench.log.records(f"{MEMORY_TOPIC}.dlq"))


async def test_what_was_published_again_is_dropped(tmp_path: Path) -> None:
    """A recovery publishes emits again: by position within a keeper's life, by write id after it (design: emits)."""
    bench, made = Bench(tmp_path), list(writes(9, customers=1))
    once = list(records(made))
    keeper = bench.keeper()
    bench.publish([*once, *once[3:]])
    await keeper.round()
    bench.publish(once)
    await keeper.round()
    assert (9, 15) == (bench.outcome("applied"), bench.outcome("repeated"))
    bench.publish(once[:5])
    await bench.keep()
    assert wanted(made) == await trail(bench.facts, made)


async def test_a_write_without_its_predecessor_is_left_aside(tmp_path: Path) -> None:
    """Its emitter publishes both again; applied at once, it would be replaced by the older one (design: emits)."""
    bench, made = Bench(tmp_path), list(writes(12, customers=1))
    once = list(records(made))
    keeper = bench.keeper()
    bench.publish([once[0], *once[2:]])
    await keeper.round()
    assert (1, 10) == (bench.outcome("applied"), bench.outcome("set_aside"))
    bench.publish(once[1:])
    await keeper.round()
    assert wanted(made) == await trail(bench.facts, made)


async def test_a_dead_letter_that_comes_back_does_not_replace_what_came_later(tmp_path: Path) -> None:
    """A redrive of an old write leaves the newer value, one of the newest write is applied (case J09, promise 10)."""
    bench = Bench(tmp_path)
    made = [one for one in writes(9, customers=1) if one.key == KEY]
    first, second, third = records(made, positions=False)
    redriven = replace(first, headers=(*first.headers, (REDRIVE_HEADER, b"memory.writes.dlq:0:0")))
    bench.publish([second, redriven])
    await bench.keep()
    assert 1 == bench.outcome("overtaken")
    bench.publish([replace(third, headers=(*third.headers, (REDRIVE_HEADER, b"memory.writes.dlq:0:1")))])
    await bench.keep()
    assert {KEY: [made[1].write_id, made[2].write_id]} == await trail(bench.facts, made)


async def test_a_forgotten_value_is_an_inactive_fact(tmp_path: Path) -> None:
    """A write of nothing leaves the trail and takes the fact out of every search (cases J07, J09)."""
    bench = Bench(tmp_path)
    told = next(writes(1))
    gone = MemoryWrite.model_validate({**told.model_dump(), "write_id": "w-gone", "value_before": told.value_after,
                                       "value_after": None, "timestamp": T0 + 9})  # fmt: skip
    bench.publish(records([told, gone]))
    await bench.keep()
    assert [] == await bench.facts.search("demo", "preference carrier", customer="demo/web/u-0")
    assert [False, False] == [
        fact.active for fact in await bench.facts.by_key("demo", "demo/web/u-0", "preference/carrier")
    ]


async def test_a_broken_store_is_no_reason_to_go_on(tmp_path: Path) -> None:
    """What is neither passing nor a refused write stops the keeper, with nothing committed (promise 10)."""
    bench = Bench(tmp_path)
    bench.publish(records(writes(3)))
    bench.facts.refuses = lambda _: 1 / 0  # type: ignore[assignment, return-value]
    with pytest.raises(ZeroDivisionError):
        await bench.keep()
    assert {} == bench.offsets


class _Shared(LocalKeeping):
    """As a group gives it: each reading begins where whoever had the partition last committed."""

    async def read(self) -> list[Record]:
        self._read = dict(self.offsets)
        return await super().read()


async def test_a_partition_that_comes_back_is_read_on(tmp_path: Path) -> None:
    """What another keeper applied meanwhile is no gap: nothing after it is left aside and lost (design: emits)."""
    bench, made = Bench(tmp_path), list(writes(9, customers=1))
    first, second = (Keeper(_Shared(bench.log, bench.offsets), bench.stores, bench.keys, bench.metrics, SystemClock())
                     for _ in range(2))  # fmt: skip
    once = list(records(made))
    for keeper, part in ((first, once[:3]), (second, once[3:6]), (first, once[6:])):
        bench.publish(part)
        await keeper.round()
    assert (9, 0) == (bench.outcome("applied"), bench.outcome("set_aside"))
    assert wanted(made) == await trail(bench.facts, made)


async def test_nobody_comes_back_by_a_late_write(tmp_path: Path) -> None:
    """What was decided before a customer was forgotten, and published after it, is not stored (promise 9)."""
    bench, made = Bench(tmp_path), list(writes(4, customers=2))
    bench.keys.forget("demo/web/u-0", T0 + 2)
    bench.publish(records([*made, made[0].model_copy(update={"write_id": "w-new", "timestamp": T0 + 3})]))
    await bench.keep()
    assert (2, 3) == (bench.outcome("forgotten"), bench.outcome("applied"))
    assert ["w-new"] == (await trail(bench.facts, made))[KEY]


async def test_nobody_comes_back_by_a_write_that_waited(tmp_path: Path) -> None:
    """A customer who is forgotten while a store was away is not in it afterwards (promise 9)."""
    bench, made = Bench(tmp_path), list(writes(2, customers=2))
    bench.publish(records(made))
    bench.facts.chance = 1.0
    keeping = asyncio.create_task(bench.keep())
    while bench.metrics.value("interlock_keeper_retries_total", "facts") < 2:  # noqa: ASYNC110 (a counter, no event)
        await asyncio.sleep(0.01)
    bench.keys.forget("demo/web/u-0", T0 + 2)
    await bench.facts.delete_customer("demo", "demo/web/u-0")
    bench.facts.chance = 0.0
    await keeping
    assert [[], ["w-1"]] == list((await trail(bench.facts, made)).values())
    assert {} != bench.offsets


async def test_nobody_comes_back_by_a_write_that_was_under_way(tmp_path: Path) -> None:
    """A customer who is forgotten while a store takes their write is in neither afterwards; others are (promise 9)."""
    bench, made = Bench(tmp_path), list(writes(14))
    bench.publish(records(made))
    store = bench.facts.put

    async def slow(facts: Sequence[Fact]) -> PutResult:
        if bench.keys.forgotten("demo/web/u-1") is None:
            bench.keys.forget("demo/web/u-1", T0 + 100)
            await clear_stores(bench.stores, ["demo/web/u-1"])  # too early: what follows was under way
        return await store(facts)

    bench.facts.put = slow  # type: ignore[method-assign]
    await bench.keep()

    assert {key: [] if "/u-1/" in key else ids for key, ids in wanted(made).items()} == await trail(bench.facts, made)
    paths = [await bench.relations.customer_path("demo", f"demo/web/u-{n}", T0, T0 + 100) for n in (1, 2)]
    assert [0, 1] == [len(path) for path in paths]


class _Client:
    """A group's member to whom a partition, and with it a record, comes in the middle of a pause."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.group = config["group.id"]
        self.left = [_Message(0), _Message(1)]

    def subscribe(self, topics: list[str], **_: Any) -> None:
        """Nothing is there yet."""

    def assignment(self) -> list[Any]:
        """None of ours to pause."""
        return []

    def pause(self, _: list[Any]) -> None:
        """Nothing to pause."""

    resume = pause

    def consume(self, most: int, _: float) -> list[Any]:
        """What there is."""
        found, self.left = self.left[:most], self.left[most:]
        return found


class _Message:
    """A record, as the client hands it over."""

    def __init__(self, offset: int) -> None:
        self.offset = lambda: offset
        self.timestamp = lambda: (1, T0)
        self.error = self.topic = self.partition = self.key = self.value = self.headers = lambda: None


async def test_a_record_that_comes_while_a_keeper_holds_is_read(tmp_path: Path) -> None:
    """A partition that comes during a pause begins at once: its first record is kept for the next reading."""
    source = KafkaKeeping(Settings(data_dir=tmp_path), client=_Client)  # type: ignore[arg-type]
    await source.hold()
    await source.go_on()
    assert [0, 1] == [record.offset for record in await source.read()]
