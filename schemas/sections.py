"""The sections of a conversation's state; each is written by the processor that its docstring names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from schemas.base import ConversationId, Id, Json, KeyPart, Model, Name, Share, Text
from schemas.delivery import Choice, DeliveryState, EvidenceRef, Receipt

# Of a text that the state keeps: windows need no more, the topic has the whole text, and a customer
# who writes 20,000 characters fifty times must not make a state that no topic takes.
KEPT_CHARS = 1_000


class SessionState(Model):
    """Perception: the stretch of the conversation that is open now (a new one after 30 min of silence)."""

    id: Id = Field(description="UUIDv7 of its first input's append time")
    number: int = Field(ge=1)
    shop: KeyPart
    channel: KeyPart
    sender: KeyPart
    started: int
    last_customer_at: int


class HeardMessage(Model):
    """Perception: one of the last customer messages."""

    message_id: Id
    event_id: Id
    at: int
    text: Text
    intent: Name
    language: str
    revision: int = 1
    recalled: bool = False


class IntentStep(Model):
    """Perception: one link of the intent chain (R-002-12)."""

    intent: Name
    confidence: Share
    at: int
    message_id: Id
    return_words: bool = Field(default=False, description="the customer used words of returning (R-000-18)")
    contradicted: bool = Field(default=False, description="intent and return words do not fit; confidence is lower")


class HeldMessage(Model):
    """Perception: a message that is read and not told yet: it, or one before it, waits for a model."""

    message: dict[str, Json] = Field(description="the NormalizedMessage, by the embedded reading or after the model's")
    effect: Id | None = Field(default=None, description="the question that it waits for; null: it waits for its turn")
    deadline: int = Field(description="then it goes on without the model")
    shown: tuple[Text, ...] = Field(default=(), description="orders that the model was shown beside the message")
    asked: bool = Field(default=False, description="a flow had asked the customer for something")


class LinkedState(Model):
    """Identity: a conversation whose customer messages come here."""

    since: int = Field(ge=1, description="version of its state that took the link")
    at: int
    proof: Name


class IdentityState(Model):
    """Identity: whose customer this is; missing in the state while there is no link (R-003-05)."""

    root: ConversationId | None = Field(default=None, description="where this customer's messages go")
    since: int = Field(default=0, ge=0, description="version of the state that took the link; messages before it stay")
    proof: Name | None = None
    returns_to: ConversationId | None = Field(
        default=None, description="the last root: receipts of its messages, shown in this channel, go back to it"
    )
    linked: dict[str, LinkedState] = Field(default={}, description="conversations that have this one as their root")
    answer_at: ConversationId | None = Field(
        default=None, description="the linked conversation where the customer wrote last; none: here"
    )


class PerceptionState(Model):
    """What was heard: the last 20 messages and intents, oldest first."""

    messages: dict[str, HeardMessage] = {}
    intents: dict[str, IntentStep] = Field(
        default={}, description="`message id#revision` to its reading: one link is one change in a diff"
    )
    language: str | None = None
    held: dict[str, HeldMessage] = Field(default={}, description="message id to what is read and not told, in order")


class KnownValue(Model):
    """Memory: what is known under one key of this customer, by its last write (read then write, R-004-08)."""

    value: dict[str, Json] | None = Field(description="`summary` and fields; null: nothing any more")
    write_id: Id
    at: int
    message_id: Id | None = Field(default=None, description="the customer's message that said so: it may be taken back")
    before: dict[str, Json] | None = Field(default=None, description="the value that it replaced")
    prior: Id | None = Field(default=None, description="the write that stood before it")
    before_said: Id | None = Field(default=None, description="the customer's message that said `before`")


class RecalledFact(Model):
    """Memory: a fact of the stores, as short as a prompt takes it (R-003-23)."""

    key: Id
    kind: Name
    summary: Text
    fields: dict[str, Json] = {}
    write_id: Id
    at: int


class Recalled(Model):
    """Memory: what the stores answered last when the customer cited the past (R-002-10)."""

    at: int
    message_id: Id
    facts: tuple[RecalledFact, ...] = ()
    unavailable: Text = Field(default="", description="why there is no answer")


class Profile(Model):
    """Memory: the customer as the shop's CRM knows them since `loaded_at`, within the budget of a prompt (R-003-22)."""

    session_id: Id
    loaded_at: int = Field(description="0: it was never loaded")
    name: Text = Field(default="", description="masked")
    level: Text = ""
    addresses: tuple[Text, ...] = Field(default=(), description="masked, the most usual first")
    orders: tuple[dict[str, Json], ...] = Field(
        default=(), description="newest first, as `order_id`, `status`, `items`"
    )
    problems: tuple[Text, ...] = Field(default=(), description="earlier problems and their solutions, newest first")
    left_out: dict[str, int] = Field(default={}, description="orders and problems that the budget has no room for")
    seal: dict[str, Json] | None = Field(default=None, description="name and addresses in clear, sealed")
    facts: tuple[RecalledFact, ...] = Field(default=(), description="the newest active facts at the session's start")
    unavailable: dict[str, Text] = Field(default={}, description="`crm` or `facts` to why it was not loaded this time")


class MemoryState(Model):
    """Memory: anchor, summaries, and the current value per key; facts and relations live in their stores."""

    anchor: dict[str, Json] = Field(
        default={}, description="what it is about now: order, item, and the message that said so (R-002-12)"
    )
    summaries: tuple[Text, ...] = ()
    known: dict[str, KnownValue] = Field(
        default={}, description="`kind/subject` to its value; kept when the conversation is closed"
    )
    profile: Profile | None = None
    recalled: Recalled | None = None


class TaskState(Model):
    """Planning: one task of a plan, without what its flow file says of it."""

    node: Name
    status: Literal["planned", "running", "waiting", "done", "failed", "dropped"] = "planned"
    calls: tuple[Id, ...] = ()
    summary: Text = ""
    alternative: Text = ""


class FlowState(Model):
    """Planning: a flow under way, and where it stands in its table."""

    flow: Name
    node: Name
    plan_id: Id
    plan_version: int
    slots: dict[str, Json] = {}
    sources: dict[str, Id] = Field(default={}, description="slot (or `confirmed`) to the message that gave it (B11)")
    seal: dict[str, Json] | None = Field(default=None, description="clear values of masked slots, sealed")
    seals: dict[str, dict[str, Json]] = Field(default={}, description="masked slot to the seal that it came with")
    entries: dict[str, int] = Field(default={}, description="times that each node was entered (R-003-10)")
    path: tuple[Name, ...] = Field(default=(), description="nodes in the order entered (R-003-09)")
    tasks: tuple[TaskState, ...] = ()
    message_id: Id = Field(description="the message that began it")
    language: str = "zh"
    waiting_for: Literal["customer", "tool", "review", "none"] = "none"
    call_id: Id | None = Field(default=None, description="the call that runs")
    review_id: Id | None = Field(default=None, description="the review that is open, or that allowed the call")
    tried: dict[str, int] = Field(default={}, description="hash of a call that failed to how often (R-003-38)")
    choices: tuple[dict[str, Json], ...] = Field(default=(), description="what the numbers of its question mean")
    evidence: tuple[Id, ...] = Field(default=(), description="ids of the results that it rests on")
    turns: int = Field(default=0, description="decide-act steps (R-000-21)")
    concluded: Literal["no", "asking", "done"] = "no"
    code: str = Field(default="", description="what the last event said more closely; picks the wording")


def person_owes(planning: Mapping[str, Any]) -> bool:
    """A person has the conversation or decides on a call: the next word is theirs, and no clock of ours runs (J19).

    Reviews that were decided stay in the state, so that a second answer is known as one; they owe nothing.
    """
    return (planning["owner"] == "human" or planning["handover"] is not None
            or any(review["status"] == "open" for review in planning["reviews"].values()))  # fmt: skip


class PlanningState(Model):
    """Planning: flows (the last is the active one), who owns the conversation, and the caps' counters."""

    flows: tuple[FlowState, ...] = ()
    owner: Literal["agent", "human"] = "agent"
    queue: tuple[dict[str, Json], ...] = Field(default=(), description="wishes and messages that wait their turn")
    turns: int = Field(default=0, description="decide-act steps of the open task (R-000-21)")
    asked: dict[str, int] = Field(default={}, description="times that the customer asked the same (R-003-13)")
    asked_session: Id | None = Field(default=None, description="the session that `asked` and `clarified` count in")
    clarified: int = 0
    reviews: dict[str, dict[str, Json]] = Field(default={}, description="the last 20 reviews by request id")
    handover: dict[str, Json] | None = None
    last_message: dict[str, Json] | None = None
    last_done: dict[str, Json] | None = Field(default=None, description="the flow that ended last, and how")
    offer: tuple[dict[str, Json], ...] = Field(default=(), description="intents that numbered choices stand for")


class CallState(Model):
    """Tools: one declared call."""

    tool: Name
    status: Name
    key: Id
    declared_at: int
    deadline: int
    plan_id: Id
    args_hash: str
    result_id: Id | None = None
    duplicate_of: Id | None = Field(default=None, description="the call whose result it gets: same key (E05)")
    data: dict[str, Json] = Field(default={}, description="a change's answer, for the same call coming again")
    error: dict[str, Json] | None = None


class ToolsState(Model):
    """Tools: the calls of the open session by id, newest last, at most 12 without an open effect."""

    calls: dict[str, CallState] = {}


class MessageState(Model):
    """Delivery: one outbound message."""

    state: DeliveryState
    attempt: int = 1
    session_id: Id
    kind: Name
    template_id: Name
    params: dict[str, Json] = {}
    language: str
    text: Text
    choices: tuple[Choice, ...] = ()
    in_reply_to: Id | None = None
    evidence: tuple[EvidenceRef, ...] = ()
    claims_success: bool = False
    seal: dict[str, Json] | None = Field(default=None, description="the clear text, sealed; the sender opens it")
    queued_at: int
    sent_at: int | None = Field(default=None, description="append time of the attempt's first receipt")
    at: dict[str, int | None] = Field(default={}, description="state to the provider's time, null if it gave none")
    assumed: bool = False
    reason: Text = ""
    displayed_seen: int | None = Field(default=None, description="append time of the last display that counted")
    displays: int = Field(default=0, description="displays counted, at most one in 5 s (R-002-33)")
    followed_up: bool = False
    vendor_id: Id | None = Field(default=None, description="what the vendor's receipts call it")
    to: ConversationId | None = Field(default=None, description="the linked conversation whose channel shows it")


class ParkedReceipt(Model):
    """Delivery: a receipt that came before its message (A03)."""

    receipt: Receipt
    parked_at: int
    partition: int
    offset: int


class ActionsState(Model):
    """Delivery: outbound messages of the open session by id, parked receipts, and when the customer was seen."""

    messages: dict[str, MessageState] = {}
    parked: tuple[ParkedReceipt, ...] = ()
    last_online: int | None = None
    online: bool = False


class Rating(Model):
    """Feedback: what a customer's newest rating of one message, or of the whole session, says (R-002-42)."""

    score: int = Field(ge=1, le=5)
    text: Text = ""
    session_id: Id
    message_id: Id | None
    at: int


class FeedbackState(Model):
    """Feedback: what the five signals need, and the windows that are not closed for good yet."""

    windows: dict[str, dict[str, Json]] = Field(default={}, description="`start:session` to its accumulators")
    waiting_since: int | None = Field(default=None, description="append time of the message that we owe an answer")
    paused_since: int | None = Field(default=None, description="a review or hand-over is owed since: no clock runs")
    paused_ms: int = Field(default=0, description="pauses that are over, since waiting_since (J19)")
    beats: bool = Field(default=False, description="this customer's client says when it is there")
    gone: bool = Field(default=False, description="the customer left while waiting; told once a message")
    forgotten: int = Field(default=0, description="start of the newest window that is closed and no longer kept")
    last_keywords: tuple[Text, ...] = ()
    topics: dict[str, int] = Field(default={}, description="issue to when it was last raised, 3 days")
    ratings: dict[str, Rating] = Field(default={}, description="what was rated (message or session id) to its rating")
    last_score: int | None = None
    last_outbound_at: int | None = None


class TimerState(Model):
    """A deadline that is running."""

    due: int
    set_by: int = Field(description="state version that set it")
    index: int
    data: dict[str, Json] = {}
    stopped: bool = Field(default=False, description="its firing is a dead letter, which a redrive brings back")


class PendingEffect(Model):
    """A declared call or send without an outcome yet (promise 6)."""

    kind: Literal["tool", "send", "recall", "profile", "model"]
    key: Id = Field(description="idempotency key")
    declared_at: int
    deadline: int
    timeout_ms: int
    set_by: int
    request: dict[str, Json]
    stopped: bool = Field(default=False, description="its outcome is a dead letter, which a redrive brings back")


class Bookkeeping(Model):
    """The runtime's own: what was handled and what was emitted, so that a repeat is known as one."""

    at: dict[str, int] = Field(default={}, description="input topic to the last offset handled")
    heard: dict[str, tuple[int, int]] = Field(
        default={}, description="`topic|source conversation` to the last emit position handled"
    )
    recent: dict[str, int] = Field(
        default={}, description="hash of topic and record id to append time; 24 h, 256 at most"
    )
    sent: dict[str, tuple[int, int]] = Field(
        default={}, description="topic (`topic|key` for another key) to the last emit's version and index"
    )
    paused: dict[str, int] = Field(
        default={}, description="system conversation: paused topic to the offset that did it"
    )
