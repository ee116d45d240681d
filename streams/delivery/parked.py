"""Receipts that come before our own record of the send: parked, joined, or orphaned with a reason (case A03)."""

from __future__ import annotations

import base64
from typing import Any

import orjson

from schemas.delivery import Receipt
from schemas.step import Draft, Input
from schemas.system import DeadLetter
from streams.delivery.settings import DeliverySettings

TIMER = "delivery.parked"


def park(draft: Draft, cfg: DeliverySettings, cause: Input) -> None:
    """Keep the cause's receipt until its message is registered; the oldest makes room, as an orphan."""
    receipt: Receipt = cause.value
    parked: list[dict[str, Any]] = draft.get("actions", "parked")
    if any(other["receipt"]["receipt_id"] == receipt.receipt_id for other in parked):
        draft.reason("delivery.receipt.repeat", "parked already", receipt.receipt_id)
        return
    entry = {"receipt": receipt.model_dump(mode="json"), "parked_at": draft.now, "partition": cause.partition,
             "offset": cause.offset}  # fmt: skip
    draft.reason("delivery.parked", "it came before the message that it is of", receipt.receipt_id, receipt.message_id)
    # the oldest goes: its message is the least likely to come still
    overflow = [*parked, entry][: -cfg.parked_max]
    for other in overflow:
        orphan(draft, other, f"more than {cfg.parked_max} receipts wait for their messages")
    _keep(draft, cfg, [*parked, entry][len(overflow) :])


def take(draft: Draft, cfg: DeliverySettings, message_id: str) -> list[Receipt]:
    """The parked receipts of a message that is registered now, in the order in which they came."""
    parked: list[dict[str, Any]] = draft.get("actions", "parked")
    mine = [entry for entry in parked if entry["receipt"]["message_id"] == message_id]
    if mine:
        _keep(draft, cfg, [entry for entry in parked if entry["receipt"]["message_id"] != message_id])
        draft.reason("delivery.joined", f"{len(mine)} parked", *(entry["receipt"]["receipt_id"] for entry in mine))
    return [Receipt.model_validate_json(orjson.dumps(entry["receipt"])) for entry in mine]


def expire(draft: Draft, cfg: DeliverySettings) -> None:
    """Give up on receipts that were parked for the whole parking time."""
    keep = []
    for entry in draft.get("actions", "parked"):
        if draft.now - entry["parked_at"] >= cfg.parked_ms:
            orphan(draft, entry, f"no send record in {cfg.parked_ms // 1000} s")
        else:
            keep.append(entry)
    _keep(draft, cfg, keep)


def orphan(draft: Draft, entry: dict[str, Any], reason: str) -> None:
    """A dead letter with coordinates and decoded value: a receipt holds no secret, so nothing needs a seal."""
    receipt = entry["receipt"]
    draft.emit("delivery.receipts.dlq", DeadLetter(
        topic="delivery.receipts", partition=entry["partition"], offset=entry["offset"], time=entry["parked_at"],
        reason=f"{reason}: message {receipt['message_id']}", code="orphan", field="message_id",
        key=base64.b64encode(draft.conversation.encode()).decode(), seal=None, size=len(orjson.dumps(receipt)),
        session_id=(draft.get("session") or {}).get("id"), record=receipt,
    ))  # fmt: skip
    draft.reason("delivery.orphan", reason, receipt["receipt_id"], receipt["message_id"])


def _keep(draft: Draft, cfg: DeliverySettings, parked: list[dict[str, Any]]) -> None:
    draft.set(parked, "actions", "parked")
    if not parked:
        draft.cancel(TIMER)
        return
    due = parked[0]["parked_at"] + cfg.parked_ms  # the list is in order of arrival
    if draft.get("timers", TIMER, "due") != due:
        draft.timer(TIMER, due)
