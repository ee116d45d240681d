"""Identity links, decision by decision: what a conversation takes, forwards and sends back."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agents.identity import LINKED_MAX, PROOFS, goes_on, standing_aside, step
from memory.bus import empty
from schemas.base import MAX_ID_CHARS
from schemas.events import (
    Body,
    ChannelEvent,
    EditBody,
    Forwarded,
    HeartbeatBody,
    IdentityLinkBody,
    MessageBody,
    RecallBody,
    Seal,
    UnsupportedBody,
    linked_id,
    own_id,
)
from schemas.state import ConversationState
from schemas.step import Decision, Draft, Input, State

T0 = 1_767_578_400_000
OLD, ROOT = "demo/wechat/w-1", "demo/web/u-1"
SEAL = Seal(key_id="k-old", nonce="bm9uY2Vub25jZQ==", sealed="c2VhbGVk")
SAID = MessageBody(kind="message", message_id="m-1", text="你好")


def event(body: Body, of: str = OLD, way: Forwarded | None = None) -> ChannelEvent:
    """An event of that sender, as intake makes it, or as it is forwarded."""
    shop, channel, sender = of.split("/")
    return ChannelEvent(id="e-1", event_id="ev-1", shop=shop, channel=channel, sender=sender, occurred_at=T0, body=body,
                        seal=SEAL, forwarded=way)  # fmt: skip


def link(root: str = ROOT, proof: str = "login", of: str = OLD, way: Forwarded | None = None) -> ChannelEvent:
    """A link of that sender."""
    return event(IdentityLinkBody(kind="identity_link", root=root, proof=proof), of, way)


def decide(state: State, given: ChannelEvent) -> Decision:
    """One decision of the step, which always has a reason for what it changes, on a state that its model takes."""
    cause = Input("channel.events", 0, state["version"], T0, state["conversation"], given.event_id, "t", given)
    draft = Draft(state, cause)
    step(draft, cause)
    decision = draft.finish()
    ConversationState.model_validate_json(orjson.dumps(decision.state))
    assert decision.reasons or not decision.changes
    return decision


def linked(state: State | None = None) -> State:
    """The old conversation, linked to the root."""
    return decide(state or empty(OLD), link()).state


@pytest.mark.parametrize("proof", sorted(PROOFS))
def test_a_proven_link_is_taken_and_told(proof: str) -> None:
    """The version that takes a link is stated, and the root hears of it before any message (R-003-05)."""
    decision = decide({**empty(OLD), "version": 6}, link(proof=proof))
    assert {"root": ROOT, "since": 7, "proof": proof, "returns_to": ROOT} == decision.state["identity"]
    (emit,) = decision.emits
    assert ("channel.events", ROOT) == (emit.topic, emit.key)
    assert isinstance(emit.value, ChannelEvent)
    assert Forwarded(conversation=OLD, since=7) == emit.value.forwarded


@pytest.mark.parametrize("text", ["name", "nickname", "avatar", "same_address", "birthday", "phone", "unknown"])
def test_only_proofs_of_the_list_join_customers(text: str) -> None:
    """A name or a likeness joins nobody, nor does a proof that we do not know (R-003-05)."""
    decision = decide(empty(OLD), link(proof=text))
    assert [(), ["identity.refused"]] == [decision.emits, [rule for rule, _, _ in decision.reasons]]
    assert "identity" not in decision.state


@pytest.mark.parametrize(
    "body",
    [
        SAID,
        EditBody(kind="edit", message_id="m-1", text="你好"),
        RecallBody(kind="recall", message_id="m-1"),
    ],
)
def test_customer_messages_are_forwarded_as_they_are(body: MessageBody | EditBody | RecallBody) -> None:
    """Event id, sender, seal and key id stay; only the message's name says where it is from (R-003-05, promise 9)."""
    before = event(body)
    (emit,) = decide(linked(), before).emits
    way = Forwarded(conversation=OLD, since=1)
    named = body.model_copy(update={"message_id": linked_id(OLD, "m-1")})
    assert before.model_copy(update={"body": named, "forwarded": way}) == emit.value
    assert (ROOT, "channel.events") == (emit.key, emit.topic)


@pytest.mark.parametrize("body", [HeartbeatBody(kind="heartbeat"), UnsupportedBody(kind="unsupported", type="x")])
def test_what_is_no_message_stays(body: Body) -> None:
    """Nothing else is forwarded (design 3a, R-003-05)."""
    assert () == decide(linked(), event(body)).emits


def test_a_forwarded_message_is_never_forwarded_again() -> None:
    """One hop: at a conversation that is linked itself it is handled there (R-003-05)."""
    given = event(SAID, "demo/app/a-1", Forwarded(conversation="demo/app/a-1", since=3))
    state = linked()
    cause = Input("channel.events", 0, 9, T0, OLD, "ev-1", "t", given)
    assert not goes_on(Draft(state, cause), cause)
    decision = decide(state, given)
    assert () == decision.emits
    assert "demo/app/a-1" == decision.state["identity"]["answer_at"]


def test_other_steps_leave_forwarded_messages_alone() -> None:
    """Who reads words stands aside for those that the root handles, and for nothing else (R-003-05)."""
    seen: list[str] = []
    aside = standing_aside(lambda _, cause: seen.append(cause.value.body.kind))
    for state in (empty(OLD), linked()):
        for body in (SAID, HeartbeatBody(kind="heartbeat")):
            cause = Input("channel.events", 0, 9, T0, OLD, "ev-1", "t", event(body))
            aside(Draft(state, cause), cause)
    assert ["message", "heartbeat", "heartbeat"] == seen


def test_a_message_without_links_costs_nothing() -> None:
    """A conversation that has no link has no identity in its state, and no diff of it (R-003-05)."""
    decision = decide(empty(OLD), event(SAID))
    assert ((), (), ()) == (decision.changes, decision.reasons, decision.emits)


def _notice(of: str = OLD, since: int = 1, **more: Any) -> ChannelEvent:
    return link(ROOT, of=of, way=Forwarded(conversation=of, since=since, **more))


def test_a_root_that_is_linked_sends_a_link_back() -> None:
    """The other conversation's own link comes back to it with the reason, and ends there (R-003-05)."""
    (emit,) = decide({**empty(ROOT), "identity": {"root": "demo/app/a-1", "since": 2}}, _notice()).emits
    back = emit.value
    assert isinstance(back, ChannelEvent)
    assert (OLD, True) == (emit.key, bool(back.forwarded and back.forwarded.refused))
    after = decide(linked(), back)
    assert (None, ()) == (after.state["identity"]["root"], after.emits)


def test_an_old_answer_ends_no_new_link() -> None:
    """A link that came back late, after another was taken, changes nothing (R-003-05)."""
    back = link(way=Forwarded(conversation=ROOT, since=1, refused="the root is linked"))
    again = linked({**empty(OLD), "version": 4})
    after = decide(again, back)
    assert (ROOT, ["identity.stale"]) == (after.state["identity"]["root"], [rule for rule, _, _ in after.reasons])


def test_the_same_link_twice_is_one() -> None:
    """A repeat under a new event id changes nothing; another root needs an end first (R-003-05)."""
    again, other = decide(linked(), link()), decide(linked(), link("demo/app/a-1"))
    assert [((), ()), ((), ())] == [(one.changes, one.emits) for one in (again, other)]
    assert ["identity.repeat", "identity.refused"] == [one.reasons[0][0] for one in (again, other)]


def test_a_root_has_room_for_so_many() -> None:
    """One more is sent back; who is there already is welcome again (R-003-05)."""
    state: State = empty(ROOT)
    for number in range(LINKED_MAX):
        state = decide(state, _notice(f"demo/app/a-{number}")).state
    assert ["identity.sent_back"] == [rule for rule, _, _ in decide(state, _notice()).reasons]
    assert ["identity.joined"] == [rule for rule, _, _ in decide(state, _notice("demo/app/a-3", 9)).reasons]


@pytest.mark.parametrize("name", ["m-1", "消息", "x" * 200, "x" * 245, "x" * 246, "x" * MAX_ID_CHARS])
def test_names_of_two_channels_differ(name: str) -> None:
    """A forwarded message's name is an id, its own per conversation, and its channel's again on the way back."""
    names = {linked_id(of, name) for of in (OLD, ROOT)}
    assert 2 == len(names)
    assert all(len(one) <= MAX_ID_CHARS for one in names)
    assert (name == own_id(OLD, linked_id(OLD, name))) == (len(name) <= MAX_ID_CHARS - 11)
