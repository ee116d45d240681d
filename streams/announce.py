"""What a worker has loaded, as events of the register: an investigator sees which model read a message."""

from __future__ import annotations

from agents.understanding.embedded import model_of
from schemas.partition import system_conversation
from schemas.system import SystemEvent
from streams.runtime.ports import Fact, Outgoing
from streams.runtime.wire import fact_record
from streams.settings import Settings

_PARTITION = 0  # one place for the events of all workers


def model_loaded(settings: Settings, now_ms: int) -> Outgoing:
    """The event that a worker, from its start at `now_ms`, understands by this model.

    Raises ModelFileError naming the file of `understanding_model` that can't be used.
    """
    stamp = model_of(settings.understanding_model).stamp
    event = SystemEvent(
        event_id=f"model-{stamp.version}-{now_ms}", kind="model_loaded", subject="understanding",
        by=settings.group, at=now_ms,
        data={"version": stamp.version, "data_hash": stamp.data_hash, "examples": stamp.examples,
              "library": stamp.library, "metrics": dict(stamp.metrics),
              "file": settings.understanding_model.name if settings.understanding_model else "(package)"},
    )  # fmt: skip
    fact = Fact("system.events", system_conversation(_PARTITION), event.event_id, event)
    return fact_record(fact, _PARTITION, now_ms)
