"""Transcripts of recordings, part by part, from any recognizer: late and out of order, each with its own time (B19).

POST /v1/channels/voice: a part or a list of at most 100. A part that is heard anew has a higher `revision`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from schemas.base import Id, KeyPart, Model, Share, Text
from schemas.events import Alternative, RawEvent
from streams.channels.json_body import accepted, items
from streams.channels.port import Channel, Door, Push, Taken
from streams.channels.times import stated
from streams.gateway.reading import read_model

NAME = "voice"
MAX_PARTS = 100


class Part(Model):
    """One piece of a recording as it was heard. An empty text says that something was said and not understood (B09)."""

    shop: KeyPart
    sender: KeyPart
    channel: KeyPart = Field(default=NAME, description="the conversation's channel, when the recording came by another")
    recording_id: Id
    part: int = Field(default=1, ge=1, le=100_000)
    revision: int = Field(default=1, ge=1, le=1_000)
    text: Text
    spoken_at: int | None = Field(default=None, description="when the part began: UTC, seconds, milliseconds or finer")
    confidence: Share | None = None
    alternatives: tuple[Alternative, ...] = Field(default=(), max_length=5)


def read(push: Push) -> Taken:
    """The parts as messages and edits. Raises RefusedError; then none of a list is taken."""
    events = tuple(_event(read_model(Part, one, where), where) for one, where in items(push.body, MAX_PARTS))
    return Taken(events, reply=accepted(events))


def _event(part: Part, where: str) -> RawEvent:
    at = stated(part.spoken_at, "spoken_at", where)
    message_id = f"{part.recording_id}:{part.part}"
    revised = "" if part.revision == 1 else f":{part.revision}"
    recording = {
        "kind": "voice", "ref": part.recording_id, "text": part.text, "confidence": part.confidence, "spoken_at": at,
        "alternatives": [one.model_dump() for one in part.alternatives],
    }  # fmt: skip
    body: dict[str, Any] = {"kind": "message", "message_id": message_id, "text": "", "attachments": [recording]}
    if revised:
        body = {"kind": "edit", "message_id": message_id, "text": part.text}
    data = {"id": f"{message_id}{revised}", "shop": part.shop, "channel": part.channel, "sender": part.sender,
            "occurred_at": at, "body": body}  # fmt: skip
    return read_model(RawEvent, data, where)


def channel(options: Mapping[str, Any]) -> Channel:
    """The adapter; it has no settings. Answers wait in the gateway's outbox."""
    Model.model_validate(options)
    return Channel(NAME, (Door("POST", "", read),))
