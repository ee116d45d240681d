"""A worker's gauges speak of the partitions that it owns, and of no others."""

from __future__ import annotations

from streams.metric_list import METRICS
from streams.metrics import RecordedMetrics
from streams.runtime.gauges import forget, report
from tests.streams.runtime.kafka_parts import Hole

NOW = 1_767_578_400_000


def reported() -> RecordedMetrics:
    """The gauges of partition 3, five states open, 40 records behind on one topic, its snapshot 7 s old."""
    metrics, runtime = RecordedMetrics(), Hole()
    runtime.open_states, runtime.snapshot_at = 5, NOW - 7_000
    report(3, runtime, {("channel.events", 3): 40}, metrics, NOW, 1_000)
    return metrics


async def test_a_partitions_gauges_are_set() -> None:
    """Lag, states in memory and the age of the snapshot are there for each partition (R-002-16)."""
    metrics = reported()
    assert 40 == metrics.value("interlock_lag_records", "channel.events", "3")
    assert 5 == metrics.value("interlock_states_open", "3")
    assert 7 == metrics.value("interlock_snapshot_age_seconds", "3")


async def test_a_partition_that_left_is_in_no_gauge() -> None:
    """What another worker owns now is its business: a last value that stays would be a false alarm (R-002-16)."""
    metrics = reported()
    forget(3, metrics)
    assert {} == metrics.values


async def test_every_gauge_of_a_partition_is_set_and_forgotten() -> None:
    """Each gauge of the list with a partition is among them; effects in flight count themselves down."""
    listed = {one.name for one in METRICS if one.type == "gauge" and "partition" in one.labels}
    assert listed == {key[0] for key in reported().values} | {"interlock_effects_running"}
