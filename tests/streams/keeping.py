"""Writes on a log, and stores that fail now and then, for the tests of the keeper."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import Fact, FactStore, FactsUnavailableError, PutResult, Refused
from memory.keeping import key_of
from memory.relations.embedded import EmbeddedRelations
from memory.relations.port import Relation, RelationsUnavailableError
from memory.sealing import MemoryKeyStore
from schemas import cloudevents, codec
from schemas.memory import MemoryWrite
from schemas.partition import place
from schemas.topics import MEMORY_TOPIC, TOPICS
from streams.clock import SystemClock
from streams.keeper import Keeper
from streams.keeper_source import LocalKeeping
from streams.memory_stores import MemoryStores
from streams.metrics import RecordedMetrics
from streams.runtime.local import LocalLog
from streams.runtime.ports import Outgoing

T = TypeVar("T")
T0 = 1_767_578_400_000
PARTITIONS = 4


def real(work: Coroutine[Any, Any, T]) -> T:
    """Run it on a real loop of its own: what waits for threads can't be waited for on a virtual one."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(work)))
    thread.start()
    thread.join()
    return found[0]


def writes(count: int, customers: int = 7) -> Iterator[MemoryWrite]:
    """Complaints and preferences of several customers, each key a chain."""
    last: dict[str, dict[str, Any]] = {}
    for number in range(count):
        kind = ("preference/carrier", "complaint/c1", "address/delivery")[number // customers % 3]
        key = f"demo/web/u-{number % customers}/{kind}"
        value = {"summary": f"{kind} {number}", "order_id": f"10{number % 9:02d}"}
        yield MemoryWrite(
            write_id=f"w-{number}", trace_id=f"t-{number}", session_id="s-1", key=key, value_before=last.get(key),
            value_after=value, source="customer", trigger_context="m", timestamp=T0 + number,
        )  # fmt: skip
        last[key] = value


def records(made: Iterable[MemoryWrite], *, positions: bool = True) -> Iterator[Outgoing]:
    """As their emitter publishes them: each names its place in its conversation and the one before it."""
    before: dict[str, tuple[int, int]] = {}
    for write in made:
        conversation = key_of(write.key).conversation
        previous = before.get(conversation, (0, 0))
        before[conversation] = (previous[0] + 1, 0)
        headers = cloudevents.headers_for(
            id=write.write_id, type=TOPICS[MEMORY_TOPIC].type, source="interlock", time_ms=T0, subject=conversation,
            position=(conversation, *before[conversation]) if positions else None,
            previous=previous if positions else None,
        )  # fmt: skip
        yield Outgoing(
            MEMORY_TOPIC, place(conversation, PARTITIONS), conversation.encode(), codec.encode(write), headers
        )


def dice(seed: int) -> Iterator[float]:
    """Numbers from 0 to 1 that look like chance, the same in every run."""
    number = seed
    while True:
        number = (number * 1_103_515_245 + 12_345) % 2**31
        yield number / 2**31


class FlakyFacts(EmbeddedFacts):
    """Answers only sometimes, and sometimes after it did what it was asked; refuses what `refuses` says."""

    def __init__(self, folder: Path, chance: float = 0.0, refuses: Callable[[Fact], bool] = lambda _: False) -> None:
        super().__init__(folder)
        self.chance, self.refuses = chance, refuses
        self._dice = dice(7)

    async def put(self, facts: Sequence[Fact]) -> PutResult:
        """See FactStore."""
        if next(self._dice) < self.chance:
            message = "down"
            raise FactsUnavailableError(message)
        done = await super().put([fact for fact in facts if not self.refuses(fact)])
        if next(self._dice) < self.chance:
            message = "the answer was lost"
            raise FactsUnavailableError(message)
        return PutResult(done.stored, tuple(Refused(one.write_id, "never") for one in facts if self.refuses(one)))


class FlakyRelations(EmbeddedRelations):
    """The same for relations."""

    def __init__(self, path: Path, chance: float = 0.0) -> None:
        super().__init__(path)
        self.chance = chance
        self._dice = dice(8)

    async def merge(self, relations: Sequence[Relation]) -> PutResult:
        """See RelationStore."""
        if next(self._dice) < self.chance:
            message = "down"
            raise RelationsUnavailableError(message)
        done = await super().merge(relations)
        if next(self._dice) < self.chance:
            message = "the answer was lost"
            raise RelationsUnavailableError(message)
        return done


class Bench:
    """A log, two stores in a folder, and keepers that come and go on the same offsets."""

    def __init__(self, folder: Path, chance: float = 0.0, log: LocalLog | None = None,
                 stores: MemoryStores | None = None) -> None:  # fmt: skip
        self.log = log or LocalLog(SystemClock())
        self.facts, self.relations = FlakyFacts(folder / "facts", chance), FlakyRelations(folder / "r.db", chance)
        self.keys, self.metrics = MemoryKeyStore(), RecordedMetrics()
        self.offsets: dict[int, int] = {}
        self.stores = stores or MemoryStores(self.facts, self.relations)

    def publish(self, made: Iterable[Outgoing]) -> None:
        """Put records on the log."""
        for outgoing in made:
            self.log.append(outgoing)

    def keeper(self) -> Keeper:
        """A new keeper that goes on where the last one committed."""
        source = LocalKeeping(self.log, self.offsets)
        return Keeper(source, self.stores, self.keys, self.metrics, SystemClock(), backoff_s=0.001)

    async def keep(self) -> None:
        """Apply all there is."""
        keeper = self.keeper()
        while await keeper.round():
            pass

    def outcome(self, name: str) -> float:
        """How many writes ended so."""
        return self.metrics.value("interlock_keeper_writes_total", name)


async def trail(facts: FactStore, made: Iterable[MemoryWrite]) -> dict[str, list[str]]:
    """Of each key the ids of its writes in the store, oldest first."""
    found = {}
    for text in dict.fromkeys(write.key for write in made):
        key = key_of(text)
        known = await facts.by_key(key.shop, key.conversation, key.name)
        found[text] = [fact.write_id for fact in reversed(known)]
    return found


def wanted(made: Iterable[MemoryWrite]) -> dict[str, list[str]]:
    """The same as the register has it."""
    found: dict[str, list[str]] = {}
    for write in made:
        found.setdefault(write.key, []).append(write.write_id)
    return found
