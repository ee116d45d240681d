"""The working set of one decision: flows, queue and messages, read from the draft once and written back once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.flows.model import Flow, Node
from agents.planning.pack import Config, Pack
from agents.planning.plans import plan_of
from agents.replies.claims import ClaimError, Proofs, render
from schemas.base import Model
from schemas.delivery import EvidenceRef, OutboundMessage
from schemas.events import Seal
from schemas.step import Draft

FlowDict = dict[str, Any]
_KEYS = ("flows", "owner", "queue", "turns", "asked", "asked_session", "clarified", "reviews", "handover",
         "last_message", "last_done", "offer")  # fmt: skip
REVIEWS_MAX = 20


class Desk:
    """What one decision of planning works on. Flows are copies: nested values are replaced, never mutated."""

    def __init__(self, draft: Draft, pack: Pack, config: Config) -> None:
        self.draft, self.pack, self.config = draft, pack, config
        planning: Mapping[str, Any] = draft.get("planning")
        # One level deep: states are shared with the bus, so a nested value is replaced, never changed.
        self.flows: list[FlowDict] = [dict(flow) for flow in planning["flows"]]
        self.queue: list[dict[str, Any]] = list(planning["queue"])
        self.owner: str = planning["owner"]
        self.turns: int = planning["turns"]
        self.asked: dict[str, int] = dict(planning["asked"])
        self.asked_session: str | None = planning.get("asked_session")
        self.clarified: int = planning["clarified"]
        self.reviews: dict[str, dict[str, Any]] = dict(planning["reviews"])
        self.handover: dict[str, Any] | None = planning["handover"]
        self.last_message: dict[str, Any] | None = planning["last_message"]
        self.last_done: dict[str, Any] | None = planning.get("last_done")
        self.offer: list[dict[str, Any]] = list(planning.get("offer") or ())
        session = draft.get("session") or {}
        self.session_id: str = session.get("id") or "none"
        # Whose orders may be touched: from the key of the conversation, never from a text (E15).
        self.sender: str = session.get("sender") or draft.conversation.rpartition("/")[2]
        self.language: str = draft.get("perception", "language") or "zh"
        self.in_reply_to: str | None = None
        self.muted = False  # an edit undoes silently: its new words are answered, not its old ones
        self.ended_top = False  # the active flow ended: what waits below it goes on
        self.acted: set[str] = set()
        self.results: dict[str, tuple[str, str]] = {}
        self._emits: list[tuple[str, Model]] = []
        self._plans: dict[str, tuple[FlowDict, str]] = {}

    @property
    def top(self) -> FlowDict | None:
        """The active flow."""
        return self.flows[-1] if self.flows else None

    def flow_of(self, state: Mapping[str, Any]) -> Flow:
        """The file of a flow under way."""
        return self.pack.flows[state["flow"]]

    def node_of(self, state: Mapping[str, Any]) -> Node:
        """The node that a flow stands at."""
        return self.flow_of(state).nodes[state["node"]]

    def touch(self, state: FlowDict, status: str = "open") -> None:
        """The flow's plan changed: a new version is published when the decision is done (R-004-13)."""
        self._plans[state["plan_id"]] = (state, status)

    def publish(self, topic: str, value: Model) -> None:
        """A record that follows from the decision; plans go out before what they plan."""
        self._emits.append((topic, value))

    def heard(self) -> list[dict[str, Any]]:
        """The customer's latest messages, masked, for a person who must go on without asking again (R-003-14)."""
        messages = list(self.draft.get("perception", "messages", default={}).values())
        return [{"text": one["text"], "at": one["at"], "intent": one["intent"]}
                for one in messages[-self.config.context_messages:]]  # fmt: skip

    def title(self, flow: str, language: str) -> str:
        """The flow's name for the customer."""
        title = self.pack.flows[flow].title
        return title.en if language == "en" else title.zh

    def proofs(self, refs: Sequence[EvidenceRef]) -> Proofs:
        """Everything that may be cited now, and what is."""
        calls = self.draft.get("tools", "calls", default={})
        known = {call["result_id"]: (call["tool"], call["status"]) for call in calls.values() if call["result_id"]}
        writes = self.draft.get("memory", "known", default={}).values()
        return Proofs({**known, **self.results}, refs, frozenset(entry["write_id"] for entry in writes))

    def say(
        self,
        template_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        language: str | None = None,
        evidence: Sequence[EvidenceRef] = (),
        choices: Sequence[str] | None = None,
        kind: str = "reply",
        seal: Seal | None = None,
    ) -> bool:
        """Publish one message of an approved template; False when its claims are not carried (E07)."""
        if self.muted:
            return True
        try:
            message = render(self.pack.templates, template_id, language or self.language, params or {},
                             self.proofs(evidence), choices)  # fmt: skip
        # A pack of a shop may break its own wording; the customer then gets a person, not half a sentence.
        except (ClaimError, KeyError, TypeError) as error:
            self.draft.reason("replies.claim_refused", f"{template_id}: {error}", *(ref.id for ref in evidence))
            return False
        self.publish("actions.outbound", OutboundMessage(
            message_id=self.draft.new_id("out"), session_id=self.session_id,
            kind="staff" if kind == "staff" else "reply", template_id=message.template_id, params=message.params,
            language=message.language, text=message.text, choices=message.choices, in_reply_to=self.in_reply_to,
            evidence=message.evidence, claims_success=message.claims_success, seal=seal,
            to=self.draft.get("identity", "answer_at"),
        ))  # fmt: skip
        self.draft.reason("planning.say", template_id, *(ref.id for ref in evidence))
        return True

    def unsay(self, plan_id: str) -> None:
        """What this decision was to say for the plan is not said."""
        self._emits = [(topic, value) for topic, value in self._emits if not (isinstance(value, OutboundMessage)
                       and any(ref.id == plan_id for ref in value.evidence))]  # fmt: skip

    def remember_review(self, request_id: str, review: dict[str, Any]) -> None:
        """Keep a review (a person may answer twice, case E17); the oldest closed ones go."""
        self.reviews[request_id] = review
        # An open review is never forgotten: its approval may still come, and must be judged against it.
        for old in [one for one, kept in self.reviews.items() if kept["status"] != "open"]:
            if len(self.reviews) <= REVIEWS_MAX:
                break
            del self.reviews[old]

    def close(self) -> None:
        """Write everything back and publish: plans first."""
        top = self.top
        self.turns = top["turns"] if top else 0
        # One version a decision, however often the flow moved in it: a version is what the outside can see.
        for state, status in self._plans.values():
            state["plan_version"] += 1
            shown = "suspended" if status == "open" and state is not top else status
            self.draft.emit("plans", plan_of(self.flow_of(state), self.pack.tools, state, shown, self.session_id))
        for topic, value in self._emits:
            self.draft.emit(topic, value)
        # Whatever did not change costs nothing: the draft compares before it writes.
        for key in _KEYS:
            self.draft.set(getattr(self, key), "planning", key)
