"""Promise 9, sealed, not lost: masked wherever they can be read, sealed beside it, gone when the key is destroyed."""

from __future__ import annotations

import logging
from pathlib import Path

import orjson
import pytest

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import Fact
from memory.relations.embedded import EmbeddedRelations
from memory.sealing import MemoryKeyStore, open_seal
from memory.snapshots import SnapshotStore
from schemas.events import ChannelEvent, MessageBody, RatingBody, Seal
from schemas.state import Mark
from streams.memory_backup import back_up
from streams.memory_restore import files_of, opened
from streams.memory_stores import MemoryStores
from streams.metrics import Metrics
from streams.privacy.search import Needles, in_files
from streams.privacy.stores import clear_stores
from streams.replay.letters import exact_bytes, letters
from streams.replay.local import LocalSource
from streams.runtime.checkpoint import SavedState
from streams.runtime.ports import Outgoing
from tests.promises.stand import Person, Stand, whole

TIME = 1_767_578_400_000
# numbers of no person: placeholders, a sample of the standard, and a test card
CANARIES = {
    "phone": "13800000000", "abroad": "+44 20 7946 0958", "id_card": "11010519491231002X",
    "bank_card": "6222 0200 0000 0000 000", "email": "canary.box@example.com", "name": "王小明",
    "address": "世纪大道100号", "edited": "世纪大道200号",
}  # fmt: skip
SAID = (
    "我叫王小明，我要退款，订单号1001，衣服太大了，电话13800000000，有事联系",
    "身份证11010519491231002X，银行卡6222 0200 0000 0000 000 别弄错",
    "mail me at canary.box@example.com or +44 20 7946 0958",
    "确认",
)  # fmt: skip


async def _spill(stand: Stand) -> list[Person]:
    """A refund and an address change full of what must not be read, and records that nobody can read."""
    refund, address = await stand.person("c-zh-refund"), await stand.person("c-zh-address")
    for text in SAID:
        await refund.say(text)
    await refund.send(refund.raw("rate", RatingBody(kind="rating", score=1, text="打13800000000给我")))
    await address.say("订单1006改地址，改成上海市浦东新区世纪大道100号，电话13800000000")
    await address.edit("m-1", "订单1006改地址，改成上海市浦东新区世纪大道200号，电话13800000000")
    await address.say("确认")
    key = refund.conversation.encode()
    for value in (b'{"text":"13800000000 canary.box@example.com', b'{"id":"1","text":"11010519491231002X"}'):
        stand.lock.log.append(Outgoing("channel.events", stand.lock.partition_of(refund.conversation), key, value))
    await stand.pass_ms(330_000)
    return [refund, address]


def _plain(data: bytes) -> list[str]:
    """The canaries that can be read in the bytes, with or without the signs between their digits."""
    bare = bytes(char for char in data if char not in b" -")
    return [name for name, value in CANARIES.items()
            if value.encode() in data or value.replace(" ", "").encode() in bare]  # fmt: skip


def test_nothing_sensitive_can_be_read_anywhere(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Topics, dead letters, states, snapshots, logs, metrics: no canary in clear (promise 9, R-000-12, F09)."""
    caplog.set_level(logging.DEBUG)
    metrics = Metrics()

    async def body(stand: Stand) -> None:
        stand.ports(metrics=metrics)
        people = await _spill(stand)
        records = [one for one in stand.everything() if one.headers]  # without the rubbish that stands there as it came
        assert len(records) > 100
        assert 2 == len([one for one in records if one.topic == "channel.events.dlq"])
        for record in records:
            headers = b"".join(value or b"" for _, value in record.headers)
            assert [] == _plain((record.key or b"") + (record.value or b"") + headers), record.topic
        with SnapshotStore.claim(tmp_path, "c", "t", lambda *_, **__: None, logging.getLogger("snapshots")) as store:
            rows = [SavedState(one.conversation, "state", 9, orjson.dumps(one.state), None) for one in people]
            store.write(0, rows, Mark(diff_offset=1, handled={}, unsent=0, stamped_at=stand.now))
            assert b"1001" in b"".join(orjson.dumps(one.state) for one in people)
        assert "address.success" in people[1].heard

    whole(body)
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert any(b"c-zh-refund" in data for data in files)
    assert [] == _plain(b"".join(files))
    assert [] == _plain(caplog.text.encode())
    assert [] == _plain(metrics.exposition())


def test_a_seal_gives_back_exactly_what_was_sent() -> None:
    """Whoever may open a seal reads what the customer wrote, to the character; the shop gets it, too (promise 9)."""

    async def body(stand: Stand) -> None:
        refund, address = await _spill(stand)
        said = {one["body"]["message_id"]: ChannelEvent.model_validate_json(orjson.dumps(one))
                for one in refund.values("channel.events") if one["body"]["kind"] == "message"}  # fmt: skip
        for number, text in enumerate(SAID[:3], 1):
            event = said[f"m-{number}"]
            assert event.seal is not None
            clear = open_seal(stand.world.keys, event.seal, refund.conversation)
            expected = MessageBody(kind="message", message_id=f"m-{number}", text=text)
            assert expected.model_dump(mode="json") == orjson.loads(clear or b"")
            assert isinstance(event.body, MessageBody)
            assert len(text) == len(event.body.text)
        assert said["m-4"].seal is None, "nothing to hide, nothing hidden"
        order = await stand.world._shop.get("/orders/1006?customer_id=c-zh-address")
        assert ("13800000000", True) == (order.json()["phone"], "200号" in order.json()["address"])
        assert address.heard[-1] == "address.success"

    whole(body)


def test_a_dead_letter_gives_back_its_exact_bytes() -> None:
    """A sealed dead letter opens to the very bytes that could not be read (promise 9, promise 10)."""

    async def body(stand: Stand) -> None:
        await _spill(stand)
        found = list(letters(LocalSource(stand.everything(), 4)))
        number = stand.lock.partition_of("demo/web/c-zh-refund")
        values = {one.offset: one.value for one in stand.lock.log.records("channel.events", number)}
        assert 2 == len(found)
        for found_letter in found:
            assert values[found_letter.letter.offset] == exact_bytes(found_letter, stand.world.keys)

    whole(body)


def test_destroying_the_key_is_forgetting() -> None:
    """Without the customer's key no seal of theirs opens any more, anywhere; another's still does (promise 9)."""

    async def body(stand: Stand) -> None:
        refund, address = await _spill(stand)
        stand.world.keys.destroy(refund.conversation)
        seals = [(one.conversation, record["seal"]) for one in (refund, address)
                 for topic in ("channel.events", "messages.normalized", "tools.calls")
                 for record in one.values(topic) if isinstance(record, dict) and record.get("seal")]  # fmt: skip
        opened = [(owner, open_seal(stand.world.keys, Seal.model_validate_json(orjson.dumps(value)), owner))
                  for owner, value in seals]  # fmt: skip
        assert len(opened) > 4
        assert all((clear is None) == (owner == refund.conversation) for owner, clear in opened)

    whole(body)


async def test_forgetting_outlives_a_backup(tmp_path: Path) -> None:
    """A backup from before, wherever it was kept, brings nothing of a forgotten customer back (promise 9)."""
    stores, keys = (
        MemoryStores(EmbeddedFacts(tmp_path / "facts"), EmbeddedRelations(tmp_path / "r.db")),
        MemoryKeyStore(),
    )
    gone, other = "demo/web/gone", "demo/web/other"
    facts = [Fact("demo", name, "preference/carrier", "preference", f"words of {name}", f"w-{name}", "t", "s", TIME)
             for name in (gone, other)]  # fmt: skip
    await stores.facts.put(facts)
    kept = await back_up(stores, tmp_path / "kept elsewhere", ["demo"], TIME, 20)
    keys.forget(gone, TIME + 1)
    await clear_stores(stores, [gone])

    with opened(files_of([kept]), keys.forgotten, tmp_path / "backups") as restore:
        await restore.carry_out(stores, list)

    assert [other] == [hit.fact.customer for hit in await stores.facts.search("demo", "")]
    await stores.close()
    readable = in_files([tmp_path / "facts", tmp_path / "r.db", tmp_path / "backups"], Needles([gone, other]))
    assert {other} == {value for _, value in readable}
