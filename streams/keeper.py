"""The keeper: applies memory.writes to the stores of facts and relations, in order, exactly once in effect.

It commits only what both stores hold. While a store is away it waits and nothing is lost; a write that a store
refuses for good is a dead letter. Reading again is harmless: both stores know a write by its id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from memory.facts.port import FactsUnavailableError
from memory.keeping import fact_of, key_of, relations_of
from memory.relations.port import RelationsUnavailableError
from memory.sealing import KeyStore
from schemas import cloudevents, codec
from schemas.cloudevents import Previous
from schemas.errors import BadRecordError
from schemas.memory import MemoryWrite
from schemas.partition import system_conversation
from schemas.topics import MEMORY_TOPIC
from streams.memory_stores import MemoryStores
from streams.metrics import MetricsPort
from streams.replay.chain import REDRIVE_HEADER
from streams.runtime.crashpoints import crash
from streams.runtime.deadletters import letter_of
from streams.runtime.ports import Clock, Fact, Outgoing, Record
from streams.runtime.wire import fact_record

T = TypeVar("T")
log = logging.getLogger("interlock.keeper")

BATCH = 100  # writes in one call of a store
BACKOFF_S, BACKOFF_MOST_S = 0.2, 15.0
STEP_S = 0.5  # between two looks whether to stop, and whether the partition is still ours
REMEMBERED = 100_000  # conversations whose last position is known
DEAD_TOPIC = f"{MEMORY_TOPIC}.dlq"


class LostError(Exception):
    """The partition went to another keeper, or we are to stop: what is not committed is read again."""


class KeepingSource(Protocol):
    """Where the writes come from, and where it says how far it is."""

    async def read(self) -> list[Record]:
        """The next records, in offset order within a partition; empty when there are none for now."""
        ...

    async def hold(self) -> None:
        """Stay a member of the group without reading on."""
        ...

    async def go_on(self) -> None:
        """Read on after `hold`."""
        ...

    def owns(self, partition: int) -> bool:
        """Whether what was read of the partition is still ours to apply."""
        ...

    async def commit(self, partition: int, offset: int) -> None:
        """All below the offset is applied."""
        ...

    async def write(self, letter: Outgoing) -> None:
        """A dead letter; done once the log has it."""
        ...


@dataclass(frozen=True, slots=True)
class _Read:
    record: Record
    write: MemoryWrite


class Keeper:
    """One keeper over one source; several share the partitions as a consumer group does."""

    def __init__(self, source: KeepingSource, stores: MemoryStores, keys: KeyStore, metrics: MetricsPort,
                 clock: Clock, backoff_s: float = BACKOFF_S) -> None:  # fmt: skip
        """`backoff_s` is the first pause when a store is away; it doubles up to 15 s."""
        self._backoff_s = backoff_s
        self._source, self._stores, self._keys, self._metrics, self._clock = source, stores, keys, metrics, clock
        self._heard: OrderedDict[tuple[int, str], tuple[int, int]] = OrderedDict()  # by partition and conversation
        self._behind: dict[int, int] = {}  # of each partition the offset behind what was heard last
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ask for a clean end."""
        self._stopping.set()

    async def run(self) -> None:
        """Until `stop`. Raises what neither waiting nor a dead letter can mend."""
        while not self._stopping.is_set():
            await self.round()

    async def round(self) -> int:
        """One reading, applied; how many records it had."""
        records = await self._source.read()
        parts: dict[int, list[Record]] = {}
        for record in records:
            parts.setdefault(record.partition, []).append(record)
        for partition, part in parts.items():
            try:
                for start in range(0, len(part), BATCH):
                    await self._keep(partition, part[start : start + BATCH])
            except LostError:
                log.info("%s [%d] is another keeper's now: what was not applied is read again", MEMORY_TOPIC, partition)
        self._metrics.gauge("interlock_keeper_lag_seconds", 0)
        return len(records)

    async def _keep(self, partition: int, records: Sequence[Record]) -> None:
        """Apply the records and commit behind the last. Raises LostError, with nothing of them committed."""
        if records[0].offset > self._behind.get(partition, 0):
            self._forget(partition)
        letters: list[Outgoing] = []
        heard: dict[str, tuple[int, int]] = {}  # of these records: counts once they are applied
        reads = [read for record in records if (read := self._read(record, heard, letters)) is not None]
        refused = await self._apply(partition, reads)
        for read in reads:
            if read.write.write_id in refused:
                error = BadRecordError(refused[read.write.write_id], code="refused", topic=MEMORY_TOPIC)
                letters.append(self._letter(read.record, error, "refused", read.write.session_id))
        for letter in letters:
            await self._source.write(letter)
        crash("keeper.letters")
        self._remember(partition, heard)
        self._behind[partition] = records[-1].offset + 1
        if not self._source.owns(partition):
            raise LostError
        await self._source.commit(partition, records[-1].offset + 1)

    def _read(self, record: Record, heard: dict[str, tuple[int, int]], letters: list[Outgoing]) -> _Read | None:
        try:
            envelope, write = _decoded(record)
        except BadRecordError as error:
            letters.append(self._letter(record, error, "unreadable", None))
            return None
        if envelope.position is not None:
            source, position = envelope.position[0], envelope.position[1:]
            before = heard.get(source) or self._heard.get((record.partition, source))
            if self._standing(before, position, envelope.previous):
                return None
            heard[source] = position
        if self._forgotten(write):
            self._count("forgotten", 1)
            return None
        return _Read(record, write)

    def _forgotten(self, write: MemoryWrite) -> bool:
        """Decided before its customer was forgotten: read again or published late, it brings nobody back."""
        forgotten = self._keys.forgotten(key_of(write.key).conversation)
        return forgotten is not None and write.timestamp <= forgotten

    def _standing(self, heard: tuple[int, int] | None, position: tuple[int, int], previous: Previous | None) -> bool:
        """Whether to leave it: it was applied, or its predecessor was not, and the emitter publishes both again."""
        if heard is None:
            return False  # nothing is known of this conversation: the stores know what they have
        if position <= heard:
            self._count("repeated", 1)
            return True
        if previous is not None and tuple(previous) > heard:
            self._count("set_aside", 1)
            return True
        return False

    def _forget(self, partition: int) -> None:
        """Another keeper had the partition meanwhile: measured by what we heard before, all would look too early."""
        for place in [one for one in self._heard if one[0] == partition]:
            del self._heard[place]

    def _remember(self, partition: int, heard: Mapping[str, tuple[int, int]]) -> None:
        for source, position in heard.items():
            self._heard[partition, source] = position
            self._heard.move_to_end((partition, source))
        while len(self._heard) > REMEMBERED:
            self._heard.popitem(last=False)

    async def _apply(self, partition: int, reads: Sequence[_Read]) -> Mapping[str, str]:
        """Both stores have the writes; those that one of them refused for good, with the reason. Raises LostError."""
        refused: dict[str, str] = {}
        part: list[MemoryWrite] = []
        for read in reads:
            if _redriven(read.record):  # all before it must be in the stores, to see whether it comes too late
                refused |= await self._put(partition, part)
                part = []
                if await self._overtaken(partition, read.write):
                    continue
            part.append(read.write)
        return refused | await self._put(partition, part)

    async def _put(self, partition: int, wanted: Sequence[MemoryWrite]) -> dict[str, str]:
        if not wanted:
            return {}
        while True:
            begun = self._left(wanted)
            refused = await self._stored(partition, wanted)
            gone = {key_of(write.key).conversation for write in begun if self._forgotten(write)}
            if not gone:
                break
            for name in gone:  # forgotten while a store took it: whoever cleared the stores may have been too early
                await self._clear(partition, wanted, name)
        self._count("applied", len(wanted) - len(refused))
        return refused

    async def _stored(self, partition: int, wanted: Sequence[MemoryWrite]) -> dict[str, str]:
        put = await self._until("facts", partition, wanted,
                                lambda: self._stores.facts.put([*map(fact_of, self._left(wanted))]))  # fmt: skip
        crash("keeper.facts")
        refused = {one.write_id: f"the store of facts: {one.reason}" for one in put.failed}
        stored = [write for write in wanted if write.write_id not in refused]
        if any(True for write in stored for _ in relations_of(write)):
            merged = await self._until("relations", partition, wanted, lambda: self._stores.relations.merge(
                [one for write in self._left(stored) for one in relations_of(write)]))  # fmt: skip
            refused |= {one.write_id: f"the store of relations: {one.reason}" for one in merged.failed}
        crash("keeper.relations")
        return refused

    async def _clear(self, partition: int, writes: Sequence[MemoryWrite], customer: str) -> None:
        shop, stores = customer.partition("/")[0], self._stores
        await self._until("facts", partition, writes, lambda: stores.facts.delete_customer(shop, customer))
        await self._until("relations", partition, writes, lambda: stores.relations.delete_customer(shop, customer))

    def _left(self, writes: Iterable[MemoryWrite]) -> list[MemoryWrite]:
        """Those whose customer was not forgotten while they waited for a store."""
        return [write for write in writes if not self._forgotten(write)]

    async def _overtaken(self, partition: int, write: MemoryWrite) -> bool:
        """A dead letter that comes back must not replace what was written after it."""
        key = key_of(write.key)
        known = await self._until("facts", partition, [write],
                                  lambda: self._stores.facts.by_key(key.shop, key.conversation, key.name))  # fmt: skip
        later = bool(known) and known[0].at > write.timestamp
        if later:
            self._count("overtaken", 1)
            log.warning("%s of %s is older than what stands there: left out", write.write_id, write.key)
        return later

    async def _until(self, name: str, partition: int, writes: Sequence[MemoryWrite],
                        call: Callable[[], Awaitable[T]]) -> T:  # fmt: skip
        """Try until the store answers, with growing pauses. Raises LostError."""
        began, pause, held = self._clock.now_ms(), self._backoff_s, False
        while True:
            try:
                done = await call()
            except (FactsUnavailableError, RelationsUnavailableError) as error:
                self._metrics.count("interlock_keeper_retries_total", name=name)
                now = self._clock.now_ms()
                self._metrics.gauge("interlock_keeper_waiting_seconds", (now - began) / 1_000 or 0.001, name=name)
                self._metrics.gauge("interlock_keeper_lag_seconds", (now - writes[0].timestamp) / 1_000)
                log.warning("%d writes wait, the store of %s is away: %s", len(writes), name, error)
            else:
                self._metrics.gauge("interlock_keeper_waiting_seconds", 0, name=name)
                if held:
                    await self._source.go_on()
                return done
            held = True
            await self._wait(partition, pause)
            pause = min(pause * 2, BACKOFF_MOST_S)

    async def _wait(self, partition: int, seconds: float) -> None:
        waited = 0.0
        while waited < seconds:
            await self._source.hold()
            if self._stopping.is_set() or not self._source.owns(partition):
                await self._source.go_on()
                raise LostError
            await asyncio.sleep(min(STEP_S, seconds - waited))
            waited += STEP_S

    def _letter(self, record: Record, error: BadRecordError, outcome: str, session_id: str | None) -> Outgoing:
        log.warning("%s [%d] offset %d is a dead letter: %s", MEMORY_TOPIC, record.partition, record.offset, error)
        self._metrics.count("interlock_dead_letters_total", topic=MEMORY_TOPIC, code=error.code)
        self._count(outcome, 1)
        letter = letter_of(self._keys, record, error, session_id)
        fact = Fact(DEAD_TOPIC, system_conversation(record.partition),
                    f"{MEMORY_TOPIC}-{record.partition}-{record.offset}", letter)  # fmt: skip
        return fact_record(fact, record.partition, self._clock.now_ms())

    def _count(self, outcome: str, writes: int) -> None:
        if writes:
            self._metrics.count("interlock_keeper_writes_total", writes, outcome=outcome)


def _decoded(record: Record) -> tuple[cloudevents.Envelope, MemoryWrite]:
    """The write of a record. Raises BadRecordError."""
    if record.value is None:
        reason = "a record without a value is no write"
        raise BadRecordError(reason, code="null", topic=MEMORY_TOPIC)
    envelope = cloudevents.parse_headers(MEMORY_TOPIC, record.headers)
    write: MemoryWrite = codec.decode(MEMORY_TOPIC, record.value, envelope.type, minor=envelope.minor)
    return envelope, write


def _redriven(record: Record) -> bool:
    return any(name == REDRIVE_HEADER for name, _ in record.headers)
