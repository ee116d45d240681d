"""The pure step of delivery: outbound messages, receipts, the customer's presence, and deadlines."""

from __future__ import annotations

from typing import Any

from schemas.step import Draft, Input, Step
from streams.delivery import deadlines, parked
from streams.delivery.messages import FOLLOW_UP, RESEND, RETRY, SILENCE, find, register, report, stop, trim
from streams.delivery.settings import DeliverySettings


def delivery_step(cfg: DeliverySettings) -> Step:
    """The step with these times."""

    def step(draft: Draft, cause: Input) -> None:
        if cause.topic == "actions.outbound":
            _outbound(draft, cfg, cause.value)
        elif cause.topic == "delivery.receipts":
            _receipt(draft, cfg, cause)
        elif cause.topic == "channel.events":
            _seen(draft, cause.value.body)
        elif cause.topic == "timers.fired" and cause.value.name.startswith("delivery."):
            _deadline(draft, cfg, cause.value.name)

    return step


def _outbound(draft: Draft, cfg: DeliverySettings, message: Any) -> None:
    if register(draft, cfg, message):
        for receipt in parked.take(draft, cfg, message.message_id):
            report(draft, cfg, receipt)
        trim(draft, cfg.messages_max)


def _receipt(draft: Draft, cfg: DeliverySettings, cause: Input) -> None:
    if find(draft, cause.value.message_id) is None:
        parked.park(draft, cfg, cause)
    else:
        # the customer's own client reported it, so somebody is there
        if cause.value.source == "client":
            _online(draft, online=True)
        report(draft, cfg, cause.value)


def _seen(draft: Draft, body: Any) -> None:
    """Whatever a customer or their client does shows that they are there; an answer ends every silence."""
    offline = body.kind == "presence" and body.status == "offline"
    _online(draft, online=not offline)
    draft.reason("delivery.seen", "went offline" if offline else f"online: {body.kind}")
    if body.kind in ("message", "edit", "recall"):
        for name in draft.get("timers"):
            if name.startswith(FOLLOW_UP):
                stop(draft, name.partition(":")[2], FOLLOW_UP)


def _online(draft: Draft, *, online: bool) -> None:
    draft.set(online, "actions", "online")
    draft.set(draft.now, "actions", "last_online")


def _deadline(draft: Draft, cfg: DeliverySettings, name: str) -> None:
    kind, _, message_id = name.partition(":")
    if kind == SILENCE:
        deadlines.silence(draft, cfg, message_id)
    elif kind == RESEND:
        deadlines.resend(draft, cfg, message_id)
    elif kind == RETRY:
        deadlines.retry(draft, message_id)
    elif kind == FOLLOW_UP:
        deadlines.follow_up(draft, message_id)
    elif kind == parked.TIMER:
        parked.expire(draft, cfg)
