"""Perception: what a customer sent becomes one checked, masked message, and the state remembers what was heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.sessions import hold_session, open_session
from agents.understanding.lexicon import lexicon
from agents.understanding.normalize import first_fault, masked, normalized, unreadable
from agents.understanding.port import Context, Understanding
from agents.understanding.tone import language
from schemas.events import ChannelEvent, EditBody, MessageBody, RecallBody, Seal, UnsupportedBody, event_time
from schemas.messages import MessageRef, NormalizedMessage
from schemas.sections import KEPT_CHARS, HeardMessage, IntentStep
from schemas.step import Draft, Input, Step

REMEMBERED = 20  # messages, and links of the intent chain (R-002-12)
PREVIEW = 80

Sealer = Callable[[str, bytes, bytes], Seal]
"""`(conversation, plaintext, context) -> Seal`; the same three give the same seal at every replay (promise 5)."""


@dataclass(frozen=True, slots=True)
class PerceptionConfig:
    """Perception's own settings; times in milliseconds."""

    session_gap_ms: int = 1_800_000


def make_step(understanding: Understanding, sealer: Sealer, config: PerceptionConfig) -> Step:
    """The pure step for channel.events: messages and edits are read, recalls are marked, the rest is not for it."""

    def step(draft: Draft, cause: Input) -> None:
        body = cause.value.body
        if isinstance(body, RecallBody):
            _recall(draft, cause, body.message_id)
        elif isinstance(body, UnsupportedBody):  # kept in the register, and no word of the customer's (case B07)
            draft.reason("perception.unsupported", body.type, cause.id)
        elif isinstance(body, MessageBody | EditBody):
            revision = _revision(draft, cause, body)
            if revision is not None:
                _hear(draft, cause, body, revision)

    # An edit is heard like a message: what changes is the revision, and planning undoes the version before it.
    def _hear(draft: Draft, cause: Input, body: MessageBody | EditBody, revision: int) -> None:
        event: ChannelEvent = cause.value
        at, assumed = event_time(event.occurred_at, cause.time)
        session_id = hold_session(draft, cause, at, config.session_gap_ms)
        if assumed and event.occurred_at is not None:
            draft.reason("perception.time_assumed", "the customer's clock can't be right", event.event_id)
        ref = MessageRef(message_id=body.message_id, event_id=event.event_id, session_id=session_id, at=at,
                         revision=revision, time_assumed=assumed)  # fmt: skip
        message = _read(draft, cause, _raw_text(body, cause.clear), ref)
        _remember(draft, message)
        draft.emit("messages.normalized", message)
        draft.reason("perception.read", _in_words(message), body.message_id, event.event_id)

    def _read(draft: Draft, cause: Input, raw: str, ref: MessageRef) -> NormalizedMessage:
        def seal(plaintext: bytes) -> Seal:
            return sealer(draft.conversation, plaintext, f"{cause.id}|slots".encode())

        # Context comes from the state as it is now: a message that waits later is not read again (case B25).
        found = _tried(lambda: normalized(understanding.read(raw, context_of(draft)), raw, ref, seal))
        if isinstance(found, NormalizedMessage):
            return found
        draft.reason("perception.unreadable", found, ref.message_id)
        return unreadable(raw, ref, language(raw, context_of(draft)))

    return step


def _tried(read: Callable[[], NormalizedMessage]) -> NormalizedMessage | str:
    """The message, or why there is none: the reader can be exchanged, and whatever it does, a person answers."""
    try:
        return read()
    except ValidationError as error:
        return first_fault(error)
    except Exception as error:  # noqa: BLE001 (any reader's fault is told, in the register and by the alarm)
        return f"the reader failed: {type(error).__name__}"


def context_of(draft: Draft) -> Context:
    """What the active flow stands at. It may be older than the question that the customer answers (case B25)."""
    flows = draft.get("planning", "flows", default=())
    spoken = draft.get("perception", "language")
    if not flows:
        return Context(language=spoken)
    flow, node = flows[-1]["flow"], flows[-1]["node"]
    # While a tool or a reviewer is waited for, nothing was asked: a bare "1" must not be read as an answer.
    asked = flows[-1].get("waiting_for") == "customer"
    expects = next((kind for kind, names in lexicon().expects if names.search(node)), None) if asked else None
    return Context(flow, node, expects, spoken)


def _raw_text(body: MessageBody | EditBody, clear: Any) -> str:
    """What was typed, then what was said or stands in pictures: one semantic layer (R-002-02)."""
    said = body.model_dump() if not isinstance(clear, dict) else clear
    attached = [part.get("text", "") for part in said.get("attachments", ())]
    return "\n".join(text for text in (said.get("text", ""), *attached) if text)


def _revision(draft: Draft, cause: Input, body: MessageBody | EditBody) -> int | None:
    """The revision that this is, or None when there is nothing new to read."""
    known = draft.get("perception", "messages", body.message_id)
    edited = isinstance(body, EditBody)
    if known is None:
        return 2 if edited else 1  # an edit whose original we never had is still the second version
    if known["recalled"]:
        draft.reason("perception.recalled_before", "the customer had taken it back", body.message_id, cause.id)
        return None
    # A sealed text can't be compared by its mask: two phones may look the same. It is read again instead.
    same_text = cause.value.seal is None and len(body.text) <= KEPT_CHARS and known["text"] == masked(body.text)
    if not edited or same_text:
        draft.reason("perception.repeat", "this message was heard before", body.message_id, cause.id)
        return None
    return int(known["revision"]) + 1


def _recall(draft: Draft, cause: Input, message_id: str) -> None:
    """Mark the message (case B11). One that never came is marked, too: it may still come."""
    known = draft.get("perception", "messages", message_id)
    if known is not None and known["recalled"]:
        draft.reason("perception.repeat", "this message was recalled before", message_id, cause.id)
        return
    at, _ = event_time(cause.value.occurred_at, cause.time)
    if draft.get("session") is None:
        open_session(draft, cause, at)
    if known is None:
        spoken = draft.get("perception", "language") or "zh"
        heard = HeardMessage(message_id=message_id, event_id=cause.value.event_id, at=at, text="", intent="recalled",
                             language=spoken, recalled=True)  # fmt: skip
        _store(draft, heard)
    else:
        draft.set(True, "perception", "messages", message_id, "recalled")
    draft.reason("perception.recalled", "the customer took the message back", message_id, cause.id)


def _remember(draft: Draft, message: NormalizedMessage) -> None:
    ref = message.ref
    _store(draft, HeardMessage(message_id=ref.message_id, event_id=ref.event_id, at=ref.at,
                               text=message.text[:KEPT_CHARS], intent=message.intent, language=message.language,
                               revision=ref.revision))  # fmt: skip
    link = IntentStep(intent=message.intent, confidence=message.confidence, at=ref.at, message_id=ref.message_id)
    draft.set(link.model_dump(mode="json"), "perception", "intents", f"{ref.message_id}#{ref.revision}")
    chain = draft.get("perception", "intents")
    for oldest in list(chain)[: max(0, len(chain) - REMEMBERED)]:
        draft.delete("perception", "intents", oldest)
    # A number or an emoji has no language, so the reply keeps the one that was spoken last.
    if any(char.isalpha() for char in message.text):
        draft.set(message.language, "perception", "language")


def _store(draft: Draft, heard: HeardMessage) -> None:
    draft.set(heard.model_dump(mode="json"), "perception", "messages", heard.message_id)
    messages = draft.get("perception", "messages")
    for _ in range(len(messages) - REMEMBERED):
        # By their own time, not by arrival: transcripts come back out of order (case B19).
        oldest = min(messages.values(), key=lambda message: (message["at"], message["message_id"]))
        draft.delete("perception", "messages", oldest["message_id"])
        messages = draft.get("perception", "messages")


def _in_words(message: NormalizedMessage) -> str:
    """One sentence and its basis (R-000-03), masked like the message."""
    others = "".join(f", then {other.intent}" for other in message.secondary_intents)
    basis = ", ".join(f"{found.field}={found.value[:PREVIEW]}" for found in message.evidence[:8])
    return f"{message.intent} ({message.confidence:.2f}){others}; from {basis or 'no known words'}"
