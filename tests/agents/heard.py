"""A conversation's perception step, driven by channel events on a time that the test sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from agents.perception import PerceptionConfig, make_step
from agents.understanding.embedded import embedded
from agents.understanding.port import Understanding
from memory.bus import empty
from memory.sealing import MemoryKeyStore, open_seal, seal
from schemas.events import Attachment, Body, ChannelEvent, EditBody, MessageBody, RawEvent, RecallBody, Seal
from schemas.messages import NormalizedMessage
from schemas.state import ConversationState
from schemas.step import Decision, Draft, Input
from streams.intake import intake

T0 = 1_767_578_400_000
RULES = embedded()


class Heard:
    """The state of one conversation, and what its last event led to."""

    def __init__(self, understanding: Understanding = RULES, sender: str = "u-1") -> None:
        self.keys = MemoryKeyStore()
        self.sender = sender
        self.id = f"demo/web/{sender}"
        self.step = make_step(understanding, self._seal, PerceptionConfig())
        self.state: Mapping[str, Any] = empty(self.id)
        self.last: Decision
        self._count = 0

    def _seal(self, conversation: str, plaintext: bytes, context: bytes) -> Seal:
        return seal(self.keys, conversation, plaintext, context=context)

    def event(self, body: Body, event_id: str | None = None, occurred_at: int | None = None) -> ChannelEvent:
        """The event as it came through the edge: masked, with its clear body sealed."""
        self._count += 1
        raw = RawEvent(id=event_id or f"p-{self._count}", shop="demo", channel="web", sender=self.sender,
                       occurred_at=occurred_at, body=body)  # fmt: skip
        return intake(raw, self.keys)

    def put(self, body: Body, at: int = T0, **fields: Any) -> NormalizedMessage | None:
        """Decide one event appended at `at`; the message that was emitted, if any."""
        event = self.event(body, **fields)
        opened = open_seal(self.keys, event.seal, self.id) if event.seal else None
        cause = Input("channel.events", 0, self._count, at, self.id, event.event_id, "channel.events", event,
                      clear=orjson.loads(opened) if opened else None)  # fmt: skip
        draft = Draft(self.state, cause)
        self.step(draft, cause)
        self.last = draft.finish()
        self.state = {**self.last.state, "version": draft.version, "now": draft.now}
        ConversationState.model_validate_json(orjson.dumps(self.state))
        messages = [emit.value for emit in self.last.emits if isinstance(emit.value, NormalizedMessage)]
        return messages[0] if messages else None

    def say(self, text: str, message_id: str = "m-1", at: int = T0, **fields: Any) -> NormalizedMessage | None:
        """A customer's message."""
        return self.put(MessageBody(kind="message", message_id=message_id, text=text), at, **fields)

    def read(self, text: str, message_id: str = "m-1", at: int = T0, **fields: Any) -> NormalizedMessage:
        """A customer's message that must be read."""
        message = self.say(text, message_id, at, **fields)
        assert message is not None
        return message

    def attach(self, kind: Any, text: str, message_id: str = "m-1") -> NormalizedMessage | None:
        """A message with one attachment and nothing typed."""
        part = Attachment(kind=kind, ref="f-1", text=text)
        return self.put(MessageBody(kind="message", message_id=message_id, text="", attachments=(part,)))

    def edit(self, text: str, message_id: str = "m-1", at: int = T0 + 1_000) -> NormalizedMessage | None:
        """The customer changes a message."""
        return self.put(EditBody(kind="edit", message_id=message_id, text=text), at)

    def recall(self, message_id: str = "m-1", at: int = T0 + 2_000) -> NormalizedMessage | None:
        """The customer takes a message back."""
        return self.put(RecallBody(kind="recall", message_id=message_id), at)

    def rules(self) -> list[str]:
        """The ids of the last decision's reasons."""
        return [rule for rule, _, _ in self.last.reasons]

    def message(self, message_id: str = "m-1") -> dict[str, Any]:
        """What the state remembers of a message."""
        return dict(self.state["perception"]["messages"][message_id])
