"""A customer's message: a person first, then stop, then what it means for the flow under way, then a new flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from agents.planning import answers, calls, handover, moves, offers, recalls, related, wishes
from agents.planning.desk import Desk
from agents.planning.noted import noted
from schemas.events import MessageBody
from schemas.messages import NormalizedMessage

UPSET = {"angry", "impatient", "disappointed"}
ASKED_MAX = 20
_STATES = frozenset({"inform", "out_of_scope", "greeting", "thanks"})  # what asks for nothing that a flow does


def on_message(desk: Desk, message: NormalizedMessage) -> None:
    """Handle one message, or let it wait while a tool runs: recalls, stops and wishes for a person do not wait."""
    ref = message.ref
    _session(desk, message)
    if ref.revision > 1:  # an edit is a recall and a new message in one
        recalls.withdraw(desk, ref.message_id, quiet=True)
    desk.language, desk.in_reply_to = message.language, ref.message_id
    # Before everything else: a person beats every rule (X9).
    if desk.owner == "human":
        _for_person(desk, message)
        return
    top = desk.top
    # What waits is read against the question that the result will raise, not against the one before it (B25).
    if top is not None and top["waiting_for"] == "tool" and message.intent not in {"human", "stop"}:
        _while_tool_runs(desk, message)
        return
    handle(desk, message)
    proceed(desk)


def _session(desk: Desk, message: NormalizedMessage) -> None:
    if desk.asked_session != message.ref.session_id:
        if desk.handover is not None:  # half an hour later they may think that nobody heard them
            desk.handover = {**desk.handover, "noticed": False}
        desk.asked, desk.clarified, desk.asked_session = {}, 0, message.ref.session_id


def _for_person(desk: Desk, message: NormalizedMessage) -> None:
    """The agent stays silent; once a session, unless a person has come in it, the customer is told that it waits."""
    handover.keep(desk, message.text, message.ref.message_id)
    desk.draft.reason("planning.kept_for_person", "the conversation is a person's", message.ref.message_id)
    waiting = desk.handover or {}
    if not waiting.get("noticed"):
        desk.handover = {**waiting, "noticed": True}
        desk.say("handover.waiting")


def wordless(desk: Desk, body: MessageBody) -> None:
    """A recording or a file without words: asked for them, or kept for the person who has the conversation (B09)."""
    kinds = {part.kind for part in body.attachments}
    if desk.owner == "human":
        handover.keep(desk, f"[{', '.join(sorted(kinds))}]", body.message_id)
        desk.draft.reason("planning.kept_for_person", "a file without words", body.message_id)
        return
    desk.draft.reason("planning.wordless", "there is nothing to read in it", body.message_id)
    desk.say("common.say_again" if kinds == {"voice"} else "common.no_words")


def _while_tool_runs(desk: Desk, message: NormalizedMessage) -> None:
    top = desk.top
    if message.intent == "confirm" and top is not None and calls.in_flight(desk, top):
        desk.draft.reason("planning.confirmed_before", "it runs already (J15)", message.ref.message_id)
        desk.say("common.in_progress")
        return
    if message.intent == "hurry_up":
        desk.draft.reason("planning.hurried", "its call runs", message.ref.message_id)
        desk.say("common.in_progress")
        return
    if not _room(desk, message, 1):
        return
    desk.queue.append(wishes.waiting(message))
    desk.draft.reason("planning.queued", "a tool runs; it goes on after the result", message.ref.message_id)


def handle(desk: Desk, message: NormalizedMessage) -> None:
    """One message that has its turn. Order: a person, anger, stop, the same question, choices, the flow, a new flow."""
    before, top, number = desk.last_message, desk.top, message.ref.message_id
    desk.last_message = {"message_id": number, "intent": message.intent, "sentiment": message.sentiment}
    offer, desk.offer = desk.offer, []
    if top is not None:
        top["language"] = message.language
    # Also as a second wish: "refund 1001, or get me a person" is not answered by a form.
    if message.intent == "human" or any(one.intent == "human" for one in message.secondary_intents):
        desk.draft.reason("planning.wants_person", "the customer asks for a person", number)
        moves.hand(desk, "wish", number)
    elif top is not None and message.sentiment in UPSET and before is not None and before["sentiment"] in UPSET:
        desk.draft.reason("planning.upset", "upset in two messages running with an open task", number)
        moves.hand(desk, "emotion", number)
    elif message.intent == "stop":
        stop(desk, message)
    elif len(message.secondary_intents) >= desk.config.wishes_max:
        desk.draft.reason("planning.too_many_wishes", f"{1 + len(message.secondary_intents)} in one message", number)
        moves.hand(desk, "too_many_wishes", number)
    elif _asked_too_often(desk, message):
        desk.draft.reason("planning.same_question", "asked for the third time", number)
        moves.hand(desk, "same_question", number)
    elif _numbered(desk, message, offer):
        return
    elif message.intent in {"confirm", "deny"} and any(one["guess"] for one in offer):
        _guessed(desk, message, offer)
    elif (meant := offers.named(offer, message)) is not None:
        slots = {**meant["slots"], **wishes.primary(message)}
        _begin(desk, message, [{**wishes.wish(message, message.intent, slots), **_origin(meant, message)}])
    else:
        _by_intent(desk, message)


def _numbered(desk: Desk, message: NormalizedMessage, offer: list[dict[str, Any]]) -> bool:
    """Whether the message was a number that means something; what was offered last is what it means."""
    top = desk.top
    if (meant := wishes.chosen(offer, message)) is not None:
        _begin(desk, message, [{**wishes.wish(message, meant["intent"], meant["slots"]), **_origin(meant, message)}])
    elif top is not None and (choice := wishes.chosen(top["choices"], message)) is not None:
        answers.choose(desk, top, choice, message)
    elif top is not None and (reply := _to_reminder(desk, message)) is not None:
        _after_reminder(desk, message, reply)
    else:
        return False
    return True


def _to_reminder(desk: Desk, message: NormalizedMessage) -> str | None:
    """What the number means to delivery's follow-up (R-002-32), when nothing was said after it.

    It offers numbers of its own only under a question that has none, so one number never means two things.
    """
    sent = desk.draft.get("actions", "messages", default={}).values()
    last = max(sent, key=lambda one: one["queued_at"], default=None)
    means = last["params"].get("means", ()) if last is not None and last["kind"] == "follow_up" else ()
    number = wishes.choice_number(message)
    return means[number - 1] if number is not None and number <= len(means) else None


def _after_reminder(desk: Desk, message: NormalizedMessage, reply: str) -> None:
    desk.draft.reason("planning.reminded", reply, message.ref.message_id)
    if reply == "human":
        moves.hand(desk, "wish", message.ref.message_id)
    elif reply == "stop":
        stop(desk, message)
    elif desk.top is not None:
        moves.ask(desk, desk.top)


def _origin(meant: Mapping[str, Any], message: NormalizedMessage) -> dict[str, Any]:
    """A choice goes on with the message that it answers: its slots' seal, and its id for a recall."""
    return {"seal": meant["seal"]} if message.seal is None else {}


def _by_intent(desk: Desk, message: NormalizedMessage) -> None:
    top = desk.top
    flow = desk.pack.by_intent.get(message.intent)
    fills = top is not None and answers.fits(desk, top, message)
    if not fills and _unanswered(desk, message) and noted(desk, message):
        desk.clarified, desk.ended_top = 0, top is not None  # what was asked before is asked once more
        return
    if message.confidence < desk.config.confidence_min and not fills and message.intent not in offers.COURTESY:
        _clarify(desk, message)
        return
    desk.clarified = 0
    talk = message.intent in offers.COURTESY and flow is None
    ours = (
        top is not None
        and (flow.flow == top["flow"] if flow else fills or message.intent in offers.UNASKED)
        and not talk
    )
    if message.intent == "hurry_up" and not fills:
        _hurry(desk, message)
    elif ours and top is not None and not answers.another_order(desk, top, message):
        answers.answer(desk, top, message)
        _queue_others(desk, message)
    elif talk:
        _courtesy(desk, message)
    elif flow is None and message.intent in offers.UNASKED and not _others(desk, message):
        _without_flow(desk, message)
    else:
        _begin(desk, message, wishes.wishes(message))


def _unanswered(desk: Desk, message: NormalizedMessage) -> bool:
    """Whether nothing but a polite word, a menu or "what do you mean?" would answer the message."""
    if "order_id" in wishes.primary(message) or any(one.intent not in _STATES for one in message.secondary_intents):
        return False
    return message.intent in _STATES or message.confidence < desk.config.confidence_min


def _others(desk: Desk, message: NormalizedMessage) -> bool:
    """Whether a second wish of the message can be granted."""
    return any(one.intent in desk.pack.by_intent for one in message.secondary_intents)


def _hurry(desk: Desk, message: NormalizedMessage) -> None:
    """What is under way is hurried: by saying so, by its question, or by looking where it is."""
    top, asked = desk.top, wishes.wishes(message)
    if top is not None and wishes.primary(message).get("order_id") in (None, top["slots"].get("order_id")):
        desk.draft.reason("planning.hurried", f"{top['flow']} is under way", message.ref.message_id, top["plan_id"])
        desk.say("common.in_progress" if top["waiting_for"] == "review" else "common.understood")
        desk.ended_top = True  # where it waits for the customer, its question once more
        _queue_others(desk, message)
        return
    flow, meant = related.urged(desk)
    if flow is not None and asked[0]["intent"] == "hurry_up":
        desk.draft.reason("planning.hurried", f"{flow.flow} tells where it is", message.ref.message_id)
        asked[0] = {**asked[0], "intent": flow.intents[0], "slots": {**meant, **asked[0]["slots"]}}
    _begin(desk, message, asked)


def _queue_others(desk: Desk, message: NormalizedMessage) -> None:
    offers.unserved(desk, message, wishes.others(message), offer=False)
    others = [one for one in wishes.others(message) if one["intent"] in desk.pack.by_intent]
    if not _room(desk, message, len(others)):
        return
    for one in others:
        desk.queue.append(one)
        desk.draft.reason("planning.queued", f"{one['intent']}: a second wish", message.ref.message_id)


def _room(desk: Desk, message: NormalizedMessage, count: int) -> bool:
    """Whether so many more can wait; if not, a person gets the message, and all that waited."""
    if len(desk.queue) + count <= desk.config.queue_max:
        return True
    desk.draft.reason("planning.queue_full", f"{len(desk.queue)} wait", message.ref.message_id)
    moves.hand(desk, "queue_full", message.ref.message_id)
    handover.keep(desk, message.text, message.ref.message_id)
    return False


def _begin(desk: Desk, message: NormalizedMessage, asked: list[dict[str, Any]]) -> None:
    """Start the message's flows: queries first, so that the one that asks back comes last (F01)."""
    known = [one for one in asked if one["intent"] in desk.pack.by_intent]
    offers.unserved(desk, message, asked, offer=not known and desk.top is None)
    if not _room(desk, message, len(known)):
        return
    # A query ends without the customer; what asks back comes last, so that its question is the one that stands.
    ordered = sorted(known, key=lambda one: not desk.pack.by_intent[str(one["intent"])].quick)
    desk.queue = [*ordered, *desk.queue]
    # What waits behind keeps its place; a new wish is what the customer talks of now.
    desk.ended_top = True  # the first of them starts now, above what is under way


def _courtesy(desk: Desk, message: NormalizedMessage) -> None:
    """A kind word, and the question that was open once more (R-003-12)."""
    if message.intent == "complaint" and desk.top is None:
        offers.offered(desk, "common.complaint")
    elif message.intent == "complaint":
        desk.say("common.complaint_open")
    else:
        desk.say("common.welcome" if message.intent == "thanks" else "common.greeting" if desk.top is None
                 else "common.understood")  # fmt: skip
    desk.ended_top = desk.top is not None
    if message.secondary_intents:
        _begin(desk, message, wishes.others(message))


def _without_flow(desk: Desk, message: NormalizedMessage) -> None:
    slots = wishes.primary(message)
    if message.intent == "confirm" and desk.last_done is not None:
        desk.draft.reason("planning.confirmed_before", "nothing is open (J15)", message.ref.message_id)
        desk.say("common.already_handled")
    elif message.intent in {"confirm", "deny"}:
        desk.say("common.closing")
    elif "order_id" in slots:
        offers.offered(desk, "common.what_about_order", slots, message=message)
    else:
        offers.offered(desk, "common.out_of_scope")


def _guessed(desk: Desk, message: NormalizedMessage, offer: list[dict[str, Any]]) -> None:
    """A yes or no to "is it about ...?" (B25: the yes opens the flow; the number that comes next fills its slot)."""
    desk.clarified = 0 if message.intent == "confirm" else desk.clarified
    guess = next(one for one in offer if one["guess"])
    if message.intent == "deny" and guess["intent"] == "human":  # no person then, and nothing else was meant
        desk.say("common.closing")
        return
    if message.intent == "deny":
        offers.offered(desk, "common.clarify")
        return
    slots = {**guess["slots"], **wishes.primary(message)}
    _begin(desk, message, [{**wishes.wish(message, str(guess["intent"]), slots), **_origin(guess, message)}])


def _clarify(desk: Desk, message: NormalizedMessage) -> None:
    """The step is red: one clarifying question, the next time a person."""
    desk.clarified += 1
    desk.draft.reason("planning.red_step", f"{message.intent} at {message.confidence:.2f}", message.ref.message_id)
    if desk.clarified > 1:
        moves.hand(desk, "low_confidence", message.ref.message_id)
    elif desk.top is not None and desk.top["waiting_for"] == "customer":
        desk.say("common.sorry")
        # The choices of a clarifying list would clash with the numbers under the flow's own question.
        desk.ended_top = True  # its question once more; its numbers stay what they were
    elif message.intent in desk.pack.by_intent:
        offers.offered(desk, "common.clarify_guess", wishes.primary(message), message.intent, message)
    else:
        offers.offered(desk, "common.clarify")


def _asked_too_often(desk: Desk, message: NormalizedMessage) -> bool:
    """The customer's same question for the third time in this session (R-003-13)."""
    if message.intent not in desk.pack.by_intent:
        return False
    slots = wishes.primary(message)
    # With its slots: asking for three parcels is no third time. The phone is masked, so it tells nothing apart.
    question = "|".join([message.intent, *(f"{name}={slots[name]}" for name in sorted(slots) if name != "phone")])
    desk.asked = {**desk.asked, question: desk.asked.get(question, 0) + 1}
    while len(desk.asked) > ASKED_MAX:
        del desk.asked[next(iter(desk.asked))]
    return desk.asked[question] >= desk.config.same_question_max


def stop(desk: Desk, message: NormalizedMessage) -> None:
    """The customer stops the flow under way (F17), or the one of the order that they name; what runs goes on."""
    flow, named = desk.top, wishes.primary(message).get("order_id")
    # A stop that names an order is never a stop of another one, which would go on unseen or be dropped unasked.
    if named is not None and flow is not None and flow["slots"].get("order_id") not in (None, named):
        flow = next((one for one in reversed(desk.flows) if one["slots"].get("order_id") == named), None)
        if flow is None:
            desk.draft.reason("planning.nothing_to_stop", f"no flow of order {named}", message.ref.message_id)
            desk.say("common.sorry")
            desk.ended_top = True
            return
    if flow is None:
        desk.say("common.nothing_to_stop")
    elif calls.in_flight(desk, flow):
        desk.draft.reason("planning.too_late", "the call is under way", str(flow["call_id"]))
        desk.say("common.too_late", language=flow["language"])
    else:
        moves.fire(desk, flow, "stopped", "stopped")
    others = [one for one in wishes.others(message) if one["intent"] != "stop"]
    if others:  # "don't refund 1001, refund 1002": the second wish is one
        _begin(desk, message, others)


def _start(desk: Desk, waiting: dict[str, Any]) -> None:
    flow = desk.pack.by_intent[waiting["intent"]]
    open_ = related.same(desk, flow, waiting["slots"])
    if open_ is not None:
        related.join(desk, open_, waiting)
    else:
        moves.start(desk, flow.flow, related.with_order(desk, flow, waiting["slots"]), waiting)


def proceed(desk: Desk) -> None:
    """Go on with what waits: messages in order, then wishes, then the flow below, its question asked once."""
    # Each round takes one from the queue or ends; a message may add wishes, a wish adds nothing: it ends.
    while desk.owner == "agent":
        top = desk.top
        if top is not None and top["waiting_for"] == "tool":
            return
        # A wish must not interrupt a question; during a review the customer has nothing to answer.
        free = top is None or top["waiting_for"] == "review" or desk.ended_top
        index = next((at for at, one in enumerate(desk.queue) if free or one["kind"] == "message"), None)
        if index is None:
            break
        waiting = desk.queue.pop(index)
        desk.in_reply_to = waiting["message_id"]
        if waiting["kind"] == "message":
            # Read once, when it came; only what it means to the flow is decided now.
            message = NormalizedMessage.model_validate_json(orjson.dumps(waiting["message"]))
            desk.language = message.language
            handle(desk, message)
        elif len(desk.flows) >= desk.config.flows_max:
            desk.draft.reason("planning.too_many_flows", f"{len(desk.flows)} are open", waiting["message_id"])
            moves.hand(desk, "too_many_flows", waiting["message_id"])
            handover.keep(desk, waiting["text"], waiting["message_id"])
        else:
            desk.ended_top = False
            _start(desk, waiting)
    top = desk.top
    if desk.ended_top and desk.owner == "agent" and top is not None and top["waiting_for"] == "customer":
        desk.draft.reason("planning.resume", f"back to {top['flow']} at {top['node']}", top["plan_id"])
        moves.ask(desk, top)
        desk.touch(top)
    desk.ended_top = False
