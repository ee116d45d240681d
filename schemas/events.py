"""channel.raw and channel.events: what a channel reports, before and after the edge sealed it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import ConversationId, Id, KeyPart, Millis, Model, Name, Text, conversation_id

# A channel may report an event this long after it happened (design section 8); a clock that says more is wrong.
BEHIND_MS = 600_000


def event_time(occurred_at: int | None, appended_at: int) -> tuple[int, bool]:
    """The time that an event counts at, in milliseconds, and whether it had to be assumed (case D15).

    The customer's clock is believed when it is not ahead of the append time and at most ten minutes behind it.
    """
    if occurred_at is not None and appended_at - BEHIND_MS <= occurred_at <= appended_at:
        return occurred_at, False
    return appended_at, True


class Seal(Model):
    """A sensitive value under AES-256-GCM (promise 9): who has the key can open it, nobody else."""

    key_id: Id
    nonce: str = Field(description="base64, 12 bytes")
    sealed: str = Field(description="base64, ciphertext and tag; associated data is the conversation id")


class Attachment(Model):
    """A file by reference; the bytes stay where the channel keeps them."""

    kind: Literal["image", "voice", "video", "file", "location", "link"]
    ref: Id
    text: Text = Field(default="", description="OCR or transcript, masked")


class MessageBody(Model):
    """A customer's message. `text` is masked on channel.events and in clear on channel.raw."""

    kind: Literal["message"]
    message_id: Id
    text: Text
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=20)


class RecallBody(Model):
    """The customer took a message back (case B11)."""

    kind: Literal["recall"]
    message_id: Id


class EditBody(Model):
    """The customer changed a message; the text is the whole new revision."""

    kind: Literal["edit"]
    message_id: Id
    text: Text


class HeartbeatBody(Model):
    """The customer's client is connected."""

    kind: Literal["heartbeat"]


class PresenceBody(Model):
    """The customer came or went."""

    kind: Literal["presence"]
    status: Literal["online", "offline"]


class RatingBody(Model):
    """An explicit rating (R-002-42): 1 (worst) to 5, or a thumb as 1 or 5."""

    kind: Literal["rating"]
    score: int = Field(ge=1, le=5)
    message_id: Id | None = None
    text: Text = ""


class IdentityLinkBody(Model):
    """This conversation's customer is the one of `root`, another conversation id."""

    kind: Literal["identity_link"]
    root: ConversationId
    proof: Name = Field(description="how it is known, such as login or phone_code")


Body = Annotated[
    MessageBody | RecallBody | EditBody | HeartbeatBody | PresenceBody | RatingBody | IdentityLinkBody,
    Field(discriminator="kind"),
]


class RawEvent(Model):
    """channel.raw v1: an event of a foreign producer, in clear; also what a gateway is POSTed."""

    id: Id = Field(description="the producer's id: the same id of one sender is one event (A15, B01)")
    shop: KeyPart
    channel: KeyPart
    sender: KeyPart
    occurred_at: Millis | None = Field(default=None, description="the customer's clock, if it has one")
    body: Body

    @property
    def conversation(self) -> str:
        """`shop/channel/sender`."""
        return conversation_id(self.shop, self.channel, self.sender)


class ChannelEvent(RawEvent):
    """channel.events v1: the same event after intake: masked, with the clear body sealed beside it."""

    event_id: Id = Field(description="derived from conversation and producer id; same event, same id")
    seal: Seal | None = Field(default=None, description="the clear body as JSON, where it was masked")
