"""channel.raw and channel.events: what a channel reports, before and after the edge sealed it."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from schemas.base import (
    MAX_ID_CHARS,
    ConversationId,
    Id,
    KeyPart,
    Millis,
    Model,
    Name,
    Share,
    Text,
    conversation_id,
)

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


# What is no reference: the content itself, a place on the sender's own machine, or something that runs.
_NO_REFERENCE = re.compile(r"\s*(data|javascript|vbscript|file|blob|about):", re.IGNORECASE)


def _reference(value: str) -> str:
    if _NO_REFERENCE.match(value):
        message = "expected the file's id in its channel, or a URL where it is kept (no data:, file: or javascript:)"
        raise ValueError(message)
    return value


class Alternative(Model):
    """Another way in which a recording was heard."""

    text: Text
    confidence: Share | None = None


class Attachment(Model):
    """A file by reference; the bytes stay where the channel keeps them."""

    kind: Literal["image", "voice", "video", "file", "location", "link"]
    ref: Annotated[Id, AfterValidator(_reference)] = Field(description="the file's id in its channel, or its URL")
    text: Text = Field(default="", description="OCR or transcript, masked")
    confidence: Share | None = Field(default=None, description="the recognizer's own, of `text`")
    alternatives: tuple[Alternative, ...] = Field(default=(), max_length=5, description="masked like `text`")
    spoken_at: Millis | None = Field(default=None, description="when the recording began, not when it was read (B19)")


class MessageBody(Model):
    """A customer's message. `text` is masked on channel.events and in clear on channel.raw."""

    kind: Literal["message"]
    message_id: Id
    text: Text
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=20)

    @property
    def wordless(self) -> bool:
        """Files without any word typed, spoken or written in them (case B09)."""
        return bool(self.attachments) and not any(map(str.strip, (self.text, *(one.text for one in self.attachments))))


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


THUMBS = {"up": 5, "down": 1}


def _score_or_thumb(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name != "score"]
    schema["anyOf"] = [{"required": ["score"]}, {"required": ["thumb"]}]


class RatingBody(Model):
    """An explicit rating (R-002-42): a score of 1 (worst) to 5, or a thumb, which counts as 1 or 5."""

    model_config = ConfigDict(json_schema_extra=_score_or_thumb)

    kind: Literal["rating"]
    score: int = Field(ge=1, le=5)
    thumb: Literal["up", "down"] | None = None
    message_id: Id | None = Field(default=None, description="the message of ours that is rated; none: the session")
    text: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _thumb_is_a_score(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("thumb") not in ("up", "down"):
            return data
        score = THUMBS[data["thumb"]]
        if data.get("score", score) != score:
            message = f"thumb {data['thumb']} is a score of {score}: send one of the two"
            raise ValueError(message)
        return {**data, "score": score}


class IdentityLinkBody(Model):
    """This conversation's customer is the one of `root`, another conversation id (R-003-05).

    A linked conversation that names itself as its root ends its link.
    """

    kind: Literal["identity_link"]
    root: ConversationId
    proof: Name = Field(description="how it is known, such as login or phone_code")


class UnsupportedBody(Model):
    """Something that the channel reported and that is no word of the customer: it is kept, and nothing more (B07)."""

    kind: Literal["unsupported"]
    type: Id = Field(description="the channel's own name of it, such as `hologram` or `event.view_miniprogram`")


Body = Annotated[
    MessageBody
    | RecallBody
    | EditBody
    | HeartbeatBody
    | PresenceBody
    | RatingBody
    | IdentityLinkBody
    | UnsupportedBody,
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
    source: Id | None = Field(
        default=None, description="the CloudEvents source that `id` counts in, where the id is that envelope's"
    )

    @property
    def conversation(self) -> str:
        """`shop/channel/sender`."""
        return conversation_id(self.shop, self.channel, self.sender)


class Forwarded(Model):
    """How an event came from a linked conversation to its root, or, with a link that was refused, back (R-003-05)."""

    conversation: ConversationId = Field(description="who sent it on")
    since: int = Field(ge=1, description="version of the linked conversation's state that took the link")
    person: bool = Field(default=False, description="with a link: a person had the conversation, or was asked for")
    refused: Text = Field(default="", description="with a link that comes back: why the root did not take it")


class ChannelEvent(RawEvent):
    """channel.events v1: the same event after intake: masked, with the clear body sealed beside it."""

    event_id: Id = Field(description="derived from conversation and producer id; same event, same id")
    seal: Seal | None = Field(
        default=None, description="the clear body as JSON, where it was masked; under the key of shop/channel/sender"
    )
    forwarded: Forwarded | None = Field(default=None, description="not where it happened: the record's key is another")


def linked_id(conversation: str, message_id: str) -> str:
    """The name that a linked conversation's message has at its root: two channels may both have a message `m-1`."""
    named = f"{_tag(conversation)}.{message_id}"
    return named if len(named) <= MAX_ID_CHARS else f"{_tag(conversation)}.{hashlib.sha256(named.encode()).hexdigest()}"


def own_id(conversation: str, message_id: str) -> str:
    """The name that a message has in its own channel: `linked_id` undone, where it was not too long for that."""
    return message_id.removeprefix(f"{_tag(conversation)}.")


def _tag(conversation: str) -> str:
    return hashlib.sha256(conversation.encode()).hexdigest()[:10]
