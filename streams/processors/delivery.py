"""delivery: sends what was decided, and holds what became of it."""

from __future__ import annotations

from streams.channels.registry import blind
from streams.delivery.settings import DeliverySettings
from streams.delivery.step import delivery_step
from streams.runtime.table import Row
from streams.settings import Settings


def row(settings: Settings) -> Row:
    """The delivery processor with the settings' times."""
    cfg = DeliverySettings(
        delivered_ms=settings.delivered_ms, displayed_ms=settings.displayed_ms, follow_up_ms=settings.follow_up_ms,
        send_timeout_ms=settings.send_timeout_ms, send_deadline_ms=settings.send_deadline_ms,
        blind=blind(settings),
    )  # fmt: skip
    return Row(
        name="delivery",
        inputs=("channel.events", "actions.outbound", "delivery.receipts", "timers.fired"),
        step=delivery_step(cfg),
        failure_domain="a channel, its gateway or its receipts",
        degrade="repeat under the same message id, three attempts, then failed and a person is asked",
        alarm="InterlockMessagesFailing: interlock_messages_by_state_total with state failed rises",
    )
