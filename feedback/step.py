"""The pure step of feedback: it listens, keeps the clocks of waiting, and closes the health windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from feedback import health, signals
from schemas.events import RatingBody, event_time
from schemas.feedback import Signal, SignalKind
from schemas.messages import NormalizedMessage
from schemas.sections import KEPT_CHARS, Rating, person_owes
from schemas.step import Draft, Input, Step, look

GONE = "feedback.gone"
RATINGS_MAX = 20  # ratings that the state keeps; feedback.signals has all
_ANSWERING = ("reply", "notice", "staff")  # a follow-up or a resend answers nothing
_WAITING = "handover.waiting"  # says that a person will answer, and is no answer itself (case J11)


@dataclass(frozen=True, slots=True)
class FeedbackSettings:
    """Times in milliseconds."""

    window_ms: int = 300_000  # R-002-40
    grace_ms: int = 10_000
    gone_ms: int = 30_000  # R-002-37


def feedback_step(cfg: FeedbackSettings) -> Step:
    """The step with these times."""

    def step(draft: Draft, cause: Input) -> None:
        _Listener(draft, cause, cfg).listen()

    return step


class _Listener:
    """One decision's view: the draft, its cause, and the windows that it touches."""

    def __init__(self, draft: Draft, cause: Input, cfg: FeedbackSettings) -> None:
        self._draft, self._cause, self._cfg = draft, cause, cfg
        self._windows = health.Windows(draft, cfg.window_ms, cfg.grace_ms)
        session = draft.get("session")
        self._session: str | None = session["id"] if session else None

    def listen(self) -> None:
        """Hear the cause, then settle windows and clocks."""
        # First: planning and delivery ran before in this decision, so a review may just have begun or ended.
        self._pause()
        topic = self._cause.topic
        if topic == "channel.events":
            self._event()
        elif topic == "messages.normalized":
            self._message(self._cause.value)
        elif topic == "actions.outbound":
            self._outbound()
        elif topic == "timers.fired":
            self._fired(self._cause.value.name, self._cause.value.due)
        self._windows.finish()

    def _event(self) -> None:
        event = self._cause.value
        kind = event.body.kind
        at, assumed = event_time(event.occurred_at, self._cause.time)
        if kind in ("heartbeat", "presence"):
            self._presence(event.body)
            return
        # What is no word of the customer's is neither activity nor a hit on the score (case B07).
        if self._session is None or kind in ("identity_link", "unsupported"):
            if kind == "rating":
                self._draft.reason("feedback.rating.unbound", "there is no session that it could rate", event.event_id)
            return
        self._windows.activity(self._session, at)
        if kind == "message":
            self._wait()
        elif kind == "recall":
            self._recall(event.body.message_id, at, assumed=assumed)
        elif kind == "rating":
            self._rating(event.body, at, assumed=assumed)

    def _rating(self, body: RatingBody, at: int, *, assumed: bool) -> None:
        """Tied to its message and that message's session; the newest rating of one thing stands (R-002-42)."""
        rated = look(self._draft.state, ("actions", "messages", body.message_id or ""))
        session = str(rated["session_id"] if rated else self._session)
        text = body.text[:KEPT_CHARS]
        rating = Rating(score=body.score, text=text, session_id=session, message_id=body.message_id, at=at)
        ratings = self._draft.get("feedback", "ratings", default={})
        kept = {name: one for name, one in ratings.items() if name != (body.message_id or session)}
        while len(kept) >= RATINGS_MAX:
            del kept[min(kept, key=lambda name: (kept[name]["at"], name))]
        self._set("ratings", {**kept, body.message_id or session: rating.model_dump(mode="json")})
        if body.message_id and not rated:
            self._draft.reason("feedback.rating.unknown_message", "not among the last messages sent", body.message_id)
        self._signal("rating", at, float(body.score), body.message_id, text, assumed=assumed, session=session)

    def _wait(self) -> None:
        """The clock of waiting runs from the customer's last message, by append time (cases J11, J13)."""
        self._set("waiting_since", self._cause.time)
        self._set("paused_ms", 0)
        self._set("gone", False)
        if self._draft.get("feedback", "paused_since") is None:
            self._draft.timer(GONE, self._draft.now + self._cfg.gone_ms)
        else:
            self._set("paused_since", self._draft.now)
        self._draft.reason("feedback.waiting", "we owe an answer")

    def _presence(self, body: Any) -> None:
        self._set("beats", True)
        if body.kind == "heartbeat" or body.status == "online":
            return
        since = self._draft.get("feedback", "waiting_since")
        if since is not None and not self._owed() and self._draft.now - since >= self._cfg.gone_ms:
            self._interrupted(self._cause.time)

    def _recall(self, message_id: str, at: int, *, assumed: bool) -> None:
        """A message taken back is one correction, and so is what replaces it (case B11)."""
        # The state before this decision: perception, which runs first, has marked it already.
        known = look(self._draft.origin, ("perception", "messages", message_id))
        if known is None or known["recalled"]:
            return
        self._set("last_keywords", [])
        self._signal("correction", at, 1.0, message_id, "recalled", assumed=assumed)

    def _message(self, message: NormalizedMessage) -> None:
        if self._session is None:
            return
        words = signals.keywords(message)
        again = signals.shared(self._draft.get("feedback", "last_keywords"), words)
        self._set("last_keywords", words)
        at, message_id = message.ref.at, message.ref.message_id
        if again:
            self._signal("correction", at, 1.0, message_id, f"again: {', '.join(again)}")
        elif self._joined(message_id):
            self._signal("correction", at, 1.0, message_id, "the same wish again, while its task is open")
        flows_before = look(self._draft.origin, ("planning", "flows"), [])
        left = signals.deviation(message, flows_before, self._draft.get("planning", "flows"))
        if left:
            self._signal("deviation", at, 1.0, message_id, left)
        self._issue(message, flows_before)

    def _joined(self, message_id: str) -> bool:
        """Planning, which ran before in this decision, found its task open already (R-002-06)."""
        last = self._draft.get("planning", "last_message") or {}
        return last.get("message_id") == message_id and last.get("joined") is not None

    def _issue(self, message: NormalizedMessage, flows: list[dict[str, Any]]) -> None:
        name = signals.issue(message, flows)
        if name is None:
            return
        topics = self._draft.get("feedback", "topics")
        if signals.repeated(topics, name, self._cause.time, self._draft.get("session", "started")):
            self._signal("repeat", message.ref.at, 1.0, message.ref.message_id, f"{name} in an earlier session")
        self._set("topics", signals.remembered(topics, name, self._cause.time))

    def _outbound(self) -> None:
        message = self._cause.value
        # The same words again are no second answer, and no activity of the customer's.
        if message.kind == "resend":
            return
        self._windows.activity(message.session_id, self._cause.time)
        if message.kind not in _ANSWERING or message.template_id == _WAITING:
            return
        feedback = self._draft.get("feedback")
        self._set("last_outbound_at", self._cause.time)
        since, paused = feedback["waiting_since"], feedback.get("paused_ms", 0)
        if since is None:
            return
        if message.kind == "staff":
            paused = 0  # the person who has the conversation is the one who was waited for (case J11)
        elif feedback.get("paused_since") is not None:
            paused += max(0, self._cause.time - max(feedback["paused_since"], since))
        # Append times on both ends: two clocks would measure their difference, not our latency.
        waited = max(0, self._cause.time - since - paused)
        self._set("waiting_since", None)
        self._set("paused_ms", 0)
        self._draft.cancel(GONE)
        self._signal("reply_latency", self._cause.time, float(waited), message.message_id, session=message.session_id)

    def _fired(self, name: str, due: int) -> None:
        if name.startswith(health.TIMER + ":"):
            self._windows.close(name.partition(":")[2])
        elif name == GONE and self._draft.get("feedback", "waiting_since") is not None and not self._owed():
            self._gone(due)

    def _gone(self, due: int) -> None:
        """30 s without an answer: a client that fell silent has left; one that is there is asked again later."""
        if not self._draft.get("feedback", "beats", default=False):
            self._draft.reason("feedback.presence.unknown", "this channel does not say whether the customer is there")
            return
        seen = self._draft.get("actions", "last_online") or 0
        if self._draft.get("actions", "online") and seen > due - self._cfg.gone_ms:
            self._draft.timer(GONE, due + self._cfg.gone_ms)
            self._draft.reason("feedback.still_there", "the customer waits on")
            return
        self._interrupted(due)

    def _interrupted(self, at: int) -> None:
        self._draft.cancel(GONE)
        if not self._draft.get("feedback", "gone", default=False):
            self._set("gone", True)
            self._signal("interruption", at, 1.0, None, "gone while waiting for an answer")

    def _owed(self) -> bool:
        return person_owes(self._draft.get("planning"))

    def _pause(self) -> None:
        feedback = self._draft.get("feedback")
        since, owed = feedback.get("paused_since"), self._owed()
        if owed and since is None:
            self._set("paused_since", self._draft.now)
            self._draft.cancel(GONE)
            self._draft.reason("feedback.paused", "a person owes the answer")
        elif not owed and since is not None:
            self._set("paused_since", None)
            self._draft.reason("feedback.resumed", "no person owes the answer any more")
            if feedback["waiting_since"] is not None:
                self._set("paused_ms", feedback.get("paused_ms", 0) + self._draft.now - since)
                self._draft.timer(GONE, self._draft.now + self._cfg.gone_ms)

    def _signal(
        self,
        kind: SignalKind,
        at: int,
        value: float,
        message_id: str | None,
        evidence: str = "",
        *,
        assumed: bool = False,
        session: str | None = None,
    ) -> None:
        session_id = session or self._session
        if session_id is None:
            return
        self._draft.emit("feedback.signals", Signal(
            signal_id=self._draft.new_id("sg"), session_id=session_id, kind=kind, value=value, at=at,
            time_assumed=assumed, message_id=message_id, evidence=evidence,
        ))  # fmt: skip
        self._draft.reason(f"feedback.{kind}", evidence, *([message_id] if message_id else []))
        self._windows.signal(session_id, at, kind, value)

    def _set(self, name: str, value: Any) -> None:
        self._draft.set(value, "feedback", name)
