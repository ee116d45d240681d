"""Identity links: customer messages of a linked conversation go to its root, one hop at most (R-003-05, design 3a).

Nobody reads another conversation's state. A link that was taken goes to the root as an event of its own; a root that
can't have it sends it back, and the link ends. What was forwarded is handled where it arrives, so nothing can circle.
"""

from __future__ import annotations

from schemas.events import ChannelEvent, EditBody, Forwarded, IdentityLinkBody, MessageBody, RecallBody, linked_id
from schemas.step import Draft, Input, Step

# What proves that two senders are one customer. A name, a picture or an address never does.
PROOFS = frozenset({"login", "phone_code", "email_code", "union_id"})
LINKED_MAX = 20  # conversations of one customer: more is no customer, and would make the state large
EVENTS = "channel.events"
_CUSTOMER = (MessageBody, RecallBody, EditBody)


def step(draft: Draft, cause: Input) -> None:
    """The pure step of channel.events; it runs before all others."""
    event: ChannelEvent = cause.value
    if isinstance(event.body, IdentityLinkBody):
        _link(draft, event, event.body)
    elif not isinstance(event.body, _CUSTOMER):
        return
    elif event.forwarded is not None:
        draft.reason("identity.heard", f"written in {event.forwarded.conversation}", event.event_id)
        _answer_at(draft, event.forwarded.conversation)
    elif goes_on(draft, cause):
        _forward(draft, event)
    else:
        _answer_at(draft, None)


def root_of(draft: Draft) -> str | None:
    """The root that this conversation is linked to now, or None."""
    root: str | None = draft.get("identity", "root")
    return root


def goes_on(draft: Draft, cause: Input) -> bool:
    """Whether the input is a customer message that its root handles, and nobody here."""
    event = cause.value
    return (isinstance(event, ChannelEvent) and isinstance(event.body, _CUSTOMER) and event.forwarded is None
            and root_of(draft) is not None)  # fmt: skip


def standing_aside(inner: Step) -> Step:
    """The step for everything but what the root handles."""

    def outer(draft: Draft, cause: Input) -> None:
        if not goes_on(draft, cause):
            inner(draft, cause)

    return outer


def _forward(draft: Draft, event: ChannelEvent) -> None:
    """The event as it is, with its seal; only the message's name tells the channels apart."""
    body, root, since = event.body, root_of(draft), draft.get("identity", "since")
    if not isinstance(body, _CUSTOMER):
        return
    named = body.model_copy(update={"message_id": linked_id(draft.conversation, body.message_id)})
    way = Forwarded(conversation=draft.conversation, since=since)
    draft.emit(EVENTS, event.model_copy(update={"body": named, "forwarded": way}), key=root)
    draft.reason("identity.forwarded", f"to {root}, linked since version {since}", event.event_id)


def _answer_at(draft: Draft, conversation: str | None) -> None:
    """Answers go where the customer wrote last. A conversation without links has no identity in its state."""
    if draft.get("identity", "answer_at") != conversation:
        draft.set(conversation, "identity", "answer_at")


def _link(draft: Draft, event: ChannelEvent, body: IdentityLinkBody) -> None:
    way = event.forwarded
    if way is None and root_of(draft) is not None and body.root == draft.conversation:
        _end(draft, event, body)
    elif way is None:
        _begin(draft, event, body)
    elif event.conversation == draft.conversation:
        _sent_back(draft, event, way)
    elif body.root == draft.conversation:
        _welcome(draft, event, way, body.proof)
    else:
        _part(draft, event, way)


def _begin(draft: Draft, event: ChannelEvent, body: IdentityLinkBody) -> None:
    """Take the link, or say why not: a link that is in doubt joins nobody."""
    if root_of(draft) == body.root:
        draft.reason("identity.repeat", f"it is linked to {body.root} already", event.event_id)
        return
    obstacle = _weak(body) or _elsewhere(draft, body.root) or _two_hops(draft, body.root)
    if obstacle:
        draft.reason("identity.refused", f"no link to {body.root}: {obstacle}", event.event_id)
        return
    planning = draft.get("planning")
    way = Forwarded(conversation=draft.conversation, since=draft.version,
                    person=planning["owner"] == "human" or planning["handover"] is not None)  # fmt: skip
    for name, value in (
        ("root", body.root),
        ("since", draft.version),
        ("proof", body.proof),
        ("returns_to", body.root),
    ):
        draft.set(value, "identity", name)
    draft.emit(EVENTS, event.model_copy(update={"forwarded": way}), key=body.root)
    draft.reason("identity.linked", f"to {body.root} by {body.proof}, from version {draft.version} on", event.event_id)


def _weak(body: IdentityLinkBody) -> str:
    return "" if body.proof in PROOFS else f"{body.proof} is no proof; there are {', '.join(sorted(PROOFS))}"


def _elsewhere(draft: Draft, root: str) -> str:
    parts = root.split("/")
    if parts[0] != draft.conversation.split("/")[0]:
        return "it is another shop's"
    # as strict as the key of any event: a forward with a key that no one owns would never be heard
    if not all(part.isprintable() and part == part.strip() and len(part) <= 64 for part in parts):
        return "it can't be a conversation"
    return "it is this conversation itself" if root == draft.conversation else ""


def _two_hops(draft: Draft, root: str) -> str:
    linked = draft.get("identity", "linked", default={})
    if root_of(draft) is not None:
        return f"this one is linked to {root_of(draft)}; that link must end first"
    if root in linked:
        return "it is linked to this one, and two links would make a circle"
    return f"{', '.join(sorted(linked))} would be two hops away" if linked else ""


def _end(draft: Draft, event: ChannelEvent, body: IdentityLinkBody) -> None:
    """A linked conversation names itself: from here on it is a customer of its own again."""
    obstacle = _weak(body)
    if obstacle:
        draft.reason("identity.refused", f"the link stays: {obstacle}", event.event_id)
        return
    root, since = root_of(draft), draft.get("identity", "since")
    way = Forwarded(conversation=draft.conversation, since=since)
    draft.emit(EVENTS, event.model_copy(update={"forwarded": way}), key=root)
    draft.set(None, "identity", "root")
    draft.reason("identity.ended", f"to {root} it was linked since version {since}", event.event_id)


def _welcome(draft: Draft, event: ChannelEvent, way: Forwarded, proof: str) -> None:
    """At the root: know the other conversation, or send its link back. Both of a circle end this way at the latest."""
    child, root = way.conversation, root_of(draft)
    linked = draft.get("identity", "linked", default={})
    obstacle = f"the root is linked to {root} itself" if root is not None else ""
    if not obstacle and child not in linked and len(linked) >= LINKED_MAX:
        obstacle = f"{LINKED_MAX} conversations are linked to it already"
    if obstacle:
        back = way.model_copy(update={"conversation": draft.conversation, "refused": obstacle})
        draft.emit(EVENTS, event.model_copy(update={"forwarded": back}), key=child)
        draft.reason("identity.sent_back", f"the link of {child}: {obstacle}", event.event_id)
        return
    draft.set({"since": way.since, "at": draft.now, "proof": proof}, "identity", "linked", child)
    if way.person:  # the person's first word is for the customer who waits there
        _answer_at(draft, child)
    draft.reason("identity.joined", f"{child} by {proof}, from its version {way.since} on", event.event_id)


def _sent_back(draft: Draft, event: ChannelEvent, way: Forwarded) -> None:
    """The root did not take it: messages are handled here again."""
    if root_of(draft) != way.conversation or draft.get("identity", "since") != way.since:
        draft.reason("identity.stale", "the link had ended meanwhile", event.event_id)
        return
    draft.set(None, "identity", "root")
    draft.reason("identity.refused", f"{way.conversation} did not take the link: {way.refused}", event.event_id)


def _part(draft: Draft, event: ChannelEvent, way: Forwarded) -> None:
    """At the root: the other conversation is a customer of its own again."""
    draft.delete("identity", "linked", way.conversation)
    if draft.get("identity", "answer_at") == way.conversation:
        draft.set(None, "identity", "answer_at")
    draft.reason("identity.parted", f"{way.conversation} is linked no more", event.event_id)
