"""Forgetting a customer: all linked conversations, every seal and state, and the proof of it."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pytest

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import Fact
from memory.relations.embedded import EmbeddedRelations
from memory.sealing import HeldError, Hold
from schemas.delivery import OutboundMessage
from streams.gateway.outbox import Outbox
from streams.memory_backup import back_up, backups
from streams.memory_stores import MemoryStores
from streams.privacy.forget import emptied, plan, prove
from streams.privacy.search import Needles, in_files, in_topics
from streams.privacy.stores import clear_backups, clear_files, clear_stores
from streams.privacy.unseal import NothingSealedError
from streams.replay.letters import LetterError, exact_bytes, letters
from streams.runtime.ports import Outgoing
from tests.promises.stand import Stand, whole
from tests.streams.keeping import T0
from tests.streams.linking import both, link
from tests.streams.privacy.office import NAME, NEEDLES, PHONE, forget, look, reasons, source, told


def test_nothing_of_a_forgotten_customer_can_be_had(tmp_path: Path) -> None:
    """Keys, state and seals are gone, by any way; health history and counts stay; others are untouched (promise 9)."""

    async def run(stand: Stand) -> None:
        person, other = await told(stand), await stand.person("c-2")
        await other.say(f"电话{PHONE[:-1]}9")
        await stand.pass_ms(330_000)
        health = len(person.values("feedback.health"))
        found = forget(stand, person.conversation)
        await stand.pass_ms(1_000)
        proof = prove(source(stand), stand.world.keys, found, [tmp_path])
        assert set(NEEDLES) <= {value for value in found.needles.values for needle in NEEDLES if needle in value} | {
            NAME
        }
        assert ((), ()) == (proof.found, proof.opens)
        assert emptied(source(stand), found)
        assert ([], {}) == (person.state["planning"]["flows"], person.state["perception"]["messages"])
        assert (1, health) == (len(reasons(person, "privacy.forgotten")), len(person.values("feedback.health")))
        assert health > 0
        with pytest.raises(NothingSealedError):
            look(stand, person.conversation)
        assert look(stand, other.conversation)

    whole(run)


def test_linked_conversations_are_the_same_customer() -> None:
    """By either name both are forgotten, also what was forwarded under the first one's key (R-003-05, promise 9)."""

    async def run(stand: Stand) -> None:
        chat, web = await both(stand)
        await chat.say(f"电话{PHONE}")
        await link(chat, web.conversation)
        await chat.say(f"我叫{NAME}，退款")
        found = forget(stand, web.conversation)
        assert {chat.conversation, web.conversation} == set(found.conversations)
        assert () == prove(source(stand), stand.world.keys, found, []).opens

    whole(run)


def test_whoever_used_the_window_before_is_another_customer() -> None:
    """A link that has ended joins nobody: the first customer's seals still open (R-003-05)."""

    async def run(stand: Stand) -> None:
        chat, web = await both(stand)
        first = await stand.person("c-first")
        await first.say(f"电话{PHONE}")
        await link(chat, first.conversation, name="l-0")
        await link(chat, chat.conversation, name="l-1")  # the link ends
        await link(chat, web.conversation, name="l-2")
        await web.say(f"我叫{NAME}")
        found = forget(stand, web.conversation)
        assert {chat.conversation, web.conversation} == set(found.conversations)
        assert look(stand, first.conversation)

    whole(run)


def test_dead_letters_of_theirs_are_forgotten_with_them() -> None:
    """One under their key, and one without a key that holds a value of theirs; a stranger's stays (promise 9)."""

    async def run(stand: Stand) -> None:
        person = await told(stand)
        number, key = stand.lock.partition_of(person.conversation), person.conversation.encode()
        for given, text in ((key, "x"), (None, f'{{"text": "{PHONE}'), (None, '{"text": "13900000001')):
            stand.lock.log.append(Outgoing("channel.events", number, given, text.encode()))
        await stand.pass_ms(1_000)
        assert 3 == len([exact_bytes(one, stand.world.keys) for one in letters(source(stand))])
        forget(stand, person.conversation)
        *theirs, last = letters(source(stand))
        for one in theirs:
            with pytest.raises(LetterError, match="was destroyed"):
                exact_bytes(one, stand.world.keys)
        assert (2, b'{"text": "13900000001') == (len(theirs), exact_bytes(last, stand.world.keys))
        assert (last.letter.owner,) == plan(
            source(stand), stand.world.keys, person.conversation, [last.reference]
        ).letters

    whole(run)


def test_a_legal_hold_on_any_of_theirs_refuses() -> None:
    """A hold on a linked conversation keeps all of the customer (promise 9)."""

    async def run(stand: Stand) -> None:
        chat, web = await both(stand)
        await chat.say(f"电话{PHONE}")
        await link(chat, web.conversation)
        stand.world.keys.hold(chat.conversation, Hold("case 7", "law", stand.now))
        with pytest.raises(HeldError, match="case 7"):
            forget(stand, web.conversation)
        assert look(stand, chat.conversation)

    whole(run)


def _fact(customer: str, number: int) -> Fact:
    return Fact(shop="demo", customer=customer, key=f"preference/{number}", kind="preference", summary=f"s {number}",
                write_id=f"w-{customer}-{number}", trace_id="t", session_id="s", at=T0)  # fmt: skip


async def test_stores_and_their_backups_lose_the_customer(tmp_path: Path) -> None:
    """Facts and relations go, from every backup, too; another customer's stay in both (R-004-11)."""
    stores = MemoryStores(EmbeddedFacts(tmp_path / "facts"), EmbeddedRelations(tmp_path / "r.db"))
    await stores.facts.put([_fact("demo/web/u-1", 1), _fact("demo/web/u-2", 2)])
    await back_up(stores, tmp_path / "backups", ["demo"], T0, 20)
    assert (1, 0) == await clear_stores(stores, ["demo/web/u-1"])
    assert 1 == await clear_backups(tmp_path / "backups", ["demo/web/u-1"])

    (folder,) = backups(tmp_path / "backups")
    await stores.facts.restore("demo", folder / "demo.facts")
    found = await stores.facts.search("demo", "")
    await stores.close()
    assert ["demo/web/u-2"] == [hit.fact.customer for hit in found]


async def test_what_a_cut_off_backup_left_goes_with_them(tmp_path: Path) -> None:
    """A part of a backup is no backup, and may hold the customer: no file of it stays (R-004-11, promise 9)."""
    stores = MemoryStores(EmbeddedFacts(tmp_path / "facts"), EmbeddedRelations(tmp_path / "r.db"))
    await stores.facts.put([_fact("demo/web/u-1", 1)])
    await back_up(stores, tmp_path / "backups", ["demo"], T0, 20)
    await stores.close()
    (whole_one,) = backups(tmp_path / "backups")
    for name in (".20260105T020000.001Z", ".forget-left"):
        shutil.copytree(whole_one, tmp_path / "backups" / name)

    assert 1 == await clear_backups(tmp_path / "backups", ["demo/web/u-1"])
    assert [whole_one] == list((tmp_path / "backups").iterdir())


async def test_the_gateways_rows_are_removed_from_its_file(tmp_path: Path) -> None:
    """What was shown to the customer leaves the outbox and its log; another's row stays (promise 9)."""
    outbox = Outbox(tmp_path / "outbox.sqlite", lambda: T0)  # without keys, so that one can look for words
    for number, name in enumerate(("demo/web/u-1", "demo/web/u-2")):
        message = OutboundMessage(message_id=f"m-{number}", session_id="s", kind="reply", template_id="t",
                                  language="zh", text=f"words of {number}")  # fmt: skip
        await outbox.put(name, message)
    assert 1 == clear_files(tmp_path, ["demo/web/u-1"])
    needles = Needles(["words of 0", "words of 1"])
    assert {"words of 1"} == {value for _, value in in_files([tmp_path], needles)}
    outbox.close()


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """The proof can fail: clear, escaped, split by signs, in keys, headers and files (promise 9)."""
    (tmp_path / "a").write_bytes(b"x 138 0000 0000 y")
    (tmp_path / "b").write_bytes('{"n": "王小明"}'.encode("ascii", "backslashreplace"))
    needles = Needles([PHONE, NAME, "ab"])
    assert [("a", PHONE), ("b", NAME)] == [(Path(file).name, value) for file, value in in_files([tmp_path], needles)]

    async def run(stand: Stand) -> None:
        stand.lock.log.append(Outgoing("plans", 1, b"k", b"v", (("h", PHONE.encode()),)))
        assert [("plans:1:0", PHONE)] == list(in_topics(source(stand), needles))
        assert [] == needles.found(base64.b64encode(PHONE.encode()))

    whole(run)
