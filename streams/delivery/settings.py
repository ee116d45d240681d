"""The numbers of delivery, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Times in milliseconds; those of the product's settings have the same names there, the others are fixed."""

    delivered_ms: int = 15_000  # R-002-30
    displayed_ms: int = 30_000  # R-002-31
    follow_up_ms: int = 120_000  # R-002-32
    connected_ms: int = 30_000  # R-002-37: a client beats every 10 s, so three beats are missing
    display_once_ms: int = 5_000  # R-002-33
    parked_ms: int = 600_000  # A03: a receipt may be this much ahead of our own record
    parked_max: int = 16
    attempts_max: int = 3  # one send and two resends: more would only annoy
    retry_ms: int = 1_000  # doubled with each attempt of our own sender
    send_timeout_ms: int = 3_000
    send_deadline_ms: int = 10_000  # a successor repeats a send, under the same dedup id, only after this
    messages_max: int = 12  # kept a conversation, so that states stay small
    blind: frozenset[str] = frozenset()  # channels that never say what the customer saw, and show a repeat twice
