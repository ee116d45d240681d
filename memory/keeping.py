"""A memory write as the stores keep it: one fact, and the relations that it states. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memory.facts.port import Fact
from memory.relations.port import Node, Relation
from schemas.memory import MemoryWrite


@dataclass(frozen=True, slots=True)
class Key:
    """`shop/channel/sender/kind/subject`; the customer is the conversation, as the whole of it is one person."""

    conversation: str
    kind: str
    subject: str

    @property
    def shop(self) -> str:
        """The tenant of the stores."""
        return self.conversation.partition("/")[0]

    @property
    def name(self) -> str:
        """`kind/subject`: the key within the customer."""
        return f"{self.kind}/{self.subject}"


def key_of(text: str) -> Key:
    """The parts of a write's key. Raises ValueError for text that is none."""
    conversation, kind, subject = text.rsplit("/", 2)
    return Key(conversation, kind, subject)


def fact_of(write: MemoryWrite) -> Fact:
    """The fact that holds from this write on; an inactive one when nothing is known any more."""
    key = key_of(write.key)
    value = write.value_after if write.value_after is not None else (write.value_before or {})
    fields = {name: part for name, part in value.items() if name != "summary"}
    return Fact(
        shop=key.shop, customer=key.conversation, key=key.name, kind=key.kind,
        summary=str(value.get("summary") or key.name), write_id=write.write_id, trace_id=write.trace_id,
        session_id=write.session_id, at=write.timestamp, fields=fields, active=write.value_after is not None,
    )  # fmt: skip


def relations_of(write: MemoryWrite) -> Iterator[Relation]:
    """What the write states of orders, complaints and who handled them; what it takes back is stated as over."""
    before = {_identity(one): one for one in _stated(write, write.value_before, active=False)}
    after = {_identity(one): one for one in _stated(write, write.value_after, active=True)}
    yield from (one for name, one in before.items() if name not in after)
    yield from after.values()


def _identity(relation: Relation) -> tuple[str, str, str, str, str, str]:
    return (relation.kind, relation.start.label, relation.start.id, relation.end.label, relation.end.id, relation.id)


def _stated(write: MemoryWrite, value: dict[str, Any] | None, *, active: bool) -> Iterator[Relation]:
    if value is None:
        return
    key = key_of(write.key)
    user, order = Node("User", key.conversation), _node("Order", value.get("order_id"))

    def relation(kind: str, start: Node, end: Node, relation_id: str = "", **fields: str) -> Relation:
        return Relation(shop=key.shop, customer=key.conversation, kind=kind, start=start, end=end,
                        at=int(value.get("at") or write.timestamp), write_id=write.write_id, trace_id=write.trace_id,
                        written_at=write.timestamp, fields=fields, id=relation_id, active=active)  # fmt: skip

    # an order that a task was carried out for is the customer's: the shop checked it before. Each fact states it for
    # itself, so that one which is taken back leaves what another one still states
    if key.kind in ("problem", "order") and order is not None and value.get("outcome", "done") == "done":
        yield relation("MADE_ORDER", user, order, key.name)
    if key.kind == "complaint":
        complaint = Node("Complaint", key.subject, {"reason": str(value.get("about") or "other"),
                                                    "note": str(value.get("summary") or "")})  # fmt: skip
        yield relation("FILED_COMPLAINT", user, complaint)
        if order is not None:
            yield relation("ABOUT", complaint, order)
        agent = _node("Agent", value.get("handled_by"))
        if agent is not None:
            yield relation("HANDLED_BY", complaint, agent)
    if key.kind == "quality_check":
        agent = _node("Agent", value.get("agent"))
        complaint_id = value.get("complaint")
        if agent is not None and isinstance(complaint_id, str) and complaint_id:
            yield relation("TRIGGERED_QUALITY_CHECK", Node("Complaint", complaint_id), agent, key.subject,
                           result=str(value.get("result") or "open"), note=str(value.get("summary") or ""))  # fmt: skip


def _node(label: str, identity: object) -> Node | None:
    return Node(label, identity) if isinstance(identity, str) and identity else None
