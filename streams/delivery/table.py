"""The delivery table: where a message is held to be, what is reported, and where it is then (R-002-29).

Two rules are in it. Nothing lowers a state. `failed` is left by a new attempt only (case A05).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from schemas.delivery import DeliveryState


class Held(StrEnum):
    """What we hold to be true; `assumed` is displayed as far as anybody can tell, reported by nobody (X5)."""

    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    ASSUMED = "assumed"
    DISPLAYED = "displayed"
    READ = "read"
    FAILED = "failed"


class Event(StrEnum):
    """What can happen to a message: a receipt, the 15 s without one, or an explicit new attempt."""

    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    DISPLAYED = "displayed"
    READ = "read"
    FAILED = "failed"
    SILENCE = "silence"
    ATTEMPT = "attempt"


_UP = {Event.DISPLAYED: Held.DISPLAYED, Event.READ: Held.READ}  # rendered or clicked: true whatever was held before
MOVES: Mapping[Held, Mapping[Event, Held]] = {  # a pair that is missing leaves the state as it is
    Held.QUEUED: {Event.SENT: Held.SENT, Event.DELIVERED: Held.DELIVERED, **_UP, Event.FAILED: Held.FAILED},
    Held.SENT: {Event.DELIVERED: Held.DELIVERED, **_UP, Event.FAILED: Held.FAILED, Event.SILENCE: Held.ASSUMED},
    Held.DELIVERED: {**_UP},
    Held.ASSUMED: {**_UP, Event.FAILED: Held.FAILED},  # a reported failure beats an assumption
    Held.DISPLAYED: {Event.READ: Held.READ},
    Held.READ: {},
    Held.FAILED: {Event.ATTEMPT: Held.QUEUED},
}

RANK: Mapping[str, int] = {"queued": 0, "sent": 1, "delivered": 2, "displayed": 3, "read": 4, "failed": 5}
_REPORTED = (DeliveryState.SENT, DeliveryState.DELIVERED, DeliveryState.DISPLAYED)


def move(held: Held, event: Event) -> Held:
    """Where a message is after the event."""
    return MOVES[held].get(event, held)


def held(state: str, *, assumed: bool) -> Held:
    """The table's row of a stored message."""
    return Held.ASSUMED if assumed else Held(state)


def state_of(row: Held) -> DeliveryState:
    """The published state: an assumed display is `displayed`, and says that it is assumed (R-002-30)."""
    return DeliveryState.DISPLAYED if row is Held.ASSUMED else DeliveryState(row.value)


def unseen(state: str, reported: Mapping[str, object]) -> tuple[DeliveryState, ...]:
    """The states below this one that nobody reported (case A09)."""
    if state == DeliveryState.FAILED:
        return ()
    return tuple(lower for lower in _REPORTED if RANK[lower] < RANK[state] and lower not in reported)


def mermaid() -> str:
    """The table as a Mermaid state diagram, for docs/delivery.md."""
    lines = ["stateDiagram-v2", "    [*] --> queued: declared"]
    for row, moves in MOVES.items():
        targets: dict[Held, list[str]] = {}
        for event, target in moves.items():
            targets.setdefault(target, []).append(event.value)
        lines += [f"    {row} --> {target}: {', '.join(events)}" for target, events in targets.items()]
    return "\n".join([*lines, "    read --> [*]"])
