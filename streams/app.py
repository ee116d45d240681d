"""The Faust app: one group, one subscription list, copartitioned, and an owner instead of agents and tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

from streams.runtime.faust_consumer import Consumer, Intake
from streams.runtime.ownership import TopicPartition
from streams.runtime.plain_faust import TP, App, BootStrategy, Conductor, driver
from streams.settings import Settings


class Opening(Intake, Protocol):
    """What the app needs of the owner besides taking records."""

    async def assigned(self) -> None:
        """Fence, rebuild and start what was assigned."""
        ...


class ListConductor(Conductor):
    """Subscribes to the one list, without agents or channels."""

    async def _update_indices(self) -> Iterable[str]:
        return cast("InterlockApp", self.app).intake.topics


class Transport(driver.Transport):
    """Faust's aiokafka transport with our consumer and conductor."""

    Consumer = Consumer
    Conductor = ListConductor


class Boot(BootStrategy):
    """No producer, no web server: confluent-kafka writes, and metrics have a server of their own."""

    enable_kafka_producer = False
    enable_web = False


class InterlockApp(App):
    """Membership, assignment and input records; whatever happens to a record is the owner's."""

    BootStrategy = Boot

    def __init__(self, settings: Settings, intake: Opening) -> None:
        self.intake = intake
        # for Faust's own bookkeeping; the consumer is given all of them, see ConsumerThread
        first = settings.bootstrap_servers.split(",")[0]
        super().__init__(
            settings.group,
            broker=f"kafka://{first}",
            datadir=str(settings.data_dir / "faust"),
            store="memory://",
            autodiscover=False,
            web_enabled=False,
            topic_allow_declare=False,
            topic_disable_leader=True,
            # the owner bounds the wait; Faust would hold up the group until the last slow call has ended
            stream_wait_empty=False,
            broker_session_timeout=settings.session_timeout_ms / 1000,
            broker_heartbeat_interval=settings.heartbeat_ms / 1000,
            # for lag tools and people: nothing goes on from the group's offsets
            broker_commit_interval=2.0,
            broker_request_timeout=40.0,
        )
        self.on_rebalance_complete.connect(self._open)

    async def _open(self, *_: Any, **__: Any) -> None:
        await self.intake.assigned()

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    def _create_directories(self) -> None:
        """Faust's own folders are not used."""

    @property
    def reader(self) -> Consumer:
        """The consumer with its own type."""
        return cast("Consumer", self.consumer)


class FaustGroup:
    """The owner's view of the group: Faust's consumer, once it has started."""

    def __init__(self, app: InterlockApp) -> None:
        self._app = app

    def assignment(self) -> frozenset[TopicPartition]:
        """What is assigned now."""
        return frozenset((tp.topic, tp.partition) for tp in self._app.reader.assignment())

    async def beat(self) -> float | None:
        """Whether the coordinator takes us for a member."""
        return await self._app.reader.thread.beat()

    def hold(self, places: Iterable[TopicPartition]) -> None:
        """Read no more of these."""
        self._app.reader.hold(TP(*place) for place in places)

    def release(self, places: Iterable[TopicPartition]) -> None:
        """Read these again."""
        self._app.reader.release([TP(*place) for place in places])

    async def ends(self) -> Mapping[TopicPartition, int]:
        """The end offsets that the last fetches saw."""
        return await self._app.reader.thread.ends()

    def rejoin(self) -> None:
        """Ask for a new assignment."""
        self._app.reader.thread.rejoin()


async def crashed(app: InterlockApp) -> BaseException:
    """Wait until the app ends by itself; why."""
    waits = app._crashed.wait(), app._stopped.wait()  # noqa: SLF001 (mode has no public way to wait for either)
    crash_, stopped = map(asyncio.ensure_future, waits)
    await asyncio.wait([crash_, stopped], return_when=asyncio.FIRST_COMPLETED)
    for task in (crash_, stopped):
        task.cancel()
    return app.crash_reason or RuntimeError("the Kafka consumer stopped by itself")
