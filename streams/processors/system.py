"""system: the operator's word to a partition, such as `dlq resume`."""

from __future__ import annotations

from streams.runtime.deadletters import resume
from streams.runtime.table import Row


def row() -> Row:
    """The row of system.events, the one input topic that the dead-letter limit never pauses."""
    return Row(
        name="system",
        inputs=("system.events",),
        step=resume,
        failure_domain="one topic partition, flooded with unreadable records",
        degrade="it pauses with every record kept in Kafka, and the partition's deadlines wait; the other topics "
        "and partitions go on",
        alarm='InterlockPartitionPaused: interlock_partition_stops_total{reason="dlq_limit"} rises',
    )
