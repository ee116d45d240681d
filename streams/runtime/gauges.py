"""What a worker shows of its partitions at intervals: lag, inputs in flight, states, clock skew, age of snapshots.

A partition that went to another worker leaves the gauges: its last values would be a false alarm for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from schemas.topics import INPUT_TOPICS
from streams.metrics import MetricName, MetricsPort
from streams.runtime.ownership import Runtime, TopicPartition
from streams.runtime.ports import Clock

if TYPE_CHECKING:
    from streams.runtime.owner import Owner

log = logging.getLogger("interlock.gauges")

INTERVAL_S = 2.0
_OF_A_PARTITION: tuple[MetricName, ...] = (
    "interlock_inputs_in_flight", "interlock_states_open", "interlock_timer_skew_seconds", "interlock_timers_stopped",
    "interlock_snapshot_age_seconds",
)  # fmt: skip


async def report_forever(owner: Owner, metrics: MetricsPort, clock: Clock, skew_max_ms: int) -> None:
    """Set the gauges of every open partition, for ever."""
    shown: set[int] = set()
    while True:
        await asyncio.sleep(INTERVAL_S)
        for number in shown - set(owner.running):
            forget(number, metrics)
        shown = set(owner.running)
        try:
            ends = await owner.group.ends()
        except RuntimeError as error:  # the consumer is not there, or is closing
            log.info("no gauges: %s", error)
            continue
        for number, runtime in owner.running.items():
            report(number, runtime, ends, metrics, clock.now_ms(), skew_max_ms)


def report(number: int, runtime: Runtime, ends: Mapping[TopicPartition, int], metrics: MetricsPort, now_ms: int,
           skew_max_ms: int) -> None:  # fmt: skip
    """The gauges of one partition (R-002-16: the age of its snapshot)."""
    partition = str(number)
    metrics.gauge("interlock_inputs_in_flight", runtime.in_flight, partition=partition)
    metrics.gauge("interlock_states_open", runtime.open_states, partition=partition)
    metrics.gauge("interlock_timer_skew_seconds", runtime.skew_ms / 1000, partition=partition)
    metrics.gauge("interlock_timers_stopped", abs(runtime.skew_ms) > skew_max_ms, partition=partition)
    if runtime.snapshot_at is not None:
        age = (now_ms - runtime.snapshot_at) / 1000
        metrics.gauge("interlock_snapshot_age_seconds", max(0.0, age), partition=partition)
    for topic, below in runtime.handled().items():
        end = ends.get((topic, number))
        # none before the first fetch of that partition, and a lag that nobody knows is not 0
        if end is not None:
            metrics.gauge("interlock_lag_records", max(0, end - below), topic=topic, partition=partition)


def forget(number: int, metrics: MetricsPort) -> None:
    """Take a partition's gauges away."""
    partition = str(number)
    for name in _OF_A_PARTITION:
        metrics.forget(name, partition=partition)
    for topic in INPUT_TOPICS:
        metrics.forget("interlock_lag_records", topic=topic, partition=partition)
