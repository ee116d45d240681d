"""Runs inputs through steps as the partition does: table order, one draft a record, diffs applied with checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from agents.perception import PerceptionConfig
from agents.perception import make_step as perception_step
from agents.planning.pack import Config, Pack, load_pack
from agents.planning.step import INPUTS as PLANNING_INPUTS
from agents.planning.step import make_step as planning_step
from agents.tools.step import INPUTS as TOOLS_INPUTS
from agents.tools.step import make_step as tools_step
from agents.understanding.embedded import embedded
from memory.bus import apply, empty, pointer
from schemas.base import Model, conversation_id
from schemas.delivery import OutboundMessage
from schemas.events import ChannelEvent, EditBody, MessageBody, RecallBody, Seal
from schemas.messages import MessageRef, NormalizedMessage
from schemas.people import HumanDecision, HumanRequest
from schemas.plans import ExecutionPlan
from schemas.state import ConversationState
from schemas.step import MISSING, Draft, Input, Step, look
from schemas.system import TimerFired
from schemas.tools import ToolCall, ToolError, ToolResult
from streams.effects.unseal import unmasked

T0 = 1_767_578_400_000
PACK = load_pack()
SENDER = "u-1"
_FOLLOWING = {"messages.normalized", "tools.calls"}  # emits that are read again at once


def _sealer(_conversation: str, plaintext: bytes, _context: bytes) -> Seal:
    return Seal(key_id="k", nonce="bm9uY2Vub25jZQ==", sealed=plaintext.hex())


def opened(sealed: Seal) -> dict[str, Any]:
    """What the tests' own seal holds."""
    found: dict[str, Any] = orjson.loads(bytes.fromhex(sealed.sealed))
    return found


class Chat:
    """One conversation: `say` what the customer says, answer calls with `result`, and look at what came out."""

    def __init__(
        self, config: Config | None = None, pack: Pack = PACK, sender: str = SENDER, *, only_tools: bool = False
    ) -> None:
        self.key = conversation_id("shop", "web", sender)
        self.state: dict[str, Any] = empty(self.key)
        self.now = T0
        self.emitted: list[tuple[str, Model]] = []
        self.reasons: list[tuple[str, str, tuple[str, ...]]] = []
        self.turn: list[tuple[str, Model]] = []
        self._offset = 0
        self._messages = 0
        self._rows: Sequence[tuple[tuple[str, ...], Step]] = (
            (("channel.events",), perception_step(embedded(), _sealer, PerceptionConfig())),
            (PLANNING_INPUTS, planning_step(pack, config)),
            (TOOLS_INPUTS, tools_step(pack.tools)),
        )
        if only_tools:
            self._rows = self._rows[2:]

    def feed(self, topic: str, value: Model, record_id: str | None = None) -> list[tuple[str, Model]]:
        """One record: every step of its topic in one draft, the diff applied, its before and after asserted."""
        self._offset += 1
        self.now += 1
        cause = Input(topic, 0, self._offset, self.now, self.key, record_id or f"r{self._offset}", "test", value)
        draft = Draft(self.state, cause)
        for inputs, step in self._rows:
            if topic in inputs:
                step(draft, cause)
        decision = draft.finish()
        assert decision.reasons or not decision.changes, f"{topic} changed something without a reason"
        for path, before, _ in decision.changes:
            assert look(self.state, path, MISSING) == before
        self.reasons += decision.reasons
        self._commit(draft, decision)
        out = [(emit.topic, emit.value) for emit in decision.emits]
        self.emitted += out
        self.turn += out
        for follow, record in out:
            if follow in _FOLLOWING or (follow == "tools.results"):
                self.feed(follow, record)
        return out

    def _commit(self, draft: Draft, decision: Any) -> None:
        changes = [
            {"path": pointer(path), **({} if after is MISSING else {"after": after})}
            for path, _, after in decision.changes
        ]
        self.state = apply(self.state, {
            "conversation": self.key, "base": self.state["version"], "version": self.state["version"] + 1,
            "now": draft.now, "changes": changes,
            "emits": [{"topic": emit.topic, "key": emit.key} for emit in decision.emits],
            "cause": {"topic": draft.cause.topic, "offset": self._offset, "time": self.now, "id": draft.cause.id},
        })  # fmt: skip
        for path, _, after in decision.changes:
            assert look(self.state, path, MISSING) == after
        ConversationState.model_validate_json(orjson.dumps({**self.state, "runtime": {}}))

    def say(self, text: str, message_id: str | None = None, *, edit: bool = False) -> list[str]:
        """The customer writes; the texts that are sent to them at once."""
        self._messages += 1
        number = message_id or f"m-{self._messages}"
        body: EditBody | MessageBody = MessageBody(kind="message", message_id=number, text=text)
        if edit:
            body = EditBody(kind="edit", message_id=number, text=text)
        self.turn = []
        self.feed("channel.events", self._event(body))
        return self.said()

    def recall(self, message_id: str) -> list[str]:
        """The customer takes a message back."""
        self.turn = []
        self.feed("channel.events", self._event(RecallBody(kind="recall", message_id=message_id)))
        return self.said()

    def _event(self, body: Any) -> ChannelEvent:
        number = f"ev-{self._offset}"
        return ChannelEvent(id=number, event_id=number, shop="shop", channel="web",
                            sender=self.key.rpartition("/")[2], occurred_at=self.now, body=body)  # fmt: skip

    def hear(self, message: NormalizedMessage) -> list[str]:
        """A message as perception would have read it."""
        self.turn = []
        self.feed("messages.normalized", message)
        return self.said()

    @property
    def pending(self) -> list[ToolCall]:
        """Calls that are declared as effects and have no outcome."""
        requests = [one["request"] for one in self.state["pending"].values()]
        return [ToolCall.model_validate_json(orjson.dumps(one)) for one in requests]

    def result(
        self,
        data: Mapping[str, Any] | None = None,
        status: str = "success",
        code: str | None = None,
        call: ToolCall | None = None,
        result_id: str | None = None,
    ) -> list[str]:
        """The outcome of the only pending call (or of `call`); the texts that follow."""
        one = call or self.pending[-1]
        self.turn = []
        self.feed("tools.results", ToolResult(
            result_id=result_id or f"{one.call_id}:r", call_id=one.call_id, tool=one.tool,
            status=status,  # type: ignore[arg-type]
            data=dict(data or {}), error=ToolError(code=code, message=code) if code else None, finished_at=self.now,
        ))  # fmt: skip
        return self.said()

    def decide(
        self,
        kind: str,
        call_hash: str | None = None,
        request_id: str | None = None,
        text: str = "",
        decision_id: str | None = None,
    ) -> list[str]:
        """A person's decision, on the last review unless said otherwise."""
        reviews = [one for one in self.requests() if one.kind == "review"]
        request = reviews[-1] if reviews else None
        self.turn = []
        self.feed("human.decisions", HumanDecision(
            decision_id=decision_id or f"d-{self._offset}", kind=kind, by="staff-7", decided_at=self.now,  # type: ignore[arg-type]
            request_id=request_id or (request.request_id if request else None), text=text,
            call_hash=call_hash or (request.call_hash if request and kind == "approve" else None),
        ))  # fmt: skip
        return self.said()

    def fire(self, prefix: str) -> list[str]:
        """The timer whose name begins so fires, at its due time."""
        name, timer = next((name, timer) for name, timer in self.state["timers"].items() if name.startswith(prefix))
        self.now = max(self.now, timer["due"])
        self.turn = []
        self.feed("timers.fired", TimerFired(timer_id=f"t-{self._offset}", name=name, due=timer["due"],
                                             set_by=timer["set_by"], data=timer["data"]))  # fmt: skip
        return self.said()

    def said(self) -> list[str]:
        """Template ids of the messages since the last thing that happened."""
        return [one.template_id for topic, one in self.turn if isinstance(one, OutboundMessage)]

    def all_said(self) -> list[OutboundMessage]:
        """Every message so far."""
        return [one for _, one in self.emitted if isinstance(one, OutboundMessage)]

    def text(self) -> str:
        """The last message's words, with the address that its sender opens."""
        last = self.all_said()[-1]
        address = None if last.seal is None else opened(last.seal).get("address")
        return last.text if address is None else unmasked(last.text, address)

    def requests(self) -> list[HumanRequest]:
        """Everything that people were asked."""
        return [one for _, one in self.emitted if isinstance(one, HumanRequest)]

    def calls(self) -> list[ToolCall]:
        """Every call that planning declared."""
        return [one for _, one in self.emitted if isinstance(one, ToolCall)]

    def plans(self) -> list[ExecutionPlan]:
        """Every version of every plan."""
        return [one for _, one in self.emitted if isinstance(one, ExecutionPlan)]

    @property
    def flows(self) -> list[tuple[str, str, str]]:
        """Flow, node and what it waits for, bottom first."""
        return [(one["flow"], one["node"], one["waiting_for"]) for one in self.state["planning"]["flows"]]

    def rules(self) -> list[str]:
        """Rule ids of all reasons so far."""
        return [rule for rule, _, _ in self.reasons]


def order(
    order_id: str = "1001",
    amount_fen: int = 19900,
    refunded_fen: int = 0,
    status: str = "delivered",
    refundable_until: int = T0 + 86_400_000,
    sender: str = SENDER,
) -> dict[str, Any]:
    """An order as the shop answers it."""
    return {
        "order_id": order_id, "customer_id": sender, "status": status, "amount_fen": amount_fen,
        "refunded_fen": refunded_fen, "refundable_until": refundable_until, "address": "A路1号", "phone": "138****0000",
        "items": [{"sku_id": "s1", "name": "保温杯", "category": "cup", "price_fen": amount_fen, "quantity": 1}],
    }  # fmt: skip


def refunded(call: ToolCall) -> dict[str, Any]:
    """The shop's answer to an accepted refund."""
    return {"refund_id": "rf-9", "order_id": call.args["order_id"], "amount_fen": call.args["amount_fen"],
            "status": "accepted"}  # fmt: skip


def parcel(order_id: str = "1002") -> dict[str, Any]:
    """The shop's answer to a tracking query."""
    return {"order_id": order_id, "status": "shipped", "carrier": "SF", "tracking_no": "SF123",
            "events": [{"at": T0, "text_zh": "已到达上海", "text_en": "Arrived in Shanghai"}]}  # fmt: skip


def message(text: str, intent: str, **fields: Any) -> NormalizedMessage:
    """A reading made by hand."""
    number = fields.pop("message_id", "m-hand")
    ref = MessageRef(message_id=number, event_id=f"ev-{number}", session_id=fields.pop("session_id", "s-1"), at=T0)
    return NormalizedMessage(**{
        "ref": ref, "intent": intent, "confidence": 0.9, "evidence": (), "language": "zh", "sentiment": "neutral",
        "text": text, **fields,
    })  # fmt: skip
