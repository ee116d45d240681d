"""What delivery tests share: one conversation with the delivery row, and short ways to send and report."""

from __future__ import annotations

from typing import Any, Literal

from schemas.delivery import Choice, DeliveryStatus, OutboundMessage, Receipt
from schemas.events import ChannelEvent, HeartbeatBody, MessageBody, PresenceBody
from streams.processors import delivery
from tests.streams.conversation import T0, Conversation
from tests.streams.runtime.support import settings

Reported = Literal["queued", "sent", "delivered", "displayed", "read", "failed"]
Source = Literal["sender", "vendor", "client"]


class Chat(Conversation):
    """A conversation with delivery at work; times are milliseconds after T0."""

    def __init__(self) -> None:
        super().__init__(delivery.row(settings()))
        self._receipts = 0

    def reply(self, message_id: str = "m-1", at: int = 0, **fields: Any) -> OutboundMessage:
        """Planning publishes a reply."""
        message = OutboundMessage(**{
            "message_id": message_id, "session_id": "s-1", "kind": "reply", "template_id": "refund.asked",
            "language": "zh", "text": "请问订单号是多少?", **fields,
        })  # fmt: skip
        self.put("actions.outbound", message, T0 + at)
        return message

    def receipt(
        self,
        state: Reported,
        at: int,
        *,
        ts: int | None = None,
        message_id: str = "m-1",
        attempt: int | None = 1,
        source: Source = "vendor",
        **fields: Any,
    ) -> None:
        """A receipt is appended at `at`; `ts` is the provider's time."""
        self._receipts += 1
        receipt = Receipt(
            receipt_id=f"rc-{self._receipts}", message_id=message_id, attempt=attempt, state=state, source=source,
            occurred_at=None if ts is None else T0 + ts, **fields,
        )  # fmt: skip
        self.put("delivery.receipts", receipt, T0 + at)

    def sent_by_us(self, at: int, message_id: str = "m-1", attempt: int = 1) -> None:
        """Our sender reports that the channel took it."""
        self.receipt("sent", at, message_id=message_id, attempt=attempt, source="sender")

    def customer(self, at: int, kind: str = "message") -> None:
        """The customer writes, beats, comes or goes."""
        body: Any = {
            "message": MessageBody(kind="message", message_id=f"c-{at}", text="OD123456"),
            "heartbeat": HeartbeatBody(kind="heartbeat"),
            "online": PresenceBody(kind="presence", status="online"),
            "offline": PresenceBody(kind="presence", status="offline"),
        }[kind]
        self.put("channel.events", ChannelEvent(
            id=f"e-{at}", event_id=f"ev-{at}", shop="shop-1", channel="web", sender="li", body=body,
        ), T0 + at)  # fmt: skip
        if kind == "message" and self.state["session"]:
            self.state = {**self.state, "session": {**self.state["session"], "last_customer_at": T0 + at}}

    def waits(self, waiting_for: str = "customer") -> None:
        """Planning has a flow open that waits for somebody."""
        flow = {"flow": "refund", "node": "ask_order", "plan_id": "p-1", "plan_version": 1, "waiting_for": waiting_for}
        self.planning(flows=[flow])

    def planning(self, **fields: Any) -> None:
        """Planning's section says so."""
        self.state = {**self.state, "planning": {**self.state["planning"], **fields}}

    def later(self, at: int) -> None:
        """Time passes until `at`; what is due fires."""
        self.advance(T0 + at)

    def message(self, message_id: str = "m-1") -> Any:
        """The message as the state has it."""
        return self.get("actions", "messages", message_id)

    def held(self, message_id: str = "m-1") -> tuple[str, bool]:
        """State and whether it is assumed."""
        message = self.message(message_id)
        return message["state"], message["assumed"]

    def statuses(self, message_id: str = "m-1") -> list[DeliveryStatus]:
        """What delivery.states says of the message."""
        return [status for status in self.sent("delivery.states") if status.message_id == message_id]

    def outbound(self, kind: str) -> list[OutboundMessage]:
        """What delivery itself put on actions.outbound."""
        return [message for message in self.sent("actions.outbound") if message.kind == kind]

    def sends(self) -> list[str]:
        """Declared sends that have no outcome yet."""
        return sorted(self.state["pending"])


YES_NO = (Choice(number=1, label="是"), Choice(number=2, label="否"))
