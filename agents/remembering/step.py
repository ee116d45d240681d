"""The two memory steps, which write what persists of a turn into the register.

Hearing runs before planning and keeps what a message says, so that an answer can cite the write; the memory step runs
after all others and keeps what they decided. A tool's answer never speaks here: of a decision that follows from one,
only names of our own files, order numbers and amounts are kept (R-004-09).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agents.remembering import asking, values
from agents.remembering.asking import Asking, Sealer
from agents.remembering.book import Book
from agents.remembering.lexicon import rules
from agents.remembering.port import Remembering, Value, Wanted
from agents.remembering.preferences import preferences
from schemas.delivery import OutboundMessage
from schemas.events import ChannelEvent, RecallBody, Seal
from schemas.messages import Address, NormalizedMessage
from schemas.people import HumanDecision
from schemas.step import Draft, Input, Step, same
from schemas.tools import WRITER, ToolResult

INPUTS = ("channel.events", "messages.normalized", "tools.results", "human.decisions", "timers.fired")
HEARD = ("messages.normalized",)
SURE = 0.6  # a complaint that was only guessed is none
FORGED = "forged_text"
NO_MODEL = Asking()


def by_rules(message: NormalizedMessage) -> Sequence[Wanted]:
    """The embedded reader: preferences by rule, up to where the message begins to quote somebody else (case E15)."""
    quoted = min((one.start for one in message.evidence if one.field == FORGED), default=len(message.text))
    return preferences(message.text[:quoted])


def make_hearing(sealer: Sealer, remembering: Remembering = by_rules) -> Step:
    """The pure step that keeps what a message says.

    `sealer` seals an address under the conversation's key, the same at every replay.
    """

    def step(draft: Draft, cause: Input) -> None:
        if isinstance(cause.value, NormalizedMessage):
            _Heard(Book(draft), cause.value, remembering, sealer).keep()

    return step


def make_step(sealer: Sealer, remembering: Remembering = by_rules, cfg: Asking = NO_MODEL) -> Step:
    """The pure step that keeps what was decided, and what was taken back; `sealer` as above.

    Where the rules keep nothing of a message, the model of `cfg` is asked; nothing waits for it.
    """

    def step(draft: Draft, cause: Input) -> None:
        book, value = Book(draft), cause.value
        if isinstance(value, NormalizedMessage):
            asking.withdrawn(book, value.ref.message_id)
            # here and not in hearing: whether a person has the conversation is decided between the two
            if cfg.model and not _Heard(book, value, remembering, sealer).tells():
                asking.ask(book, value, cfg)
        elif isinstance(value, ToolResult) and value.tool == WRITER:
            asking.answered(book, value, sealer)
        elif isinstance(value, ChannelEvent) and isinstance(value.body, RecallBody):
            asking.withdrawn(book, value.body.message_id)
            _taken_back(book, value.body.message_id)
        elif isinstance(value, HumanDecision) and value.kind == "memory":
            _set(book, value)
        elif isinstance(value, HumanDecision) and value.kind == "takeover":
            _handled(book, value)
        _ended(book, sealer)
        _promised(book)

    return step


class _Heard:
    """One customer message."""

    def __init__(self, book: Book, message: NormalizedMessage, remembering: Remembering, sealer: Sealer) -> None:
        self.book, self.message, self.sealer = book, message, sealer
        self.remembering = remembering
        self.id = message.ref.message_id

    def tells(self) -> bool:
        """Whether the rules find anything that persists."""
        return any(True for _ in self._told())

    def keep(self) -> None:
        """Write what persists, and take back what an edit no longer says."""
        told = {key: (value, rule) for key, value, rule in self._told()}
        if self.message.ref.revision > 1:
            for key in said_by(self.book, self.id):
                if key not in told:
                    self.book.take_back(key, "customer", f"{self.id}: memory.said_otherwise")
            self.book.unsay_behind(self.id, "said otherwise")
        for key, (value, rule) in told.items():
            self.book.write(key, value, "customer", f"{self.id}: {rule}", message_id=self.id)
        self._anchor()

    def _told(self) -> Iterator[tuple[str, Value | None, str]]:
        message, language = self.message, self.message.language
        subjects = {subject.name: subject for subject in rules().subjects}
        for wanted in self.remembering(message):
            if wanted.kind == "preference" and wanted.subject in subjects:
                known = self.book.before(wanted.key, self.id)
                yield wanted.key, values.preference(subjects[wanted.subject], known, wanted, language), wanted.rule
            else:
                yield wanted.key, wanted.value, wanted.rule
        order = message.target_item.order_id if message.target_item else None
        if message.address is not None:
            given = values.address(message.address, message.seal, self._seal, language, order)
            if given is not None:
                yield "address/delivery", given, "address.given"
        wishes = [
            (message.intent, message.confidence),
            *((one.intent, one.confidence) for one in message.secondary_intents),
        ]
        if any(intent == "complaint" and confidence >= SURE for intent, confidence in wishes):
            yield f"complaint/{values.short(self.id)}", values.complaint(message), "complaint.told"
        concerned = values.item(message.target_item, language) if message.target_item else None
        if concerned is not None and "order_id" in concerned:
            yield "item/current", concerned, "item.named"

    def _seal(self, plaintext: bytes) -> Seal:
        return self.sealer(
            self.book.draft.conversation, plaintext, f"{self.id}#{self.message.ref.revision}|memory".encode()
        )

    def _anchor(self) -> None:
        """What the conversation is about now (R-002-12)."""
        target = self.message.target_item
        fields = target.model_dump(exclude_none=True) if target else {}
        if not fields:
            return
        known: dict[str, Any] = self.book.draft.get("memory", "anchor", default={})
        # Another order is another thing: its colour and size are not those of the one before.
        kept = {} if fields.get("order_id", known.get("order_id")) != known.get("order_id") else known
        anchor = {**kept, **fields, "message_id": self.id, "at": self.message.ref.at}
        if not same(
            {**kept, **fields}, {name: part for name, part in known.items() if name not in ("message_id", "at")}
        ):
            self.book.draft.set(anchor, "memory", "anchor")
            self.book.draft.reason(
                "memory.anchor", ", ".join(f"{name}={part}" for name, part in fields.items()), self.id
            )


def said_by(book: Book, message_id: str) -> list[str]:
    """The keys whose current value comes from the message."""
    known: dict[str, Any] = book.draft.get("memory", "known", default={})
    return [key for key, entry in known.items() if entry["message_id"] == message_id]


def _taken_back(book: Book, message_id: str) -> None:
    book.unsay_behind(message_id, "recalled")
    for key in said_by(book, message_id):
        book.take_back(key, "customer", f"{message_id}: memory.recalled")


def _set(book: Book, decision: HumanDecision) -> None:
    what = f"rollback of {decision.undone_trace}" if decision.undone_trace else "set"
    why = f"{decision.decision_id}: {what} by {decision.by}"
    for wanted in decision.memory:
        refused = book.set_by_staff(wanted, why)
        if refused is not None:
            book.draft.reason("memory.refused", refused, decision.decision_id)


def _handled(book: Book, decision: HumanDecision) -> None:
    """Who took the conversation over has its open complaints in hand."""
    known: dict[str, Any] = book.draft.get("memory", "known", default={})
    for key, entry in list(known.items()):
        value = entry["value"]
        if key.startswith("complaint/") and value is not None and value.get("handled_by") is None:
            book.write(key, {**value, "handled_by": decision.by}, "staff", f"{decision.decision_id}: memory.handled",
                       message_id=None)  # fmt: skip


def _ended(book: Book, sealer: Sealer) -> None:
    """A task that ended in this decision is an earlier problem with its solution from now on."""
    draft = book.draft
    ended = draft.get("planning", "last_done")
    if (
        ended is None
        or same(ended, (draft.origin["planning"].get("last_done")))
        or ended["status"] not in rules().outcomes
    ):
        return
    if ended["flow"] in rules().quiet_flows:
        return
    flow: dict[str, Any] = next(
        (one for one in draft.origin["planning"]["flows"] if one["plan_id"] == ended["plan_id"]), {}
    )
    language = flow.get("language") or draft.get("perception", "language") or "zh"
    value = values.problem(ended, flow.get("slots", {}), language)
    book.write(f"problem/{ended['plan_id']}", value, "task_summary", f"{ended['plan_id']}: memory.task_ended")
    if ended["status"] == "done" and flow.get("slots", {}).get("address"):
        _used(book, flow, ended, language, sealer)


def _used(book: Book, flow: dict[str, Any], ended: dict[str, Any], language: str, sealer: Sealer) -> None:
    """The address that a task was carried out with, where the customer gave it in words that nobody took for one."""
    slots, plan_id = flow["slots"], ended["plan_id"]

    def seal(plaintext: bytes) -> Seal:
        return sealer(book.draft.conversation, plaintext, f"{plan_id}|memory".encode())

    sealed = Seal.model_validate(flow["seal"]) if flow.get("seal") else None
    given = Address(text=slots["address"], phone=slots.get("phone"))
    value = values.address(given, sealed, seal, language, values.identifier(ended.get("order_id")))
    known = book.value("address/delivery")
    if value is not None and (known or {}).get("text") != value["text"]:
        book.write("address/delivery", value, "task_summary", f"{plan_id}: memory.task_ended")


def _promised(book: Book) -> None:
    """What was promised to the customer in this decision: by an approved template, or in a colleague's words."""
    for emit in list(book.draft.emits):
        message = emit.value
        if not isinstance(message, OutboundMessage) or message.attempt > 1 or message.kind == "resend":
            continue
        if message.template_id in rules().promises:
            value = values.promise(message.template_id, message.params, message.language)
            book.write(
                f"promise/{message.message_id}", value, "assistant", f"{message.message_id}: {message.template_id}"
            )
        elif message.kind == "staff":
            found = rules().staff_promises.search(message.text)
            if found:
                value = values.staff_promise(found[0], message.language)
                book.write(f"promise/{message.message_id}", value, "staff", f"{message.message_id}: promise.said")
