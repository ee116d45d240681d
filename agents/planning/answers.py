"""What a message means for the flow under way: a choice, a yes or no, slots, or nothing that it can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.flows.engine import wanting
from agents.planning import calls, moves, related, wishes
from agents.planning.desk import Desk, FlowDict
from agents.understanding.intents import CLEAR
from agents.understanding.normalize import MASK, SEALED
from agents.understanding.places import likely
from agents.understanding.rules import asks
from schemas.messages import NormalizedMessage

_FREE = {"reason", "address"}  # slots that any words may fill (R-003-11)
_OF_ORDER = ("amount_fen", "left_fen", "items", "status", "choices")  # what follows from the order
_FREE_INTENTS = {"inform", "out_of_scope", "complaint", "refund", "return"}
_NO_ANSWER = {"greeting", "thanks", "confirm", "deny", "stop", "human"}
FREE_MIN, FREE_MAX = 2, 300  # characters of an answer in free words


def choose(desk: Desk, state: FlowDict, choice: Mapping[str, Any], message: NormalizedMessage) -> None:
    """The customer answered with a number."""
    if "slot" in choice:
        took(desk, state, {choice["slot"]: choice["value"]}, message)
        moved(desk, state)
    else:
        event(desk, state, str(choice["event"]), message)


def event(desk: Desk, state: FlowDict, what: str, message: NormalizedMessage) -> None:
    """A yes, a no, or a word about going on."""
    if state["concluded"] == "asking":
        if what in {"confirmed", "continue"}:
            state["concluded"] = "done"
            moves.ask(desk, state)
            desk.touch(state)
            desk.draft.reason("planning.go_on", "the customer wants to go on", message.ref.message_id)
            return
        # A no to "shall we go on?" is no wish to change something.
        what = "stopped" if what == "denied" else what
    # Twenty yeses are one refund (J15).
    if what == "confirmed" and state["waiting_for"] == "review":
        desk.draft.reason("planning.confirmed_before", "its review is open (J15)", message.ref.message_id)
        desk.say("common.in_progress")
        return
    if what == "wants_person":
        moves.hand(desk, "wish", message.ref.message_id)
        return
    # Which message said yes is kept: if it is taken back, so is the yes (B11).
    if what == "confirmed" and desk.node_of(state).kind == "confirm":
        state["sources"] = {**state["sources"], "confirmed": message.ref.message_id}
    if what == "denied" and state["waiting_for"] == "review":
        calls.drop_review(desk, state)
    if not moves.fire(desk, state, what, "stopped" if what == "stopped" else ""):
        unclear(desk, state)


def fits(desk: Desk, state: FlowDict, message: NormalizedMessage) -> bool:
    """The message answers what the flow asks, or brings it something new, whatever its confidence."""
    node, flow, given = desk.node_of(state), desk.flow_of(state), wishes.primary(message)
    new = _new(desk, state, given, _sealed(message))
    # A new value of a slot is understood even in an unclear sentence; the confirmation shows it.
    if new and (message.intent in flow.intents or message.intent == "inform"):
        return True
    if state["waiting_for"] != "customer":
        return False
    return node.slot in given or _free(node.slot, message) is not None


def another_order(desk: Desk, state: FlowDict, message: NormalizedMessage) -> bool:
    """The same wish for another order is a task of its own, unless the flow asks for exactly that."""
    if message.intent not in desk.flow_of(state).intents:
        return False
    new, known = wishes.primary(message).get("order_id"), state["slots"].get("order_id")
    asked = desk.node_of(state).slot == "order_id" or desk.flow_of(state).target(state["node"], "changed")
    open_to_change = bool(asked) and state["waiting_for"] == "customer"
    return new is not None and known is not None and new != known and not open_to_change


def answer(desk: Desk, state: FlowDict, message: NormalizedMessage) -> None:
    """A message that belongs to the flow: new slots move it, a yes or no answers it, the rest is unclear."""
    node, given = desk.node_of(state), wishes.primary(message)
    if node.slot is not None and node.slot not in given:
        free = _free(node.slot, message)
        given = {**given, **({node.slot: free} if free is not None else {})}
    if took(desk, state, given, message):
        moved(desk, state)
    elif message.intent in {"confirm", "deny"}:
        event(desk, state, "confirmed" if message.intent == "confirm" else "denied", message)
    else:
        if message.intent in desk.flow_of(state).intents:
            related.note(desk, state, message.ref.message_id)
        unclear(desk, state)


def _free(slot: str | None, message: NormalizedMessage) -> str | None:
    """The text as the slot's value, when free words may fill it: no question, no other clear topic, no "to where?"."""
    text = message.text.strip()
    # A reading that is not sure of itself does not take the customer's own words away from the question.
    sure = message.intent not in _FREE_INTENTS and message.confidence >= CLEAR
    if slot not in _FREE or sure or message.intent in _NO_ANSWER or not FREE_MIN <= len(text) <= FREE_MAX:
        return None
    if message.intent == "out_of_scope" and message.confidence >= CLEAR:
        return None
    if asks(text) or (slot == "address" and not likely(text)):
        return None
    return text if any(char.isalpha() for char in text) else None


def _new(desk: Desk, state: FlowDict, given: Mapping[str, Any], seal: dict[str, Any] | None) -> dict[str, Any]:
    """What the flow can use of it and does not have. Two masked values may look the same: then the seals tell."""
    slots, seals = state["slots"], state.get("seals", {})
    found = wishes.usable(desk.flow_of(state).slots, given, slots)
    return {name: value for name, value in found.items() if slots.get(name) != value
            or (name in SEALED and MASK in str(value) and seal is not None and seals.get(name) != seal)}  # fmt: skip


def _sealed(message: NormalizedMessage) -> dict[str, Any] | None:
    return message.seal.model_dump(mode="json") if message.seal is not None else None


def took(desk: Desk, state: FlowDict, given: Mapping[str, Any], message: NormalizedMessage) -> bool:
    """`fill` from a message."""
    return fill(desk, state, given, message.ref.message_id, _sealed(message))


def fill(desk: Desk, state: FlowDict, given: Mapping[str, Any], message_id: str, seal: dict[str, Any] | None) -> bool:
    """Take the slots that are new; what followed from another order is forgotten. False when nothing is new."""
    slots, new = state["slots"], _new(desk, state, given, seal)
    if not new:
        return False
    # What the shop said of one order is no fact about another.
    kept = {name: value for name, value in slots.items() if "order_id" not in new or name not in _OF_ORDER}
    state["slots"] = {**kept, **new}
    state["sources"] = {**state["sources"], **dict.fromkeys(new, message_id)}
    # The clear value goes where its masked one goes; without it the call could not be made.
    if seal is not None:
        state["seal"] = seal
        state["seals"] = {**state.get("seals", {}), **{name: seal for name in SEALED if name in new}}
    desk.draft.reason("planning.slots", f"{state['flow']}: {', '.join(new)}", message_id)
    return True


def moved(desk: Desk, state: FlowDict) -> None:
    """Slots have changed: on by what is still missing, or back to the check when all was known."""
    flow = desk.flow_of(state)
    if state["concluded"] == "asking":
        state["concluded"] = "done"
    # What is under review is no longer what the customer wants; approved, it would be the wrong refund.
    if state["waiting_for"] == "review":
        calls.drop_review(desk, state)
    what = wanting(flow, state["node"], state["slots"])
    # Where all was known before, the new value must pass the check and the confirmation again (R-003-08).
    if what == "complete" and flow.target(state["node"], "changed"):
        what = "changed"
    if not moves.fire(desk, state, what):
        unclear(desk, state)


def unclear(desk: Desk, state: FlowDict) -> None:
    """Nothing that the flow can use: ask again (which counts), or say that it is being done."""
    if state["waiting_for"] == "review":
        desk.say("common.in_progress")
    elif state["concluded"] == "asking" or not moves.fire(desk, state, "unclear"):
        moves.ask(desk, state)
