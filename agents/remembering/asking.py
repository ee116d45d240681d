"""Asking a model what of a message persists, where the rules found nothing: nobody waits for it, and it may stay away.

The question is an effect and its answer an input, so that a replay asks nobody (promise 8). What it names is checked
against the message that it was shown; without an answer the rules alone have decided, and the register says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from agents.models.form import BrokenFormError
from agents.remembering import question, values
from agents.remembering.book import ONCE, Book
from agents.remembering.lexicon import rules
from agents.remembering.port import Wanted
from agents.remembering.preferences import MOST
from agents.remembering.proposals import KINDS, Refused, proposals
from agents.understanding.forged import FIELD
from agents.understanding.normalize import UNREADABLE
from schemas.events import Seal
from schemas.messages import NormalizedMessage
from schemas.tools import WRITER, ToolResult

KIND = "model"
CLIP = 200
SURE = 0.6  # a plain yes that was only guessed may be more than one
PLAIN = frozenset({"greeting", "thanks", "confirm", "deny", "stop", "human"})
_AGAIN = frozenset(KINDS) - frozenset(ONCE)

Sealer = Callable[[str, bytes, bytes], Seal]


@dataclass(frozen=True, slots=True)
class Asking:
    """Which model is asked; `model` empty: none. The time in milliseconds."""

    model: str = ""
    timeout_ms: int = 3_000
    most: int = 8  # questions of one conversation that are open


def ask(book: Book, message: NormalizedMessage, cfg: Asking) -> None:
    """Ask about a message in which the rules found nothing, where a model could find something."""
    draft, number = book.draft, message.ref.message_id
    if not cfg.model or draft.get("planning", "owner") == "human" or not _worth_asking(message):
        return
    if len(_open(book)) >= cfg.most:
        draft.reason("memory.model_behind", f"{cfg.most} questions are open: the rules alone", number)
        return
    effect = draft.new_id(KIND)
    # as long as the rules look, and without what neither the model nor the check of its answer needs
    shown = message.model_copy(update={"text": message.text[:MOST], "seal": None, "evidence": tuple(
        found for found in message.evidence if found.end <= MOST)})  # fmt: skip
    request = {"tool": WRITER, "message_id": number, "model": cfg.model, "prompt": question.VERSION,
               "messages": question.messages(shown.text), "message": shown.model_dump(mode="json"),
               "heads": _heads(book), "trace": book.trace}  # fmt: skip
    draft.effect(effect, KIND, key=effect, timeout_ms=cfg.timeout_ms, deadline=draft.now + cfg.timeout_ms,
                 request=request)  # fmt: skip
    draft.reason("memory.model_asked", f"the rules keep nothing of it; {cfg.model} is asked", number, effect)


def _heads(book: Book) -> dict[str, str]:
    """The last write of each key that a model may write again: another one at its answer was written since."""
    known: dict[str, Any] = book.draft.get("memory", "known", default={})
    return {key: entry["write_id"] for key, entry in known.items() if key.partition("/")[0] in _AGAIN}


def _worth_asking(message: NormalizedMessage) -> bool:
    """What plays somebody else is shown to no model (case E15), and a plain yes or hello holds nothing."""
    if UNREADABLE in message.marks or any(found.field == FIELD for found in message.evidence):
        return False
    plain = message.intent in PLAIN and message.confidence >= SURE and not message.secondary_intents
    return not plain and any(map(str.isalpha, message.text))


def _open(book: Book) -> dict[str, Any]:
    pending: dict[str, Any] = book.draft.get("pending", default={})
    return {name: one for name, one in pending.items() if one["request"].get("tool") == WRITER}


def withdrawn(book: Book, message_id: str) -> None:
    """What was asked about a message that is taken back, or said in other words, is of no use any more."""
    for effect, pending in _open(book).items():
        if pending["request"]["message_id"] == message_id:
            book.draft.settle(effect)
            book.draft.reason("memory.model_withdrawn", "the message is another, or none", message_id, effect)


def answered(book: Book, result: ToolResult, sealer: Sealer) -> None:
    """The outcome of a question: the first one counts. Anybody can publish one, so its form is checked again here."""
    draft, asked = book.draft, _open(book).get(result.call_id)
    if asked is None:
        draft.reason("memory.model_late", f"{result.status}: nobody waits for it", result.result_id)
        return
    draft.settle(result.call_id)
    book.trace = asked["request"]["trace"]  # the message's, so that its whole trace can be rolled back
    number = asked["request"]["message_id"]
    why = ""
    if result.status != "success":
        why = f"{result.status}: {result.error.code if result.error else 'no reason'}"
    else:
        try:
            _Answer(book, asked, result, sealer).keep(question.checked_facts(result.data.get("form")))
        except BrokenFormError as error:
            why = f"a broken form: {error}"
    if why:
        draft.reason("memory.model_absent", f"the rules alone: {why}"[:CLIP], number, result.result_id)


class _Answer:
    """One form, laid over what the rules and people have written."""

    def __init__(self, book: Book, asked: dict[str, Any], result: ToolResult, sealer: Sealer) -> None:
        self.book, self.asked, self.result, self.sealer = book, asked, result, sealer
        self.message = NormalizedMessage.model_validate_json(orjson.dumps(asked["request"]["message"]))
        self.id = self.message.ref.message_id

    def keep(self, facts: question.Facts) -> None:
        """Write what counts; what does not is named with why."""
        kept = 0
        for one in list(proposals(self.message, facts, self._seal)):
            refused = one if isinstance(one, Refused) else self._refused(one)
            if refused is not None:
                evidence = (self.id, self.result.result_id)
                self.book.draft.reason("memory.model_refused", f"{refused.kind}: {refused.why}", *evidence)
            elif isinstance(one, Wanted):
                kept += self._write(one)
        if not kept:
            self.book.draft.reason("memory.model_nothing", "nothing new is kept of it", self.id, self.result.result_id)

    def _write(self, wanted: Wanted) -> bool:
        """The customer said it; that a model read it, which one and by what protocol, is the trigger (R-004-08)."""
        request, value = self.asked["request"], wanted.value
        if wanted.kind == "preference":
            subject = next(one for one in rules().subjects if one.name == wanted.subject)
            value = values.preference(subject, self.book.before(wanted.key, self.id), wanted, self.message.language)
        why = f"{self.id}: memory.model {wanted.rule} by {request['model']} ({request['prompt']})"
        return self.book.write(wanted.key, value, "customer", why, message_id=self.id)

    def _refused(self, wanted: Wanted) -> Refused | None:
        """Rules and people win: what they wrote since stands, unless the customer said that before this message."""
        entry = self.book.entry(wanted.key)
        if entry is None:
            return None
        since = entry["write_id"] != self.asked["request"]["heads"].get(wanted.key)
        if since and not self._said_before(entry["message_id"]):
            return Refused(wanted.kind, f"{wanted.key} was written since")
        known = entry["value"] or {}
        if "named" in (wanted.value or {}) and "order_id" in known:
            return Refused(wanted.kind, "an order is known, and words for it are less")
        return None

    def _said_before(self, message_id: str | None) -> bool:
        heard = self.book.draft.get("perception", "messages", message_id or "")
        return heard is not None and message_id != self.id and heard["at"] < self.message.ref.at

    def _seal(self, plaintext: bytes) -> Seal:
        context = f"{self.id}#{self.message.ref.revision}|memory.model".encode()
        return self.sealer(self.book.draft.conversation, plaintext, context)
