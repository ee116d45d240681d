"""What was read in pictures, as blocks of text with their boxes, from any recognizer: one event, a text per picture.

POST /v1/channels/ocr: `{"shop", "sender", "message_id", "images": [{"ref", "blocks": [{"text", "box"}]}]}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from schemas.base import Id, KeyPart, Model, Share, Text
from schemas.events import RawEvent
from streams.channels.json_body import accepted, items
from streams.channels.port import Channel, Door, Push, Taken
from streams.channels.times import stated
from streams.gateway.reading import read_model

NAME = "ocr"
MAX_MESSAGES = 20

Pixels = Annotated[float, Field(ge=0, le=1_000_000)]


class Block(Model):
    """A piece of text, and where it stands: left, top, width, height, in pixels."""

    text: Text
    box: tuple[Pixels, Pixels, Pixels, Pixels]
    confidence: Share | None = None


class Image(Model):
    """One picture, by its reference."""

    ref: Id
    blocks: tuple[Block, ...] = Field(default=(), max_length=500)


class Read(Model):
    """One message of a customer: pictures, and what was typed under them."""

    shop: KeyPart
    sender: KeyPart
    channel: KeyPart = Field(default=NAME, description="the conversation's channel, when the picture came by another")
    message_id: Id
    text: Text = ""
    sent_at: int | None = Field(default=None, description="when it was sent: UTC, seconds, milliseconds or finer")
    images: tuple[Image, ...] = Field(min_length=1, max_length=20)


def read(push: Push) -> Taken:
    """The messages. Raises RefusedError; then none of a list is taken."""
    events = tuple(_event(read_model(Read, one, where), where) for one, where in items(push.body, MAX_MESSAGES))
    return Taken(events, reply=accepted(events))


def _event(message: Read, where: str) -> RawEvent:
    files = [{"kind": "image", "ref": image.ref, "text": "\n".join(lines(image.blocks)),
              "confidence": _confidence(image.blocks)} for image in message.images]  # fmt: skip
    body = {"kind": "message", "message_id": message.message_id, "text": message.text, "attachments": files}
    data = {"id": message.message_id, "shop": message.shop, "channel": message.channel, "sender": message.sender,
            "occurred_at": stated(message.sent_at, "sent_at", where), "body": body}  # fmt: skip
    return read_model(RawEvent, data, where)


def lines(blocks: Sequence[Block]) -> list[str]:
    """The text as a person reads it: lines from top to bottom, blocks of a line from left to right.

    A block belongs to the line whose first block covers the block's middle.
    """
    found: list[tuple[float, list[Block]]] = []  # each with the lower edge of its first block
    for block in sorted((one for one in blocks if one.text.strip()), key=lambda one: (one.box[1], one.box[0])):
        if found and block.box[1] + block.box[3] / 2 < found[-1][0]:
            found[-1][1].append(block)
        else:
            found.append((block.box[1] + block.box[3], [block]))
    return [" ".join(one.text.strip() for one in sorted(line, key=lambda one: one.box[0])) for _, line in found]


def _confidence(blocks: Sequence[Block]) -> float | None:
    """The mean over characters: one doubtful stamp in a corner says little about a page."""
    known = [(len(one.text), one.confidence) for one in blocks if one.confidence is not None and one.text]
    total = sum(size for size, _ in known)
    return round(sum(size * confidence for size, confidence in known) / total, 4) if total else None


def channel(options: Mapping[str, Any]) -> Channel:
    """The adapter; it has no settings. Answers wait in the gateway's outbox."""
    Model.model_validate(options)
    return Channel(NAME, (Door("POST", "", read),))
