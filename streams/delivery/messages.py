"""One outbound message in the state: registered, sent, reported on. Pure; nothing here knows a channel."""

from __future__ import annotations

from typing import Any

from schemas.delivery import Choice, DeliveryStatus, EvidenceRef, OutboundMessage, Receipt
from schemas.events import Seal
from schemas.people import HumanRequest
from schemas.step import Draft
from streams.delivery.settings import DeliverySettings
from streams.delivery.table import RANK, Event, Held, held, move, state_of, unseen

SILENCE, RESEND, RETRY, FOLLOW_UP = (
    "delivery.silence", "delivery.resend", "delivery.retry", "delivery.follow_up"
)  # fmt: skip
_DONE = (Held.DISPLAYED, Held.READ)
_REACHED = (Event.DELIVERED, Event.DISPLAYED, Event.READ)


def find(draft: Draft, message_id: str) -> dict[str, Any] | None:
    """The message as the state has it, or None. Never mutate it."""
    found: dict[str, Any] | None = draft.get("actions", "messages", message_id)
    return found


def named(draft: Draft, receipt: Receipt) -> Receipt:
    """The receipt under our own message id, where the vendor has another name for the message."""
    if find(draft, receipt.message_id) is not None:
        return receipt
    for message_id, message in draft.get("actions", "messages").items():
        if message.get("vendor_id") == receipt.message_id:
            return receipt.model_copy(update={"message_id": message_id})
    return receipt


def update(draft: Draft, message_id: str, **fields: Any) -> None:
    """Set fields of a registered message."""
    for name, value in fields.items():
        draft.set(value, "actions", "messages", message_id, name)


def settled(message: dict[str, Any]) -> bool:
    """The current attempt's outcome is known, or no longer matters."""
    return message["sent_at"] is not None or row_of(message) in (*_DONE, Held.FAILED)


def row_of(message: dict[str, Any]) -> Held:
    """The table's row that the message is in."""
    return held(message["state"], assumed=message["assumed"])


def register(draft: Draft, cfg: DeliverySettings, message: OutboundMessage) -> bool:
    """Take a message, or a new attempt of one, and declare its send. False when there is nothing to send.

    The effect's key is the message id, whatever the attempt: the channel shows it once (A13, R-002-31).
    """
    known = find(draft, message.message_id)
    if known is not None:
        if not _attempt(draft, known, message):
            return False
    else:
        draft.set(_fresh(draft, message), "actions", "messages", message.message_id)
        publish(draft, message.message_id, None)
        draft.reason("delivery.queued", f"{message.kind} {message.template_id}", message.message_id)
    draft.effect(
        f"{message.message_id}:{message.attempt}", "send", key=message.message_id, timeout_ms=cfg.send_timeout_ms,
        deadline=draft.now + cfg.send_deadline_ms, request=message.model_dump(mode="json"),
    )  # fmt: skip
    return True


def _fresh(draft: Draft, message: OutboundMessage) -> dict[str, Any]:
    dump = message.model_dump(mode="json", exclude={"message_id"})
    return {
        **dump, "state": "queued", "queued_at": draft.now, "sent_at": None, "at": {}, "assumed": False, "reason": "",
        "displayed_seen": None, "displays": 0, "followed_up": False,
    }  # fmt: skip


def _attempt(draft: Draft, known: dict[str, Any], message: OutboundMessage) -> bool:
    """A record for a message that is known: a new attempt counts only if the customer has not seen it yet."""
    message_id, row = message.message_id, row_of(known)
    if message.attempt <= known["attempt"]:
        draft.reason("delivery.outbound.repeat", f"attempt {message.attempt} is declared already", message_id)
        return False
    # the receipt overtook the resend: sent again, the customer would see it twice
    if row in _DONE:
        draft.reason("delivery.resend.needless", f"it was {row} before the resend went out", message_id)
        return False
    after = move(row, Event.ATTEMPT)
    update(draft, message_id, attempt=message.attempt, sent_at=None)
    stop(draft, message_id, SILENCE, RESEND, RETRY)
    if after is not row:  # out of `failed`: the history of the attempt that failed is in the register
        update(draft, message_id, state=state_of(after).value, at={}, reason="")
        publish(draft, message_id, state_of(row).value)
    draft.reason("delivery.attempt", f"attempt {message.attempt}, under the same message id", message_id)
    return True


def report(draft: Draft, cfg: DeliverySettings, receipt: Receipt) -> None:
    """Join a receipt to its registered message: the table decides, history is filled in, nothing is lowered."""
    message_id, event = receipt.message_id, Event(receipt.state)
    message = draft.get("actions", "messages", message_id)
    attempt = receipt.attempt or message["attempt"]
    # our own sender's word ends its effect, whatever it says; a vendor's receipt never does
    if receipt.source == "sender":
        draft.settle(f"{message_id}:{attempt}")
    current = attempt >= message["attempt"]
    if event is Event.FAILED and receipt.retryable and current:
        _unknown(draft, cfg, message, receipt)
        return
    row = row_of(message)
    counts = current or event in _REACHED  # what reached the customer is true, whichever attempt it was
    after = move(row, event) if counts else row
    repeat = event.value in message["at"]
    if counts:
        _history(draft, message, receipt)
    if event is Event.DISPLAYED and row is not Held.FAILED:
        _display(draft, cfg, message, receipt)
    if current and message["sent_at"] is None and event in (Event.SENT, Event.DELIVERED) and after not in _DONE:
        _start(draft, cfg, message_id, after)
    if after is not row:
        change(draft, cfg, message_id, after, receipt)
    elif not repeat:
        _recorded(draft, row, receipt)
    else:
        draft.reason("delivery.receipt.repeat", f"{event} was reported before", receipt.receipt_id, message_id)


def change(
    draft: Draft, cfg: DeliverySettings, message_id: str, after: Held, receipt: Receipt | None = None, reason: str = ""
) -> None:
    """Put a message into a row of the table; publish it; start and stop the deadlines that follow from it."""
    message = draft.get("actions", "messages", message_id)
    reason = receipt.reason if receipt else reason
    update(draft, message_id, state=state_of(after).value, assumed=after is Held.ASSUMED, reason=reason)
    publish(draft, message_id, message["state"], receipt)
    draft.reason(f"delivery.{after}", reason, receipt.receipt_id if receipt else message_id)
    if after is Held.DELIVERED:
        stop(draft, message_id, SILENCE, RETRY)
    elif after is Held.FAILED or after in _DONE:
        stop(draft, message_id, SILENCE, RESEND, RETRY)
    if after is Held.READ and message["kind"] == "reply" and not message["followed_up"]:
        draft.timer(f"{FOLLOW_UP}:{message_id}", draft.now + cfg.follow_up_ms, {"message_id": message_id})
    if after is Held.FAILED:
        _ask_person(draft, message_id, message, reason)


def publish(
    draft: Draft, message_id: str, previous: str | None, receipt: Receipt | None = None, *, late: bool = False
) -> None:
    """What we hold to be true now, on delivery.states. No time is invented: without the provider's, none (A07)."""
    message = draft.get("actions", "messages", message_id)
    provider_at = receipt.occurred_at if receipt else None
    # negative when the provider's clock is behind ours: then it says nothing
    latency = provider_at - message["queued_at"] if provider_at else -1
    draft.emit("delivery.states", DeliveryStatus(
        message_id=message_id, session_id=message["session_id"], state=state_of(row_of(message)),
        previous=state_of(Held(previous)) if previous else None, attempt=message["attempt"], at=draft.now,
        assumed=message["assumed"], reason=receipt.reason if late and receipt else message["reason"],
        receipt_id=receipt.receipt_id if receipt else None, out_of_order=late, provider_at=provider_at,
        latency_ms=latency if latency >= 0 and not late else None, unseen=unseen(message["state"], message["at"]),
    ))  # fmt: skip


def stop(draft: Draft, message_id: str, *timers: str) -> None:
    """Stop these deadlines of the message."""
    for timer in timers:
        draft.cancel(f"{timer}:{message_id}")


def again(message_id: str, message: dict[str, Any]) -> OutboundMessage:
    """The next attempt of a message: same id, so that the channel shows it once (R-002-31)."""
    return OutboundMessage(
        message_id=message_id, session_id=message["session_id"], attempt=message["attempt"] + 1, kind="resend",
        template_id=message["template_id"], params=message["params"], language=message["language"],
        text=message["text"], choices=tuple(Choice(**choice) for choice in message["choices"]),
        in_reply_to=message["in_reply_to"], evidence=tuple(EvidenceRef(**ref) for ref in message["evidence"]),
        claims_success=message["claims_success"], seal=Seal(**message["seal"]) if message.get("seal") else None,
        to=message.get("to"),
    )  # fmt: skip


def trim(draft: Draft, most: int) -> None:
    """Forget the oldest messages for which nothing is pending, so that the state stays small."""
    messages = draft.get("actions", "messages")
    excess = len(messages) - most
    if excess <= 0:
        return
    # a deadline or a send that is still to come would find no message
    busy = {name.partition(":")[2] for name in draft.get("timers")}
    busy |= {effect.rpartition(":")[0] for effect in draft.get("pending")}
    oldest = sorted(messages, key=lambda message_id: (messages[message_id]["queued_at"], message_id))
    for message_id in [known for known in oldest if known not in busy][:excess]:
        draft.delete("actions", "messages", message_id)


def _history(draft: Draft, message: dict[str, Any], receipt: Receipt) -> None:
    """The provider's time of each state, filled in also by a late receipt; null where it gave none (A01, A07)."""
    if message["at"].get(receipt.state) is None:
        draft.set(receipt.occurred_at, "actions", "messages", receipt.message_id, "at", receipt.state)


def _recorded(draft: Draft, row: Held, receipt: Receipt) -> None:
    rank = RANK["displayed"] if row is Held.ASSUMED else RANK[row]
    if RANK[receipt.state] == rank:
        draft.reason("delivery.receipt.recorded", f"it is {row} already", receipt.receipt_id, receipt.message_id)
        return
    message = draft.get("actions", "messages", receipt.message_id)
    publish(draft, receipt.message_id, message["state"], receipt, late=True)
    draft.reason("delivery.out_of_order", f"{receipt.state} came late: it stays {row}", receipt.receipt_id,
                 receipt.message_id)  # fmt: skip


def _display(draft: Draft, cfg: DeliverySettings, message: dict[str, Any], receipt: Receipt) -> None:
    """A display counts once in 5 s by append time, whatever the client repeats (R-002-33)."""
    last = message["displayed_seen"]
    if last is not None and draft.now - last < cfg.display_once_ms:
        draft.reason("delivery.display.repeat", "displayed within 5 s of the last one", receipt.receipt_id)
        return
    update(draft, receipt.message_id, displayed_seen=draft.now, displays=message["displays"] + 1)


def _start(draft: Draft, cfg: DeliverySettings, message_id: str, after: Held) -> None:
    """The attempt is out: from here count the 15 s to an assumed display and the 30 s to a resend."""
    # by our own time: the provider's may be wrong, or missing
    update(draft, message_id, sent_at=draft.now)
    data = {"message_id": message_id}
    if after is Held.SENT:
        draft.timer(f"{SILENCE}:{message_id}", draft.now + cfg.delivered_ms, data)
    if after is not Held.FAILED:
        draft.timer(f"{RESEND}:{message_id}", draft.now + cfg.displayed_ms, data)
    stop(draft, message_id, RETRY)


def _unknown(draft: Draft, cfg: DeliverySettings, message: dict[str, Any], receipt: Receipt) -> None:
    """Our sender can't tell, or was refused for now: not failed yet; repeated under the same dedup id (A13)."""
    message_id, row = receipt.message_id, row_of(message)
    if settled(message) or (message["attempt"] >= cfg.attempts_max and move(row, Event.FAILED) is row):
        draft.reason("delivery.send.answered", f"it is {row}: {receipt.reason}", receipt.receipt_id, message_id)
    elif message["attempt"] >= cfg.attempts_max:
        change(draft, cfg, message_id, Held.FAILED, receipt)
    else:
        # doubled: a channel that is down must not be met by all its messages every second
        delay = cfg.retry_ms * 2 ** (message["attempt"] - 1)
        update(draft, message_id, reason=receipt.reason)
        draft.timer(f"{RETRY}:{message_id}", draft.now + delay, {"message_id": message_id})
        publish(draft, message_id, message["state"], receipt)
        draft.reason("delivery.send.unknown", f"again in {delay} ms: {receipt.reason}", receipt.receipt_id, message_id)


def _ask_person(draft: Draft, message_id: str, message: dict[str, Any], reason: str) -> None:
    """A customer who can't be reached is a person's matter, once a session; nobody is asked over a follow-up."""
    others = draft.get("actions", "messages").items()
    asked = any(known != message_id and other["state"] == "failed" and other["session_id"] == message["session_id"]
                for known, other in others)  # fmt: skip
    if asked or message["kind"] == "follow_up" or draft.get("planning", "handover") is not None:
        return
    draft.emit("human.requests", HumanRequest(
        request_id=draft.new_id("hr"), session_id=message["session_id"], kind="handover", rule="delivery.failed",
        reason=f"message {message_id} could not be delivered: {reason or 'no reason given'}", requested_at=draft.now,
        context={"message_id": message_id, "attempt": message["attempt"], "template_id": message["template_id"]},
    ))  # fmt: skip
