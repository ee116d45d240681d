"""One worker process: the Faust app without its command line, on one event loop, until a signal or a failure."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from memory.copier import Copier
from memory.copies import Copies
from memory.object_store import object_store
from memory.sealing import KeyStore
from memory.snapshots import SnapshotStore
from schemas.topics import INPUT_TOPICS
from streams import announce, loops
from streams.app import FaustGroup, InterlockApp, crashed
from streams.clock import SystemClock, fresh_id
from streams.logs import log_to_stderr
from streams.metrics import Metrics, MetricsPort
from streams.runtime.client import common
from streams.runtime.gauges import report_forever
from streams.runtime.hosting import KafkaHost
from streams.runtime.offsets import KafkaOffsets
from streams.runtime.owner import Owner
from streams.runtime.ownership import Host
from streams.runtime.ports import EffectHandler, Outgoing
from streams.runtime.sender import KafkaSender
from streams.runtime.snapshotting import LocalSnapshots
from streams.runtime.table import Row
from streams.runtime.wire import DIFFS
from streams.settings import Settings
from streams.topics import TopicsError, require_partitions

log = logging.getLogger("interlock.worker")

FLUSH_S = 5.0  # what the broker does not take within this is published again by the next owner
BROKER_S = 15.0  # a broker that says nothing for so long is not there: the worker ends, and can be started again
STOP_S = 15.0  # a clean stop may take so long, then it is cut off


class Worker:
    """The parts of one worker, started and stopped in order."""

    def __init__(self, settings: Settings, host_of: Callable[[Worker], Host], topics: Sequence[str] = INPUT_TOPICS,
                 metrics: MetricsPort | None = None) -> None:  # fmt: skip
        self.settings = settings
        self.metrics = metrics or Metrics()
        self.sender = KafkaSender(settings, self._sender_failed)
        self.offsets = KafkaOffsets(settings, topics)
        self.owner = Owner(settings, topics, host_of(self), self.metrics, self.fail)
        self.app = InterlockApp(settings, self.owner)
        self.owner.group = FaustGroup(self.app)
        self.failure: BaseException | None = None
        self._stop = asyncio.Event()

    def fail(self, error: BaseException) -> None:
        """End the worker, visibly."""
        if self.failure is None:
            log.critical("the worker ends: %s", error)
            self.failure = error
        self._stop.set()

    def stop(self) -> None:
        """Ask for a clean end."""
        self._stop.set()

    async def run(self) -> int:
        """Until `stop` or a failure; the exit status."""
        self.app.loop = asyncio.get_running_loop()
        starting = asyncio.create_task(self._start())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._shut_down(starting)
            stopping.cancel()
        return 1 if self.failure is not None else 0

    async def _start(self) -> None:
        try:
            starting = asyncio.ensure_future(self.app.start())
            ended = asyncio.ensure_future(crashed(self.app))
            await asyncio.wait([starting, ended], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                starting.result()
                log.info("the worker is ready")
            reporting = asyncio.create_task(report_forever(
                self.owner, self.metrics, SystemClock(), self.settings.skew_max_ms))  # fmt: skip
            try:
                error = await ended
            finally:
                reporting.cancel()
        except asyncio.CancelledError:
            raise
        except Exception as failed:  # noqa: BLE001 (whatever it is, the worker ends and says so)
            error = failed
        if not self._stop.is_set():
            self.fail(error)

    async def _shut_down(self, starting: asyncio.Task[None]) -> None:
        """Close the partitions, flush, leave the group: within seconds, whatever hangs."""
        # partitions first, so that nothing new is sent while the producer empties; the group last, so that nobody
        # opens the partitions before what was decided here is out
        await self._bounded("revoke", self._leave_partitions())
        left = await self.sender.close(FLUSH_S)
        if left:
            log.warning("%d records were not taken by the broker in time; the next owner publishes them again", left)
        self.offsets.close()
        starting.cancel()
        await self._bounded("leave the group", self.app.stop())
        log.info("the worker has stopped")

    async def _leave_partitions(self) -> None:
        handled = await self.owner.end()
        if handled:
            await self.app.reader.farewell(handled)

    async def _bounded(self, what: str, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await asyncio.wait_for(work, STOP_S)
        except TimeoutError:
            log.error("%s took longer than %.0f s; going on without it", what, STOP_S)  # noqa: TRY400 (no traceback)
        except Exception:
            log.exception("%s failed", what)

    def _sender_failed(self, reason: str) -> None:
        self.fail(RuntimeError(f"the producer of emits is broken for good: {reason}"))


def snapshots_of(settings: Settings, metrics: MetricsPort) -> tuple[SnapshotStore, LocalSnapshots]:
    """The snapshot folder of this worker, stamped with cluster and topic. Raises KafkaException."""
    admin = AdminClient(common(settings))
    cluster = admin.describe_cluster(request_timeout=BROKER_S).result().cluster_id
    topic = admin.describe_topics(_collection(DIFFS), request_timeout=BROKER_S)[DIFFS].result().topic_id
    root = settings.snapshot_dir or settings.data_dir / "snapshots"
    store = SnapshotStore.claim(root, str(cluster), str(topic), metrics.count, log)
    return store, LocalSnapshots(store, SystemClock().now_ms)


def copier_of(settings: Settings, store: SnapshotStore, metrics: MetricsPort) -> Copier | None:
    """What copies this worker's snapshots; None where that is off. Raises ObjectStoreError without boto3 for S3."""
    if settings.snapshot_copies == "off":
        return None
    folder = settings.data_dir / "snapshot-copies"
    place = object_store(settings.snapshot_copies, folder, settings.snapshot_copies_endpoint)
    return Copier(Copies(place, store.cluster, store.topic, fresh_id("w"), log), store.whole, metrics.gauge,
                  metrics.count, log)  # fmt: skip


def _collection(topic: str) -> Any:
    from confluent_kafka import TopicCollection  # noqa: PLC0415 (missing in older stubs)

    return TopicCollection([topic])


async def work(settings: Settings, rows: Sequence[Row], keys: KeyStore, handlers: Mapping[str, EffectHandler],
               metrics: MetricsPort, announced: Sequence[Outgoing] = ()) -> int:  # fmt: skip
    """Run one worker with this processor table until SIGTERM or Ctrl-C; the exit status.

    `announced` is what the register is told first: what this worker has loaded.
    """
    store, snapshots = snapshots_of(settings, metrics)

    def host(made: Worker) -> KafkaHost:
        return KafkaHost(settings, rows, made.sender, made.offsets, keys, handlers, metrics, snapshots)

    with store, contextlib.ExitStack() as ends:
        snapshots.copier = copier_of(settings, store, metrics)
        if snapshots.copier is not None:
            ends.callback(snapshots.copier.close)
        worker = Worker(settings, host, metrics=metrics)
        for record in announced:
            worker.sender.send(record)  # unanswered: what the broker does not take ends the worker anyway
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        return await worker.run()


def run_worker(settings: Settings) -> int:
    """`interlock worker`: the whole processor table, metrics over HTTP; the exit status."""
    from streams.processors.wiring import metrics_of  # noqa: PLC0415 (all processors: only a whole worker needs them)

    log_to_stderr(settings.log_level)
    metrics = metrics_of(settings)
    try:
        exposition = metrics.serve(settings.metrics_port, settings.host)
    except OSError as error:
        log.critical(
            "metrics port %d: %s; set INTERLOCK_METRICS_PORT, 0 takes a free one", settings.metrics_port, error
        )
        return 1
    log.info("metrics on http://%s:%d/metrics", settings.host, exposition.port)
    try:
        return loops.run(_with_table(settings, metrics))
    except TopicsError as error:
        log.critical("%s", error)
        return 1
    except KafkaException as error:
        log.critical("the broker at %s does not answer: %s", settings.bootstrap_servers, error)
        return 1
    finally:
        exposition.close()


async def _with_table(settings: Settings, metrics: MetricsPort) -> int:
    from streams.processors import wiring  # noqa: PLC0415 (all processors: only a whole worker needs them)

    require_partitions(settings, BROKER_S)
    async with wiring.wire(settings) as table:
        told = [announce.model_loaded(settings, SystemClock().now_ms())]
        return await work(settings, table.rows, table.keys, table.handlers, metrics, told)
