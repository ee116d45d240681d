"""Faust's consumer with its seams replaced: reads committed, hands records straight to the owner, seeks by the diffs.

Faust joins the group, assigns partitions and fetches; streams, agents, channels and acknowledgements are not used.
"""
# ruff: noqa: SLF001 (aiokafka and Faust have no public names for fetched records, positions, heartbeats and rejoin)

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import aiokafka
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata

from streams.runtime.crashpoints import crash
from streams.runtime.plain_faust import TP, driver
from streams.runtime.ports import Record
from streams.settings import Settings

if TYPE_CHECKING:
    from mode import ServiceT

T = TypeVar("T")
log = logging.getLogger("interlock.consumer")

FETCH_WAIT_MS = 200  # a fetch of silent partitions returns after this, so that a resumed one waits no longer
FETCH_GAP_S = 0.015  # a fetch lists every topic partition: without a pause, light traffic costs one for each record
FETCH_BYTES = 4 * 1024 * 1024  # of one answer: heartbeats wait in the same loop while it is taken apart
BATCH = 500  # records taken from the fetcher at once
IDLE_S = 0.25  # wait for records, where nothing is held back
TELL_S = 1.0  # telling the group our offsets may take so long; it is for information
HELD_S = 0.01  # wait for records, where a full partition waits for room

Positions = Mapping[tuple[str, int], int]


class Intake(Protocol):
    """What the consumer needs of the owner."""

    settings: Settings
    topics: tuple[str, ...]

    @property
    def epoch(self) -> int:
        """Changes with every assignment: what was fetched in another one is not offered."""
        ...

    @property
    def waiting(self) -> bool:
        """A partition is held back until it has room."""
        ...

    def offer(self, record: Record) -> None:
        """Take a record; never blocks."""
        ...

    def reached(self, positions: Positions) -> None:
        """The fetcher stands here, and all before it was offered."""
        ...

    def start_positions(self) -> Positions:
        """Where each topic partition goes on, from the diffs; a partition that must stay closed is left out."""
        ...

    def handled(self) -> Positions:
        """Offsets to tell the group, below which all is handled."""
        ...

    def opened(self) -> None:
        """The positions are set."""
        ...

    async def revoke(self) -> Positions:
        """Close all partitions; what they handled."""
        ...


class Active(set[TP]):
    """The topic partitions to take records of. Always true: the fetcher takes an empty set for "all"."""

    def __bool__(self) -> bool:
        return True


class PacedConsumer(aiokafka.AIOKafkaConsumer):  # type: ignore[misc]  # it has no types
    """Pauses between fetches, so that one brings the records of several; the first after a silence is not held up."""

    async def start(self) -> None:
        """Join, and slow the fetcher down."""
        await super().start()
        fetcher, loop = self._fetcher, asyncio.get_running_loop()
        unpaced, sent = fetcher._get_actions_per_node, float("-inf")

        def paced(assignment: Any) -> tuple[Any, ...]:
            nonlocal sent
            left = sent + FETCH_GAP_S - loop.time()
            if left > 0:
                return (), {}, left, False, ()  # nothing to do for so long: the fetcher looks again then
            actions: tuple[Any, ...] = unpaced(assignment)
            if actions[0]:
                sent = loop.time()
            return actions

        fetcher._get_actions_per_node = paced


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """The driver's consumer, in a thread and event loop of its own, so that heartbeats never wait for us."""

    consumer: Consumer
    _fetching: asyncio.Lock

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:  # noqa: ARG002 (Faust calls it so)
        settings = self.consumer.intake.settings
        self._fetching = asyncio.Lock()
        self._assignor = self.app.assignor  # without tables Faust would fall back to round robin, which splits
        return PacedConsumer(
            client_id=settings.group,
            group_id=settings.group,
            bootstrap_servers=settings.bootstrap_servers,
            partition_assignment_strategy=[self._assignor],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_ms,
            rebalance_timeout_ms=max(30_000, settings.session_timeout_ms),
            max_poll_interval_ms=settings.poll_limit_ms,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=2 * 1024 * 1024,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            request_timeout_ms=40_000,
            metadata_max_age_ms=60_000,
        )

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the driver's loop. Faust's own queue has two workers, which a fetch and a seek can both block."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.thread_loop))

    async def take(self, active: Active, epoch: int, wait_s: float) -> tuple[Mapping[TP, list[Any]], Positions]:
        """Fetched records, and where the fetcher stands after them; nothing when the assignment changed."""
        return await self._there(self._take(active, epoch, wait_s))

    async def _take(self, active: Active, epoch: int, wait_s: float) -> tuple[Mapping[TP, list[Any]], Positions]:
        async with self._fetching:
            parent = self.consumer
            if not parent.flow_active or parent.intake.epoch != epoch:
                return {}, {}
            fetcher = self._ensure_consumer()._fetcher
            if fetcher._subscriptions.reassignment_in_progress:
                await asyncio.sleep(HELD_S)  # it would wait for the assignment, and the seek after that for us
                return {}, {}
            with fetcher._subscriptions.fetch_context():
                records = await fetcher.fetched_records(active, timeout=wait_s, max_records=BATCH)
            return records, self._standing(active)

    def _standing(self, active: Active) -> Positions:
        assignment = self._ensure_consumer()._subscription.subscription.assignment
        if assignment is None:
            return {}
        standing = {}
        for tp in assignment.tps:
            state = assignment.state_value(tp)
            if tp in active and state is not None and state.has_valid_position:
                standing[tp.topic, tp.partition] = state.position
        return standing

    def wake(self) -> None:
        """Make a waiting fetch look again at which partitions are active. From any thread."""
        self.thread_loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._consumer is not None:
            for waiter in list(self._consumer._fetcher._fetch_waiters):
                if not waiter.done():
                    waiter.set_result(None)

    async def seek_all(self, positions: Positions) -> None:
        """Set the position of each topic partition; no fetch of before is still under way."""
        self.wake()
        await self._there(self._seek_all(positions))

    async def _seek_all(self, positions: Positions) -> None:
        async with self._fetching:
            consumer = self._ensure_consumer()
            assigned = consumer.assignment()
            for (topic, partition), offset in positions.items():
                tp = TopicPartition(topic, partition)
                if tp in assigned:
                    consumer.seek(tp, offset)

    async def tell(self, offsets: Positions) -> None:
        """Commit offsets to the group: only informative, so a refusal is no failure."""
        await self._there(self._tell(offsets))

    async def _tell(self, offsets: Positions) -> None:
        consumer = self._ensure_consumer()
        assigned = consumer.assignment()
        ours = {TopicPartition(*tp): OffsetAndMetadata(offset, "") for tp, offset in offsets.items()
                if TopicPartition(*tp) in assigned}  # fmt: skip
        if not ours:
            return
        crash("group.before")
        try:
            # bounded: one that outlives its assignment would be taken for another member, and cost a rebalance
            await asyncio.wait_for(consumer.commit(ours), TELL_S)
            crash("group.after")
        except (KafkaError, TimeoutError) as error:
            log.info("group offsets not taken: %s", type(error).__name__)

    async def beat(self) -> float | None:
        """Ask the coordinator whether we are still a member: the monotonic time before its yes, else None."""
        return await self._there(self._beat())

    async def _beat(self) -> float | None:
        coordinator = self._ensure_consumer()._coordinator
        asked = time.monotonic()
        try:
            member: bool = await coordinator._do_heartbeat()
        except KafkaError as error:  # a code that the driver does not expect here; raised, it would look like our bug
            log.warning("the coordinator does not say whether we are a member: %s", error)
            return None
        return asked if member else None

    async def ends(self) -> Positions:
        """The end offsets that the last fetches saw."""
        return await self._there(self._ends())

    async def _ends(self) -> Positions:
        subscription = self._ensure_consumer()._subscription.subscription
        if subscription is None or subscription.assignment is None:
            return {}
        states = {tp: subscription.assignment.state_value(tp) for tp in subscription.assignment.tps}
        return {(tp.topic, tp.partition): state.highwater for tp, state in states.items()
                if state is not None and state.highwater is not None}  # fmt: skip

    def rejoin(self) -> None:
        """Ask the group for a new assignment. From any thread."""
        self.thread_loop.call_soon_threadsafe(self._ensure_consumer()._coordinator.request_rejoin)


class Consumer(driver.Consumer):
    """Hands each record to the owner; there is no Faust stream behind it."""

    _thread: ConsumerThread

    @property
    def intake(self) -> Intake:
        """The owner, which the application carries."""
        return cast("Intake", self.app.intake)  # type: ignore[attr-defined]

    @property
    def thread(self) -> ConsumerThread:
        """The driver's thread."""
        return self._thread

    def _new_consumer_thread(self) -> ConsumerThread:
        self.active = Active()
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def hold(self, tps: Iterable[TP]) -> None:
        """Take no records of these; what is fetched stays in the fetcher."""
        self.active.difference_update(tps)

    def release(self, tps: Iterable[TP]) -> None:
        """Take records of these again."""
        self.active.update(tps)
        self._thread.wake()

    async def _drain_messages(self, fetcher: ServiceT) -> None:
        stopped = fetcher._stopped.is_set  # type: ignore[attr-defined]
        try:
            while not self.should_stop and not stopped():
                if self.flow_active:
                    await self._drain_once()
                else:
                    await self.wait(self.can_resume_flow)  # type: ignore[arg-type]
        except asyncio.CancelledError:
            if not (stopped() or self.app.should_stop):
                raise

    async def _drain_once(self) -> None:
        intake = self.intake
        epoch = intake.epoch
        records, standing = await self._thread.take(self.active, epoch, HELD_S if intake.waiting else IDLE_S)
        if intake.epoch != epoch:
            return  # the new assignment seeks to what was handled: these come again
        offer = intake.offer
        for batch in records.values():
            for item in batch:
                offer(Record(item.topic, item.partition, item.offset, item.timestamp, item.key, item.value,
                             item.headers))  # fmt: skip
            await asyncio.sleep(0)
            if intake.epoch != epoch:
                return
        intake.reached(standing)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Close the partitions first: nothing of them runs on when the group hands them to somebody else."""
        self.active.clear()
        await self.farewell(await self.intake.revoke())
        await super().on_partitions_revoked(revoked)

    async def farewell(self, handled: Positions) -> None:
        """Tell the group a last time."""
        if handled:
            await self._thread.tell(handled)

    async def perform_seek(self) -> None:
        """Set position, read offset and committed offset to what the diffs say is handled, and pauses again."""
        positions = self.intake.start_positions()
        await self._thread.seek_all(positions)
        for (topic, partition), offset in positions.items():
            self._read_offset[TP(topic, partition)] = offset
            self._committed_offset[TP(topic, partition)] = offset
        self.intake.opened()

    async def commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:  # noqa: FBT001, FBT002, ARG002
        """Tell the group how far we are; what was handled is known from the diffs, not from here."""
        offsets = self.intake.handled()
        if offsets:
            await self._thread.tell(offsets)
        return bool(offsets)

    async def wait_empty(self) -> None:
        """Nothing to wait for: the owner bounds what still runs."""

    async def verify_all_partitions_active(self) -> None:
        """Faust's watch over its streams has nothing to see here."""
