"""The pure step of delivery: outbound messages, receipts, the customer's presence, and deadlines."""

from __future__ import annotations

from typing import Any

from schemas.delivery import Receipt
from schemas.step import Draft, Input, Step
from streams.delivery import deadlines, parked
from streams.delivery.messages import (
    FOLLOW_UP,
    RESEND,
    RETRY,
    SILENCE,
    find,
    named,
    register,
    report,
    stop,
    trim,
    update,
)
from streams.delivery.settings import DeliverySettings

PRESENCE = "delivery.presence"
_NOT_THEIRS = ("unsupported", "identity_link")  # the channel's own word, and no sign that the customer is there


def delivery_step(cfg: DeliverySettings) -> Step:
    """The step with these times."""

    def step(draft: Draft, cause: Input) -> None:
        if cause.topic == "actions.outbound":
            _outbound(draft, cfg, cause.value)
        elif cause.topic == "delivery.receipts":
            _receipt(draft, cfg, cause)
        elif cause.topic == "channel.events" and cause.value.body.kind not in _NOT_THEIRS:
            _seen(draft, cfg, cause.value.body)
        elif cause.topic == "timers.fired" and cause.value.name.startswith("delivery."):
            _deadline(draft, cfg, cause.value.name)

    return step


def _outbound(draft: Draft, cfg: DeliverySettings, message: Any) -> None:
    if register(draft, cfg, message):
        for receipt in parked.take(draft, cfg, message.message_id):
            report(draft, cfg, receipt)
        trim(draft, cfg.messages_max)


def _receipt(draft: Draft, cfg: DeliverySettings, cause: Input) -> None:
    receipt = named(draft, cause.value)
    if find(draft, receipt.message_id) is None:
        if _returned(draft, receipt):
            return
        parked.park(draft, cfg, cause)
        return
    # the customer's own client reported it, so somebody is there
    if receipt.source == "client":
        _online(draft, online=True)
    report(draft, cfg, receipt)
    if receipt.vendor_id is not None:
        update(draft, receipt.message_id, vendor_id=receipt.vendor_id)
        for early in parked.take(draft, cfg, receipt.vendor_id):
            report(draft, cfg, named(draft, early))


def _returned(draft: Draft, receipt: Receipt) -> bool:
    """A channel shows its root's messages, too: what it reports of them goes to the root (R-003-05)."""
    root = draft.get("identity", "returns_to")
    if root is None or draft.cause.position is not None:  # never a second time: two roots must not play with it
        return False
    if receipt.source == "client":
        _online(draft, online=True)
    draft.emit("delivery.receipts", receipt, key=root)
    draft.reason("delivery.returned", f"no message of this conversation: to {root}", receipt.receipt_id)
    return True


def _seen(draft: Draft, cfg: DeliverySettings, body: Any) -> None:
    """Whatever a customer or their client does shows that they are there; an answer ends every silence."""
    offline = body.kind == "presence" and body.status == "offline"
    _online(draft, online=not offline)
    draft.reason("delivery.seen", "went offline" if offline else f"online: {body.kind}")
    if offline:
        draft.cancel(PRESENCE)
    elif body.kind == "heartbeat" and draft.get("timers", PRESENCE) is None:
        draft.timer(PRESENCE, draft.now + cfg.connected_ms)
    if body.kind in ("message", "edit", "recall"):
        for name in draft.get("timers"):
            if name.startswith(FOLLOW_UP):
                stop(draft, name.partition(":")[2], FOLLOW_UP)


def _online(draft: Draft, *, online: bool) -> None:
    """A farewell is no sight of them: a channel may tell late that a connection was gone before our message."""
    draft.set(online, "actions", "online")
    if online:
        draft.set(draft.now, "actions", "last_online")


def _silent(draft: Draft, cfg: DeliverySettings) -> None:
    """A client that beats, and does not any more, has dropped: nobody has to say so (R-002-37).

    One deadline runs while the client is there and looks when it fires; a beat does not set it anew.
    """
    due = (draft.get("actions", "last_online") or 0) + cfg.connected_ms
    if due > draft.now:
        draft.timer(PRESENCE, due)
        draft.reason("delivery.still_there", "the client was heard meanwhile")
    elif draft.get("actions", "online"):
        draft.set(False, "actions", "online")
        draft.reason("delivery.dropped", f"no heartbeat for {cfg.connected_ms} ms")


def _deadline(draft: Draft, cfg: DeliverySettings, name: str) -> None:
    kind, _, message_id = name.partition(":")
    if kind == PRESENCE:
        _silent(draft, cfg)
    elif kind == SILENCE:
        deadlines.silence(draft, cfg, message_id)
    elif kind == RESEND:
        deadlines.resend(draft, cfg, message_id)
    elif kind == RETRY:
        deadlines.retry(draft, message_id)
    elif kind == FOLLOW_UP:
        deadlines.follow_up(draft, message_id)
    elif kind == parked.TIMER:
        parked.expire(draft, cfg)
