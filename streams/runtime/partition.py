"""One partition at its owner: gather, decide, commit the diff, publish what follows, acknowledge.

Knows no Kafka: the ports have an in-memory side. One event loop, no locks; a decision is visible to
nobody before its diff is committed (promise 4).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from memory.bus import StateBus, empty
from schemas.partition import place, system_conversation
from schemas.step import State
from schemas.topics import INPUT_TOPICS
from streams.metrics import decision_metrics
from streams.runtime import wire
from streams.runtime.checkpoint import Checkpoint, restless
from streams.runtime.crashpoints import crash
from streams.runtime.decide import Decided
from streams.runtime.effects import EffectRunner
from streams.runtime.emits import Emitter
from streams.runtime.judge import Judge, Ports
from streams.runtime.keeping import Keeper
from streams.runtime.lanes import Lanes, PauseRequest, Watermark
from streams.runtime.ports import Fact, Outgoing, Record, Recovered
from streams.runtime.skew import Skew
from streams.runtime.table import Row
from streams.runtime.timers import Timers
from streams.settings import Settings

log = logging.getLogger(__name__)

QUIET_S = 5.0  # after a commit: by then its states are on state.updates, also when no other commit follows
TURN = 32  # decisions between two turns of the event loop


class Ready(NamedTuple):
    """A decision in a batch, with its input and its encoded diff."""

    conversation: str
    record: Record
    decided: Decided
    encoded: bytes


class PartitionRuntime:
    """Lanes, committer, emits, effects and timers of one partition. `failed` ends with the reason to close it."""

    def __init__(self, partition: int, rows: Sequence[Row], ports: Ports, settings: Settings) -> None:
        self.partition = partition
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._ports = ports
        self._settings = settings
        self._home = system_conversation(partition)
        self._bus = StateBus()
        self._lanes = Lanes()
        self._marks: dict[str, Watermark] = {}
        self._held: dict[str, list[tuple[str, Record]]] = {}
        self._pausing: set[str] = set()
        self._dropped: list[Record] = []  # at home and not decided: they end with the batch that they were read in
        self._judge = Judge(rows, ports, settings.dlq_limit, self._over_limit)
        self._emitter = Emitter(ports.send, self._partition_for, self._fail)
        self._effects = EffectRunner(partition, ports.effects, ports.clock, self._bus.read, self.publish, ports.metrics)
        self._skew = Skew(settings.skew_max_ms)
        self._timers = Timers(
            partition, ports.clock, ports.offsets, self._bus.read, self.handled, self.publish, self._skew.too_large,
            lambda: self.quietly(now=True),
        )  # fmt: skip
        self._checkpoint = Checkpoint(partition, self._bus, ports.clock, settings.checkpoint_ms)
        kept = settings, ports.clock, self._bus, self._checkpoint
        self._keeper = None if ports.snapshots is None else Keeper(partition, *kept, ports.snapshots, self)
        self._diff_offset = -1
        self._wake = asyncio.Event()
        self._committing = self._closing = False
        self._quiet: bool | None = None  # a commit without decisions is asked for: True for one that must have a record
        self._later: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._commit_task: asyncio.Task[Any] | None = None

    # -- life -------------------------------------------------------------------------------------------

    def start(self, recovered: Recovered) -> None:
        """Take over the recovered states, publish unsent emits again, start timers, effects and the committer."""
        self._diff_offset = recovered.diff_offset
        self._marks = {topic: Watermark(recovered.handled.get(topic, 0)) for topic in INPUT_TOPICS}
        for conversation, encoded in recovered.states.items():
            self._bus.load(conversation, encoded)
        for conversation in recovered.changed:
            self._checkpoint.changed(conversation)
            if self._keeper is not None:
                self._keeper.changed(conversation)
        for offset, diff in recovered.resend:
            self._emitter.publish(offset, diff)
        self._emitter.start_at(recovered.diff_offset + 1)  # the diffs behind the last of these had no emits
        # only those with calls under way are decoded now, others with their deadline or when they are first touched
        for conversation, encoded in recovered.states.items():
            if restless(encoded, timers=recovered.dues is None):
                state = orjson.loads(encoded)
                self._timers.recovered(state)
                self._effects.recovered(state)
            elif recovered.dues is not None and conversation in recovered.dues:
                self._timers.asleep(conversation, recovered.dues[conversation])
        # paused before this owner came: what is read of it is kept back until the word to resume
        for topic in (self._bus.read(self._home) or empty(self._home))["runtime"]["paused"]:
            self._held[topic] = []
        loops: list[Coroutine[Any, Any, None]] = [self._run(), self._timers.run()]
        if self._keeper is not None:
            loops.append(self._keeper.run())
        self._tasks = [asyncio.create_task(self._guard(loop)) for loop in loops]

    async def close(self, grace_s: float) -> None:
        """Close intake, drop what is queued, cancel what runs; commits handed over get `grace_s` to end."""
        self._closing = True
        if self._later is not None:
            self._later.cancel()
        commit = [] if self._commit_task is None else [self._commit_task]
        if commit:
            await asyncio.wait(commit, timeout=grace_s)
        # a commit that ends later is the next owner's to find: nothing may follow from it here. Effects go last
        # but one, as a commit that just ended has started some
        for task in [*commit, *self._tasks]:
            task.cancel()
        await self._effects.close()
        await asyncio.gather(*commit, *self._tasks, return_exceptions=True)

    async def _guard(self, loop: Coroutine[Any, Any, None]) -> None:
        try:
            await loop
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (whatever it is, the partition closes and says so)
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        # the first reason counts: closing makes others fail behind it
        if not self.failed.done():
            log.error("partition %d closes: %s", self.partition, error)
            self.failed.set_result(error)

    # -- intake -----------------------------------------------------------------------------------------

    def offer(self, record: Record) -> None:
        """One record of an input topic, in offset order for each topic."""
        mark = self._marks[record.topic]
        # after a seek the fetcher may still give a record that was read before
        if not mark.offered(record.offset):
            return
        self._judge.read(record)
        conversation = wire.lane_of(record, self._settings.partitions)
        if record.topic in self._held:
            self._held[record.topic].append((conversation, record))
            return
        self.queue(conversation, record)

    def queue(self, conversation: str, record: Record) -> None:
        """Into its lane, or behind what is done to its residue just now."""
        if self._keeper is None or not self._keeper.holds(conversation, record):
            self._lanes.add(conversation, record)
            self._wake.set()

    def progress(self, topic: str, position: int) -> None:
        """The reader stands at `position`: no more records below it (markers and compacted ones are none)."""
        self._marks[topic].progress(position)

    def handled(self) -> dict[str, int]:
        """For each input topic the offset below which all is handled: what may be acknowledged."""
        return {topic: mark.handled for topic, mark in self._marks.items()}

    @property
    def in_flight(self) -> int:
        """Inputs offered and not handled yet; above `lanes_max` the reader pauses."""
        return self._lanes.in_flight

    @property
    def open_states(self) -> int:
        """Conversations in memory; a closed one leaves it."""
        return len(self._bus)

    @property
    def paused(self) -> frozenset[str]:
        """Topics over the dead-letter limit."""
        return frozenset(self._held)

    @property
    def idle(self) -> bool:
        """Nothing queued, in flight or running (deadlines may be waiting)."""
        return not self._lanes.in_flight and not self._committing and not len(self._effects)

    def read(self, conversation: str) -> Mapping[str, Any] | None:
        """The committed state, or None for a conversation that never was here."""
        state = self._bus.read(conversation)
        if state is None:
            # closed, and heard again: its versions go on from its residue (promise 3)
            encoded = self._ports.residue(conversation)
            if encoded is not None:
                self._bus.load(conversation, encoded)
                state = self._bus.read(conversation)
                if self._keeper is not None:  # it leaves again with the next one, also if nothing is decided on it
                    self._keeper.changed(conversation)
        return state

    def publish(self, fact: Fact) -> None:
        """Send a fact to its topic, in the conversation's partition; a producer that gives up closes us."""
        partition = self._partition_for(fact.conversation)
        record = wire.fact_record(fact, partition, self._ports.clock.now_ms())
        future = asyncio.ensure_future(self._ports.send.send(record))
        future.add_done_callback(self._fact_sent)

    def _fact_sent(self, done: asyncio.Future[int]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self._fail(error)

    def _partition_for(self, conversation: str) -> int:
        return place(conversation, self._settings.partitions)

    # -- decide -----------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while not self._closing:
                self._committing = True
                # decided only when it can be committed: what comes in while it waits is in the same transaction
                async with self._ports.turns():
                    batch = await self._batch()
                    if not batch and self._quiet is None:
                        break
                    # its own task, shielded: a close waits for a commit that was handed over, and does not break it off
                    self._commit_task = asyncio.create_task(self._commit(batch))
                    await asyncio.shield(self._commit_task)
            self._committing = False

    def quietly(self, *, now: bool) -> None:
        """Commit soon, also when nothing is decided: the rest of a checkpoint, or (`now`) at least its mark.

        A silent partition gets its last states onto state.updates so, and learns that a clock was set right.
        """
        self._later = None
        if not self._closing:
            self._quiet = now or bool(self._quiet)
            self._wake.set()

    async def _batch(self) -> list[Ready]:
        """Decide heads of lanes until the batch is full; what needs no decision is ended on the way."""
        batch: list[Ready] = []
        # once a batch: they only grow, so what holds now is true for every diff in it
        size, handled, unsent = 0, self.handled(), self._emitter.unsent
        for turn, (conversation, record) in enumerate(self._lanes.take(), 1):
            if turn % TURN == 0:
                await asyncio.sleep(0)
            ready = self._ready(conversation, record, handled, unsent)
            if ready is None:
                self._done(conversation, record)
                continue
            batch.append(ready)
            size += len(ready.encoded)
            if conversation == self._home:
                size += await self._more_at_home(batch, handled, unsent)
            if len(batch) >= self._settings.commit_max or size >= self._settings.commit_max_bytes:
                break
        return batch

    async def _more_at_home(self, batch: list[Ready], handled: Mapping[str, int], unsent: int) -> int:
        """The system conversation's next decisions, each on top of the last and all in one transaction; their bytes.

        It takes all records without a usable key, and nobody waits for what stands between two of them.
        """
        size, after = 0, batch[-1].decided.after
        while len(batch) < self._settings.commit_max and size < self._settings.commit_max_bytes // 2:
            record = self._lanes.more(self._home)
            if record is None:
                break
            ready = self._ready(self._home, record, handled, unsent, after)
            if ready is None:
                self._dropped.append(record)
                continue
            batch.append(ready)
            size, after = size + len(ready.encoded), ready.decided.after
            if len(batch) % TURN == 0:
                await asyncio.sleep(0)
        return size

    def _ready(self, conversation: str, record: Record, handled: Mapping[str, int], unsent: int,
               state: State | None = None) -> Ready | None:  # fmt: skip
        """The record decided and encoded, or None when there is nothing to decide."""
        state = state or self.read(conversation) or empty(conversation)
        decided = self._judge.decide(state, record)
        if decided is None:
            return None
        encoded = decided.encoded(handled, unsent)
        fitting = self._judge.fitting(state, record, decided, encoded)
        if fitting is not decided:
            encoded = fitting.encoded(handled, unsent)
        return Ready(conversation, record, fitting, encoded)

    def _over_limit(self, record: Record) -> None:
        """The topic is held from here on; the system conversation records it in its own lane."""
        if record.topic in self._held:
            return  # what was decided beside it goes over the limit, too
        log.error("%s [%d] is paused at offset %d: more than %d dead letters in a row; `interlock dlq resume`",
                  record.topic, record.partition, record.offset, self._settings.dlq_limit)  # fmt: skip
        self._ports.metrics.count("interlock_partition_stops_total", reason="dlq_limit")
        # out of the lanes at once: one that waited there would come behind what is read from now on, and a
        # record behind a later one of its conversation counts as handled
        self._held[record.topic] = self._lanes.withdraw(record.topic)
        self._pausing.add(record.topic)
        pause = PauseRequest(record.topic, record.partition, record.offset, record.time, None, None)
        self._lanes.add(self._home, pause)

    # -- commit -----------------------------------------------------------------------------------------

    async def _commit(self, batch: Sequence[Ready]) -> None:
        records = [self._diff_record(ready) for ready in batch]
        quiet, self._quiet = self._quiet, None
        updates = self._checkpoint.ride_along(self.mark(), now=quiet is True)
        if not records and not updates:
            return
        asked = self._ports.clock.now_ms()
        crash("commit.before")
        # from here until it returns nobody may know of the batch: its outcome is open
        placed = await self._ports.commit.commit([*records, *updates])
        crash("commit.after")
        self._skew.measure(asked, placed[0][1], self._ports.clock.now_ms())
        for ready, (offset, _) in zip(batch, placed, strict=False):
            self._diff_offset = offset
            self._visible(offset, ready.decided)
        crash("visible.after")
        for ready in batch:
            self._done(ready.conversation, ready.record)
        if self._keeper is not None:
            self._keeper.committed()
        if self._later is None and self._checkpoint.open:
            self._later = asyncio.get_running_loop().call_later(QUIET_S, lambda: self.quietly(now=False))
        dropped, self._dropped = self._dropped, []
        for record in dropped:
            self._done(self._home, record)

    def _diff_record(self, ready: Ready) -> Outgoing:
        diff = ready.decided.diff
        headers = wire.state_headers(wire.DIFFS, f"{ready.conversation}@{diff['version']}", diff["now"])
        return Outgoing(wire.DIFFS, self.partition, ready.conversation.encode(), ready.encoded, headers)

    def _visible(self, offset: int, decided: Decided) -> None:
        """The diff is committed: bus, emits, effects and timers follow."""
        before, after = decided.before, decided.after
        conversation = after["conversation"]
        # the bus first: whoever follows reads the committed state from it
        self._bus.write(after, before["version"])
        self._emitter.publish(offset, decided.diff)
        self._effects.committed(before, after)
        self._timers.committed(before, after)
        self._checkpoint.changed(conversation)
        if self._keeper is not None:
            self._keeper.changed(conversation)
        decision_metrics(self._ports.metrics, decided.cause, decided.diff)
        if conversation == self._home:
            self._system_changed(after)

    def _system_changed(self, home: Mapping[str, Any]) -> None:
        """Topics are paused and resumed by decisions of the system conversation."""
        paused = home["runtime"]["paused"]
        self._pausing -= paused.keys()
        for topic in [topic for topic in self._held if topic not in paused and topic not in self._pausing]:
            self._judge.again(topic)
            for conversation, record in self._held.pop(topic):
                self.queue(conversation, record)

    def _done(self, conversation: str, record: Record) -> None:
        self._lanes.end(conversation)
        if not isinstance(record, PauseRequest):
            self._marks[record.topic].done(record.offset)
        if self._lanes:
            self._wake.set()

    def mark(self) -> dict[str, Any]:
        """Up to where a checkpoint or snapshot that begins now holds."""
        return {"diff_offset": self._diff_offset, "handled": self.handled(), "unsent": self._emitter.unsent}

    # -- clocks and snapshots ---------------------------------------------------------------------------

    def busy(self, conversation: str) -> bool:
        """Something of it is queued or decided; over its last version, perhaps."""
        return conversation in self._lanes

    @property
    def skew_ms(self) -> int:
        """Local clock minus the broker's, milliseconds, as the last commit showed it."""
        return self._skew.ms

    @property
    def snapshot_at(self) -> int | None:
        """UTC milliseconds of the newest snapshot made here."""
        return None if self._keeper is None else self._keeper.snapshot_at
