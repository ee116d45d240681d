"""Opening seals: with a role or the conversation in hand, with a reason, and never without a trace."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streams.privacy.rights import NotAllowedError, may_forget, may_open
from streams.privacy.unseal import NothingSealedError, Request, unseal
from streams.runtime.ports import Outgoing
from tests.promises.stand import Stand, whole
from tests.streams.privacy.office import ADDRESS, PHONE, ROLES, SAID, look, reasons, source, told


def test_an_investigator_reads_what_was_said_to_the_character() -> None:
    """Event by event, or the newest value of a field; each look stands in the conversation's register (promise 9)."""

    async def run(stand: Stand) -> None:
        person = await told(stand)
        (first,) = [one["clear"]["text"] for one in look(stand, person.conversation, event="m-1")
                    if one["seal"] == "seal" and one["where"].startswith("channel.events")]  # fmt: skip
        fields = look(stand, person.conversation, fields=("address", "phone"))
        await stand.pass_ms(1_000)
        assert SAID[0] == first
        assert {"address": f"上海市浦东新区{ADDRESS}", "phone": PHONE} == {one["field"]: one["clear"] for one in fields}
        assert [True] == ["complaint 7" in one and "role investigator" in one
                          for one in reasons(person, "privacy.unsealed")[:1]]  # fmt: skip

    whole(run)


def test_who_has_the_conversation_in_hand_reads_address_and_phone_only() -> None:
    """A colleague who took the conversation over may see the address and phone of it, and nothing else (promise 9)."""

    async def run(stand: Stand) -> None:
        person = await told(stand)
        with pytest.raises(NotAllowedError, match="takes the role investigator"):
            look(stand, person.conversation, "scripted", fields=("phone",))
        await stand.world.decide(person.conversation, {"kind": "takeover"})
        await stand.pass_ms(1_000)
        by = person.state["planning"]["handover"]["taken_by"]
        assert [PHONE] == [one["clear"] for one in look(stand, person.conversation, by, fields=("phone",))]
        with pytest.raises(NotAllowedError):
            look(stand, person.conversation, by)
        await stand.world.decide(person.conversation, {"kind": "release"})
        await stand.pass_ms(1_000)
        with pytest.raises(NotAllowedError):
            look(stand, person.conversation, by, fields=("phone",))

    whole(run)


def test_what_the_register_does_not_take_is_not_shown() -> None:
    """Without the broker's word nothing is opened, and without a reason nothing is asked (promise 10)."""

    async def run(stand: Stand) -> None:
        person = await told(stand)

        def down(_: Sequence[Outgoing]) -> None:
            raise OSError

        request = Request(person.conversation, "eye", "complaint 7")
        with pytest.raises(OSError):  # noqa: PT011 (nothing more is known of it)
            unseal(source(stand), stand.world.keys, ROLES, request, down, "u", stand.now, 4)
        with pytest.raises(ValueError, match="a reason is needed"):
            look(stand, person.conversation, reason=" ")
        with pytest.raises(NothingSealedError, match=r"record channel\.events:0:99"):
            look(stand, person.conversation, at="channel.events:0:99")

    whole(run)


def test_looking_opens_no_closed_conversation() -> None:
    """A look is a decision of a closed conversation and leaves it closed: else it stayed in memory for ever."""

    async def run(stand: Stand) -> None:
        person = await stand.person("c-1")
        await person.say(f"电话{PHONE}")
        await stand.pass_ms(4_000_000)
        look(stand, person.conversation)
        await stand.pass_ms(1_000)
        assert 1 == len(reasons(person, "privacy.unsealed"))
        assert stand.lock.state(person.conversation) is None or "residue" == person.state["kind"]

    whole(run, close_after_ms=3_600_000)


def test_roles_are_those_of_the_settings() -> None:
    """Nobody has a right by being somebody: not to look, and not to forget (promise 9)."""
    assert "role investigator" == may_open(ROLES, "eye", (), None)
    may_forget(ROLES, "law")
    for by in ("law", "nobody"):
        with pytest.raises(NotAllowedError):
            may_open(ROLES, by, ("phone",), None)
    with pytest.raises(NotAllowedError, match="takes the role privacy"):
        may_forget(ROLES, "eye")
