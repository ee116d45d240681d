"""What feedback tests share: one conversation with the delivery and feedback rows; times are ms after T0."""

from __future__ import annotations

from typing import Any, Literal

from schemas.delivery import OutboundMessage
from schemas.events import ChannelEvent, HeartbeatBody, MessageBody, PresenceBody, RatingBody, RecallBody
from schemas.feedback import Health, Signal
from schemas.messages import Evidence, MessageRef, NormalizedMessage, TargetItem
from streams.processors import delivery, feedback
from tests.streams.conversation import T0, Conversation
from tests.streams.runtime.support import settings

WINDOW = 300_000
GRACE = 10_000
Kind = Literal["reply", "follow_up", "resend", "notice", "staff"]


class Talk(Conversation):
    """A conversation that is listened to; planning's and perception's parts are set by the test."""

    def __init__(self, conversation: str = "shop-1/web/li", **changed: Any) -> None:
        chosen = settings(**changed)
        super().__init__(delivery.row(chosen), feedback.row(chosen), conversation=conversation)
        self._events = 0

    def event(self, body: Any, at: int, occurred: int | None = None) -> None:
        """A channel event appended at `at`; `occurred` is the customer's clock, None for no clock."""
        self._events += 1
        shop, channel, sender = self.id.split("/")
        self.put("channel.events", ChannelEvent(
            id=f"e-{self._events}", event_id=f"ev-{self._events}", shop=shop, channel=channel, sender=sender,
            occurred_at=None if occurred is None else T0 + occurred, body=body,
        ), T0 + at)  # fmt: skip

    def says(
        self,
        at: int,
        intent: str = "inform",
        words: tuple[str, ...] = (),
        *,
        order: str | None = None,
        occurred: int | None = None,
        message_id: str = "",
    ) -> None:
        """The customer's message, and the reading that perception makes of it."""
        message_id = message_id or f"c-{at}"
        self.event(MessageBody(kind="message", message_id=message_id, text="..."), at, occurred)
        heard = {"message_id": message_id, "recalled": False}
        self.section("perception", messages={**self.get("perception", "messages"), message_id: heard})
        stamp = T0 + (at if occurred is None else occurred)
        self.put("messages.normalized", NormalizedMessage(
            ref=MessageRef(message_id=message_id, event_id=f"ev-{at}", session_id=self.session, at=stamp),
            intent=intent, confidence=0.9, language="zh", sentiment="neutral", text="...",
            evidence=tuple(Evidence(field="intent", value=word, start=0, end=len(word)) for word in words),
            target_item=TargetItem(order_id=order) if order else None,
        ), T0 + at)  # fmt: skip

    def recalls(self, message_id: str, at: int) -> None:
        """The customer takes a message back; perception marks it after this decision."""
        self.event(RecallBody(kind="recall", message_id=message_id), at)
        messages = self.get("perception", "messages")
        if message_id in messages:
            self.section("perception", messages={**messages, message_id: {**messages[message_id], "recalled": True}})

    def rates(self, score: int, at: int, occurred: int | None = None) -> None:
        """The customer rates."""
        self.event(RatingBody(kind="rating", score=score), at, occurred)

    def beats(self, at: int) -> None:
        """The customer's client is there."""
        self.event(HeartbeatBody(kind="heartbeat"), at)

    def leaves(self, at: int) -> None:
        """The customer's client goes."""
        self.event(PresenceBody(kind="presence", status="offline"), at)

    def answers(self, at: int, kind: Kind = "reply") -> None:
        """We send a message."""
        self.put("actions.outbound", OutboundMessage(
            message_id=f"m-{at}", session_id=self.session, kind=kind, template_id="x.y", language="zh", text="...",
        ), T0 + at)  # fmt: skip

    def section(self, name: str, **fields: Any) -> None:
        """Another processor's section says so."""
        self.state = {**self.state, name: {**self.state[name], **fields}}

    def flow(self, *flows: str) -> None:
        """Planning has these flows open, the last one active."""
        self.section("planning", flows=[
            {"flow": flow, "node": "ask_order", "plan_id": f"p-{flow}", "plan_version": 1, "waiting_for": "customer"}
            for flow in flows
        ])  # fmt: skip

    def later(self, at: int) -> None:
        """Time passes until `at`; what is due fires."""
        self.advance(T0 + at)

    @property
    def session(self) -> str:
        """The open session's id."""
        return str(self.get("session", "id"))

    def signals(self, kind: str) -> list[Signal]:
        """The signals of a kind, oldest first."""
        return [signal for signal in self.sent("feedback.signals") if signal.kind == kind]

    def health(self) -> list[Health]:
        """The scores, oldest first."""
        return self.sent("feedback.health")
