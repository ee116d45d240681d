"""A message that the customer took back: what it started is cancelled, if it was not executed yet (B11)."""

from __future__ import annotations

from agents.flows.engine import missing
from agents.planning import calls, moves
from agents.planning.desk import Desk, FlowDict


def withdraw(desk: Desk, message_id: str, *, quiet: bool = False) -> None:
    """Undo what the message began or gave. `quiet`: an edit, whose new words are handled next."""
    waiting = [one for one in desk.queue if one["message_id"] != message_id]
    if len(waiting) < len(desk.queue):
        desk.draft.reason("planning.recalled", "it had not had its turn yet", message_id)
        desk.queue = waiting
    desk.muted = quiet
    # Over a copy: ending a flow takes it off the list. One message may have begun several.
    for state in list(desk.flows):
        gave = [name for name, source in state["sources"].items() if source == message_id]
        if state["message_id"] != message_id and not gave:
            continue
        if calls.in_flight(desk, state):
            desk.draft.reason("planning.too_late", "the call is under way", message_id, str(state["call_id"]))
            desk.say("common.too_late", language=state["language"])
        elif state["message_id"] == message_id:
            desk.draft.reason("planning.recalled", f"{state['flow']} was begun by it", message_id)
            moves.fire(desk, state, "recalled", "recalled")
        else:
            _take_back(desk, state, gave, message_id)
    desk.muted = False
    if not quiet and desk.last_done is not None and desk.last_done["message_id"] == message_id:
        over = f"{desk.last_done['flow']} is over: {desk.last_done['status']}"
        desk.draft.reason("planning.recalled", over, message_id)


def _take_back(desk: Desk, state: FlowDict, gave: list[str], message_id: str) -> None:
    """The slots, or the yes, that the message gave no longer count."""
    desk.draft.reason("planning.recalled", f"{state['flow']} forgets {', '.join(gave)}", message_id)
    state["slots"] = {name: value for name, value in state["slots"].items() if name not in gave}
    state["sources"] = {name: source for name, source in state["sources"].items() if name not in gave}
    calls.drop_review(desk, state)
    # Without the yes the confirmation is asked again; without a slot, the slot is.
    what = missing(desk.flow_of(state), state["slots"])
    if what == "complete":
        what = "unconfirmed" if "confirmed" in gave else "changed"
    # Where the table has no way back, a result is on its way that moves the flow on.
    if desk.flow_of(state).target(state["node"], what):
        moves.fire(desk, state, what)
