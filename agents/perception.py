"""Perception: what a customer sent becomes one checked, masked message, and the state remembers what was heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from agents import remembered
from agents.context import context_of, looked_up
from agents.models import waiting
from agents.models.sight import Sight, sight
from agents.sessions import hold_session, open_session
from agents.understanding.normalize import CONTRADICTS, checked, first_fault, masked, normalized, unreadable
from agents.understanding.port import Context, Understanding
from agents.understanding.tone import language
from memory.cues import cites_past
from schemas.events import (
    ChannelEvent,
    EditBody,
    IdentityLinkBody,
    MessageBody,
    RecallBody,
    Seal,
    UnsupportedBody,
    event_time,
)
from schemas.messages import MessageRef, NormalizedMessage
from schemas.sections import KEPT_CHARS, HeardMessage, IntentStep
from schemas.step import Draft, Input, Step
from schemas.system import TimerFired
from schemas.tools import MODEL, RECALL, ToolResult

REMEMBERED = 20  # messages, and links of the intent chain (R-002-12)
PREVIEW = 80
REORDER_MS = 30_000  # a message that was said so much earlier than one that is here already is put before it (B19)
_ANSWERS = frozenset({"inform", "deny"})  # what only means something after what was said before it

Sealer = Callable[[str, bytes, bytes], Seal]
"""`(conversation, plaintext, context) -> Seal`; the same three give the same seal at every replay (promise 5)."""


@dataclass(frozen=True, slots=True)
class PerceptionConfig:
    """Perception's own settings; times in milliseconds."""

    session_gap_ms: int = 1_800_000
    utc_offset_minutes: int = 480  # the customers' clock: "yesterday" begins at their midnight
    asking: waiting.Asking = field(default_factory=waiting.Asking)  # no model, unless one is named
    recall_ms: int = 0  # the stores' time to answer when a customer cites the past (R-002-10); 0: they are not asked


def make_step(understanding: Understanding, sealer: Sealer, config: PerceptionConfig) -> Step:
    """The pure step: messages and edits are read, recalls are marked, a model's answers compared (promise 7)."""
    return _Listener(understanding, sealer, config).step


@dataclass(frozen=True, slots=True)
class _Heard:
    """A message as read; `ambiguous`: it points to something, and more than one thing fits."""

    message: NormalizedMessage
    ambiguous: bool = False
    cites: str | None = None  # words of the past, where nobody knows yet what they mean


@dataclass(frozen=True, slots=True)
class _Listener:
    """The step's parts, which are the same for every message."""

    understanding: Understanding
    sealer: Sealer
    config: PerceptionConfig

    def step(self, draft: Draft, cause: Input) -> None:
        """See make_step."""
        if isinstance(cause.value, ToolResult) and cause.value.tool == RECALL:
            self._recalled(draft, cause.value)
            return
        if not isinstance(cause.value, ChannelEvent):
            _go_on(draft, cause.value)
            return
        body = cause.value.body
        if isinstance(body, RecallBody):
            _recall(draft, cause, body.message_id)
        elif isinstance(body, IdentityLinkBody):  # what was said before it is told before it
            waiting.release(draft, _tell, "the conversation is linked")
        elif isinstance(body, UnsupportedBody):  # kept in the register, and no word of the customer's (case B07)
            draft.reason("perception.unsupported", body.type, cause.id)
        elif isinstance(body, MessageBody) and body.wordless:
            _wordless(draft, cause, body)
        elif isinstance(body, MessageBody | EditBody):
            revision = _revision(draft, cause, body)
            if revision is not None:
                self._hear(draft, cause, body, revision)

    # An edit is heard like a message: what changes is the revision, and planning undoes the version before it.
    def _hear(self, draft: Draft, cause: Input, body: MessageBody | EditBody, revision: int) -> None:
        event: ChannelEvent = cause.value
        at, assumed = event_time(event.occurred_at, cause.time)
        session_id = hold_session(draft, cause, at, self.config.session_gap_ms)
        if assumed and event.occurred_at is not None:
            draft.reason("perception.time_assumed", "the customer's clock can't be right", event.event_id)
        ref = MessageRef(message_id=body.message_id, event_id=event.event_id, session_id=session_id, at=at,
                         revision=revision, time_assumed=assumed)  # fmt: skip
        later = _said_later(draft, ref)
        self._pass_on(draft, self._read(draft, cause, _raw_text(body, cause.clear), ref, ("late",) if later else ()))
        # In the order in which they were said: what came too early is read once more, as a new revision.
        for one in later:
            again = ref.model_copy(update={"message_id": one["message_id"], "event_id": one["event_id"],
                                           "at": one["at"], "revision": one["revision"] + 1})  # fmt: skip
            draft.reason("perception.reordered", f"{ref.message_id} was said before it", one["message_id"], cause.id)
            self._pass_on(draft, self._read(draft, cause, one["text"], again, ("late",)))

    def _pass_on(self, draft: Draft, heard: _Heard) -> None:
        """Told at once, or held for the stores or a model: remembered either way, so that a repeat is known as one."""
        message, person = heard.message, _with_person(draft)
        asks = heard.cites and not person and not waiting.at_once(message)
        if asks:
            draft.reason("memory.recall", f"cites the past: {heard.cites}", message.ref.message_id)
        seen = None if asks else self._doubtful(draft, message, ambiguous=heard.ambiguous)
        if not waiting.pass_on(draft, message, self.config.asking, _tell, seen, by_person=person,
                               recall_ms=self.config.recall_ms if asks else 0):  # fmt: skip
            _remember(draft, message)

    def _doubtful(self, draft: Draft, message: NormalizedMessage, *, ambiguous: bool) -> Sight | None:
        """What a model is shown, where one could help (R-003-06)."""
        asked = context_of(draft).expects or ""
        held = waiting.worth_asking(message, self.config.asking, ambiguous=ambiguous, asked=bool(asked),
                                    by_person=_with_person(draft))  # fmt: skip
        return sight(draft, message, asked) if held else None

    def _recalled(self, draft: Draft, result: ToolResult) -> None:
        def doubtful(message: NormalizedMessage, ambiguous: bool) -> Sight | None:  # noqa: FBT001 (see waiting.Doubtful)
            return self._doubtful(draft, message, ambiguous=ambiguous)

        waiting.recalled(draft, result, self.config.asking, _tell, doubtful)

    def _context(self, draft: Draft, ref: MessageRef) -> Context:
        return replace(context_of(draft), at=ref.at, zone=self.config.utc_offset_minutes)

    def _read(self, draft: Draft, cause: Input, raw: str, ref: MessageRef, marks: tuple[str, ...]) -> _Heard:
        def seal(plaintext: bytes) -> Seal:
            return self.sealer(draft.conversation, plaintext, f"{cause.id}|slots".encode())

        def read() -> _Heard:
            # Context comes from the state as it is now: a message that waits later is not read again (case B25).
            cited = cites_past(raw) if self.config.recall_ms else None
            quiet = cited and remembered.quiet(draft)
            reading = self.understanding.read(raw, self._context(draft, ref))
            seen = looked_up(draft, reading, raw, ref.message_id, far=not cited or bool(quiet))
            pointed = ("resolved",) if seen.status == "filled" else ()
            reading, found = checked(seen.reading, has_order=_has_order(draft))
            message = normalized(reading, raw, ref, seal, (*marks, *pointed, *found))
            if cited and seen.status not in ("named", "filled") and quiet:
                draft.reason("memory.recall_unavailable", f"not asked again so soon: {quiet}", ref.message_id)
                cited = None
            return _Heard(message, seen.status == "ambiguous", None if seen.status in ("named", "filled") else cited)

        heard = _tried(read)
        if isinstance(heard, _Heard):
            return heard
        draft.reason("perception.unreadable", heard, ref.message_id)
        return _Heard(unreadable(raw, ref, language(raw, context_of(draft))))


def _tried(read: Callable[[], _Heard]) -> _Heard | str:
    """The message, or why there is none: the reader can be exchanged, and whatever it does, a person answers."""
    try:
        return read()
    except ValidationError as error:
        return first_fault(error)
    except Exception as error:  # noqa: BLE001 (any reader's fault is told, in the register and by the alarm)
        return f"the reader failed: {type(error).__name__}"


def _with_person(draft: Draft) -> bool:
    return bool(draft.get("planning", "owner") == "human")


def _has_order(draft: Draft) -> bool:
    """A flow under way knows its order, so a wish without one is no incomplete one."""
    return any(flow["slots"].get("order_id") for flow in draft.get("planning", "flows", default=()))


def _said_later(draft: Draft, ref: MessageRef) -> list[dict[str, Any]]:
    """Answers that are here already and were said just after this message (case B19).

    Only those that can be read again as they stand: what was masked is not in the state, and a yes counts once.
    """
    if ref.revision > 1 or ref.time_assumed:
        return []
    messages = draft.get("perception", "messages").values()
    later = [one for one in messages if ref.at < one["at"] <= ref.at + REORDER_MS and not one["recalled"]
             and one["intent"] in _ANSWERS and "*" not in one["text"]]  # fmt: skip
    return sorted(later, key=lambda one: (one["at"], one["message_id"]))


def _go_on(draft: Draft, value: object) -> None:
    """What messages were held for: a model's answer, or the deadline in its place."""
    if isinstance(value, ToolResult) and value.tool == MODEL:
        waiting.answered(draft, value, _tell)
    elif isinstance(value, TimerFired) and value.name == waiting.TIMER:
        waiting.overdue(draft, _tell)


def _tell(draft: Draft, message: NormalizedMessage) -> None:
    _remember(draft, message)
    draft.emit("messages.normalized", message)
    draft.reason("perception.read", _in_words(message), message.ref.message_id, message.ref.event_id)


def _wordless(draft: Draft, cause: Input, body: MessageBody) -> None:
    """A recording or a picture without words is no turn: planning asks for words (case B09)."""
    at, _ = event_time(cause.value.occurred_at, cause.time)
    if draft.get("session") is None:
        open_session(draft, cause, at)
    draft.reason("perception.wordless", ", ".join(part.kind for part in body.attachments), body.message_id, cause.id)


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
    waiting.withdrawn(draft, message_id)
    waiting.proceed(draft, _tell)
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
    link = IntentStep(intent=message.intent, confidence=message.confidence, at=ref.at, message_id=ref.message_id,
                      return_words=message.return_words, contradicted=CONTRADICTS in message.marks)  # fmt: skip
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
    others += "".join(f"; {mark.replace('_', ' ')}" for mark in message.marks)
    basis = ", ".join(f"{found.field}={found.value[:PREVIEW]}" for found in message.evidence[:8])
    return f"{message.intent} ({message.confidence:.2f}){others}; from {basis or 'no known words'}"
