"""system: an operator's word to a partition or about a customer's seals, and what a worker loaded."""

from __future__ import annotations

from schemas.step import Draft, Input
from schemas.system import SystemEvent
from streams.privacy import step as privacy
from streams.runtime.deadletters import resume
from streams.runtime.table import Row

_LOADED = frozenset({"pack_loaded", "model_loaded", "rules_loaded"})


def step(draft: Draft, cause: Input) -> None:
    """The step of system.events: a paused topic goes on; what was loaded stands in the register with its version."""
    resume(draft, cause)
    event = cause.value
    if event is not None and not draft.conversation.startswith("~"):
        privacy.record(draft, event)
    if event is not None and event.kind == "memory_restored":
        _restored(draft, event)
    if event is not None and event.kind in _LOADED:
        version = event.data.get("version", "without a version")
        draft.reason(f"runtime.{event.kind}", f"{event.subject} {version}, by {event.by}", cause.id)


def _restored(draft: Draft, event: SystemEvent) -> None:
    """Which files the stores of a shop were restored from, and where what stood before is."""
    named = event.data.get("files")
    files = ", ".join(
        str(one.get("file")) for one in (named if isinstance(named, list) else ()) if isinstance(one, dict)
    )
    told = f"{event.subject} from {files}, by {event.by}; before: {event.data.get('backup_before')}"
    draft.reason("runtime.memory_restored", told, event.event_id)


def row() -> Row:
    """The row of system.events, the one input topic that the dead-letter limit never pauses."""
    return Row(
        name="system",
        inputs=("system.events",),
        step=step,
        failure_domain="one topic partition, flooded with unreadable records",
        degrade="it pauses with every record kept in Kafka, and the partition's deadlines wait; the other topics "
        "and partitions go on",
        alarm='InterlockPartitionPaused: interlock_partition_stops_total{reason="dlq_limit"} rises',
    )
