"""A linked conversation hears its customer no more: what waits for their word, or for a person, ends and is told."""

from __future__ import annotations

from agents.identity import root_of
from agents.planning import handover, moves
from agents.planning.desk import Desk
from schemas.events import ChannelEvent
from schemas.people import HumanRequest


def on_link(desk: Desk, event: ChannelEvent) -> None:
    """A link was taken, arrived or came back: who waits for a person does so where they write next (X9)."""
    way = event.forwarded
    if way is None:
        _leave_person(desk)
    elif way.person and (way.refused or way.conversation in desk.draft.get("identity", "linked", default={})):
        desk.draft.reason("planning.person_follows", f"a person was wanted in {event.conversation}", event.event_id)
        moves.hand(desk, "linked", event.event_id)


def settle(desk: Desk) -> None:
    """In a linked conversation nothing stays open but calls that run: those go on to their outcome, which is told."""
    if root_of(desk.draft) is None:
        return
    ended = []
    for state in reversed(desk.flows):
        # Its question was never sent, if this decision would have asked it: nobody could answer it here.
        if state["waiting_for"] != "tool":
            desk.unsay(state["plan_id"])
            desk.language, desk.in_reply_to = state["language"], state["message_id"]
            ended.append(desk.title(state["flow"], state["language"]))
            desk.draft.reason(
                "planning.linked",
                f"{state['flow']} ends here, and asks nothing more",
                state["plan_id"],
                state["message_id"],
            )
            moves.end(desk, state, "cancelled")
    for waiting in desk.queue:
        desk.draft.reason("planning.linked", "it had not had its turn yet", waiting["message_id"])
    waited, desk.queue, desk.offer = desk.queue, [], []
    if ended:
        desk.say("linked.ended", {"titles": ("、" if desk.language != "en" else ", ").join(ended)})
    elif waited:
        desk.in_reply_to = waited[-1]["message_id"]
        desk.say("linked.again")


def _leave_person(desk: Desk) -> None:
    """The root asks for a person in its own name, so that nobody waits in a place where no one writes any more."""
    known, taken = desk.handover, desk.draft.get("identity", "since") == desk.draft.version
    if not taken or root_of(desk.draft) is None or (desk.owner != "human" and known is None):
        return  # a person who came after the link is here for what ran on
    handover.settle(desk)
    if known is not None and known["request_id"] is not None:
        desk.publish("human.requests", HumanRequest(
            request_id=str(known["request_id"]), session_id=desk.session_id, kind="handover", rule=str(known["rule"]),
            reason=f"the customer goes on in {root_of(desk.draft)}, where a person is asked", status="closed",
            requested_at=known["at"],
        ))  # fmt: skip
    desk.owner, desk.handover = "agent", None
    desk.draft.reason("planning.person_leaves", f"to {root_of(desk.draft)}", desk.draft.cause.id)
