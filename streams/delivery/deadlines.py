"""Deadlines of delivery: assume after 15 s, resend after 30 s, one follow-up after 2 min (R-002-30 to R-002-32)."""

from __future__ import annotations

from typing import Any

from schemas.delivery import Choice, OutboundMessage
from schemas.sections import person_owes
from schemas.step import Draft
from streams.delivery.messages import again, change, find, row_of, settled, update
from streams.delivery.settings import DeliverySettings
from streams.delivery.table import Event, Held, move

TEMPLATE = "delivery.follow_up"
MEANS = ("continue", "human", "stop")  # what the numbers of our own choices stand for, for planning
_TEXTS = {
    "zh": ("还需要我继续为您处理吗?请回复数字:", ("继续", "转人工", "不用了")),
    "en": ("Shall I go on with this? Please answer with a number:", ("Go on", "Talk to a person", "No, thanks")),
}


def silence(draft: Draft, cfg: DeliverySettings, message_id: str) -> None:
    """No delivered receipt in 15 s: it counts as displayed, and says that this is assumed (R-002-30, X5)."""
    message = find(draft, message_id)
    after = move(row_of(message), Event.SILENCE) if message else None
    if message is None or after is row_of(message):
        draft.reason("delivery.silence.answered", "a receipt came in time", message_id)
        return
    change(draft, cfg, message_id, Held.ASSUMED, reason=f"no delivered receipt in {cfg.delivered_ms} ms")


def resend(draft: Draft, cfg: DeliverySettings, message_id: str) -> None:
    """Not really displayed in 30 s: again, under the same message id (R-002-31).

    An assumed display stands in for a real one only if the customer was seen online since the send (X5).
    """
    message = find(draft, message_id)
    if message is None or row_of(message) in (Held.DISPLAYED, Held.READ, Held.FAILED):
        draft.reason("delivery.resend.needless", "it was displayed, or failed", message_id)
    elif (message.get("to") or draft.conversation).split("/")[1] in cfg.blind:
        draft.reason("delivery.resend.blind", "this channel never says what was displayed", message_id)
    elif message["assumed"] and _seen_since(draft, message["sent_at"]):
        draft.reason("delivery.resend.disarmed", "display is assumed, and the customer was online since", message_id)
    elif message["attempt"] >= cfg.attempts_max:
        draft.reason("delivery.resend.exhausted", f"{message['attempt']} attempts, none displayed", message_id)
    else:
        draft.emit("actions.outbound", again(message_id, message))
        draft.reason("delivery.resend", f"not displayed in {cfg.displayed_ms} ms: attempt {message['attempt'] + 1}",
                     message_id)  # fmt: skip


def retry(draft: Draft, message_id: str) -> None:
    """Our own send had no known outcome: again, unless a receipt told it meanwhile (A13)."""
    message = find(draft, message_id)
    if message is None or settled(message):
        draft.reason("delivery.send.answered", "a receipt came meanwhile", message_id)
        return
    draft.emit("actions.outbound", again(message_id, message))
    draft.reason("delivery.retry", f"attempt {message['attempt'] + 1} under the same message id", message_id)


def follow_up(draft: Draft, message_id: str) -> None:
    """Read and silent for 2 min: one follow-up with numbered choices, if it is the customer's turn (R-002-32)."""
    message = find(draft, message_id)
    obstacle = _obstacle(draft, message)
    if message is None or obstacle:
        draft.reason("delivery.follow_up.needless", obstacle, message_id)
        return
    # before it is emitted: one follow-up a message, whatever becomes of it
    update(draft, message_id, followed_up=True)
    reminder = _reminder(draft, message_id, message)
    draft.emit("actions.outbound", reminder)
    draft.reason("delivery.follow_up", "read, and no answer", message_id, reminder.message_id)


def _seen_since(draft: Draft, moment: int | None) -> bool:
    seen = draft.get("actions", "last_online")
    return seen is not None and moment is not None and seen > moment


def _obstacle(draft: Draft, message: dict[str, Any] | None) -> str:
    """Why no follow-up is due; empty when it is. Whoever waits for us or for a person is not reminded."""
    if message is None or message["followed_up"] or message["kind"] != "reply":
        return "followed up before, or not a reply"
    session, planning = draft.get("session"), draft.get("planning")
    if session is None or session["id"] != message["session_id"]:
        return "its session is over"
    if session["last_customer_at"] > message["queued_at"]:
        return "the customer has answered"
    if person_owes(planning) or draft.get("identity", "root") is not None:
        return "a person has it, or the root of its conversation"
    messages = draft.get("actions", "messages")
    if any(other["queued_at"] > message["queued_at"] for other in messages.values()):
        return "a later message went out"
    asked = message["choices"] or (planning["flows"] and planning["flows"][-1]["waiting_for"] == "customer")
    return "" if asked else "no answer is awaited"


def _reminder(draft: Draft, message_id: str, message: dict[str, Any]) -> OutboundMessage:
    language = "en" if message["language"] == "en" else "zh"
    question, labels = _TEXTS[language]
    offered = tuple(Choice(**choice) for choice in message["choices"])
    choices = offered or tuple(Choice(number=number, label=label) for number, label in enumerate(labels, 1))
    lines = [question, *(f"{choice.number}. {choice.label}" for choice in choices)]
    return OutboundMessage(
        message_id=draft.new_id("m"), session_id=message["session_id"], kind="follow_up", template_id=TEMPLATE,
        params={} if offered else {"means": list(MEANS)}, language=language, text="\n".join(lines), choices=choices,
        in_reply_to=message_id, to=message.get("to"),
    )  # fmt: skip
