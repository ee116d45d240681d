"""The doors in the gateway: taken by the broker, or kept on disk until it is back; answered within a second."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest

from memory.sealing import MemoryKeyStore
from schemas.events import MessageBody, RawEvent
from streams.channels import courier
from streams.channels.spool import Spool, SpoolError
from streams.intake import intake
from streams.runtime.ports import Fact
from streams.runtime.sender import SendError
from tests.streams.channels import wechat_side as side
from tests.streams.channels.gateway import Channels, channels

TEXT = side.fields("text", Content="我要退款，手机13812345678", MsgId="6500000000000000001")


def numbered(number: int, sender: str = side.FOLLOWER) -> dict[str, str | int]:
    """One of many messages."""
    return {**TEXT, "FromUserName": sender, "Content": f"第{number}条", "MsgId": str(number)}


async def told(web: Channels, count: int, sender: str = side.FOLLOWER) -> list[float]:
    """Push so many messages at once; how long each took to answer, in seconds."""

    async def one(number: int) -> float:
        began = time.monotonic()
        answer = await web.push(side.push(numbered(number, sender), nonce=f"n-{sender}-{number}"))
        assert (200, b"success") == (answer.status_code, answer.content)
        return time.monotonic() - began

    return await asyncio.gather(*(one(number) for number in range(count)))


async def drained(web: Channels) -> None:
    """Wait until nothing waits on disk."""
    async with asyncio.timeout(10):
        while len(web.gateway.spool):  # noqa: ASYNC110 (what ends it is a row that is deleted)
            await asyncio.sleep(0.02)


def messages(web: Channels, sender: str = side.FOLLOWER) -> list[str]:
    """The ids of a sender's messages on the topic, in order."""
    return [one.body.message_id for one in web.values("channel.events") if one.sender == sender]


async def test_a_push_is_masked_and_sealed_on_the_topic() -> None:
    """What is pushed arrives masked, with the clear text sealed beside it; it is answered `success` (promise 9)."""
    async with channels() as web:
        answer = await web.push(side.push(TEXT))
        (event,) = web.values("channel.events")

    assert (200, b"success", "nosniff") == (
        answer.status_code, answer.content, answer.headers["x-content-type-options"])  # fmt: skip
    assert "我要退款，手机138****5678" == event.body.text
    assert event.seal is not None
    assert 1 == web.counted("wechat", "accepted")


async def test_b03_a_push_that_is_repeated_is_one_record() -> None:
    """WeChat pushes again after five seconds, signed anew: one record, three acknowledgements (case B03)."""
    async with channels() as web:
        for number in range(3):
            pushed = side.push(TEXT, side.SECOND + number * 5, nonce=f"{number}")
            assert b"success" == (await web.push(pushed)).content
        assert 1 == len(web.values("channel.events"))

    assert (1, 2) == (web.counted("wechat", "accepted"), web.counted("wechat", "repeated"))


async def test_b21_an_attack_is_counted_and_nothing_of_it_kept() -> None:
    """A document type, a wrong signature and a replay raise the security counter by one each (case B21)."""
    bomb = b'<!DOCTYPE xml [<!ENTITY e SYSTEM "file:///etc/hostname">]><xml><Content>&e;</Content></xml>'
    async with channels() as web:
        assert 400 == (await web.push(side.push(bomb))).status_code
        assert 403 == (await web.push(side.push(TEXT, side.SECOND - 1_000))).status_code
        wrong = {**side.push(TEXT).query, "signature": "0" * 40}
        answer = await web.client.post("/v1/channels/wechat/demo", params=wrong, content=side.xml(TEXT))
        assert {"code": "signature", "field": "signature"}.items() <= answer.json()["error"].items()
        assert [] == web.values("channel.events")

    assert [1, 1, 1] == [web.refusals(kind) for kind in ("entity", "replay", "signature")]


async def test_the_handshake_over_http() -> None:
    """GET with a signed echo is answered with the echo alone."""
    async with channels() as web:
        answer = await web.client.get("/v1/channels/wechat/demo", params=side.query(echostr="<i>1</i>"))

    assert (b"<i>1</i>", "text/plain; charset=utf-8") == (answer.content, answer.headers["content-type"])


async def test_a_template_report_reaches_the_receipts() -> None:
    """TEMPLATESENDJOBFINISH is a receipt of its conversation."""
    report = side.fields("event", Event="TEMPLATESENDJOBFINISH", MsgID=200163836, Status="success")
    async with channels() as web:
        await web.push(side.push(report))
        (receipt,) = web.values("delivery.receipts")

    assert ("wechat:200163836", "delivered") == (receipt.message_id, receipt.state)


async def test_a_broker_that_is_silent_delays_no_answer() -> None:
    """With the broker stopped each push is answered within a second; when it is back all arrive, once, in order."""
    async with channels() as web:
        web.broker.hold = True
        first = await told(web, 20)
        later = await told(web, 50, "u-2")
        assert max(first + later) < 1
        assert 70 == len(web.gateway.spool)
        web.broker.hold = False
        web.broker.release()
        await drained(web)
        assert [f"wx-{number}" for number in range(20)] == messages(web)
        assert [f"wx-{number}" for number in range(50)] == messages(web, "u-2")


async def test_a_broker_that_refuses_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that the producer can't take now waits on disk and is sent until it is taken."""
    monkeypatch.setattr(courier, "RETRY_SECONDS", 0.01)
    async with channels() as web:
        web.broker.error = SendError("the broker is away")
        await told(web, 5)
        assert 5 == len(web.gateway.spool)
        web.broker.error = None
        await drained(web)
        assert [f"wx-{number}" for number in range(5)] == messages(web)


async def test_a_process_that_ends_finds_its_spool_again(tmp_path: Path) -> None:
    """What waits on disk is sent by the next process, and holds no clear text meanwhile (promise 9)."""
    file = tmp_path / "spool.sqlite"
    async with channels(file) as web:
        web.broker.hold = True
        await web.push(side.push(TEXT))
    with sqlite3.connect(file) as db:
        (value,) = db.execute("select value from spool").fetchone()
    assert b"13812345678" not in value
    assert b"138****5678" in value
    async with channels(file) as web:
        await drained(web)
        assert ["wx-6500000000000000001"] == messages(web)
    assert b"138****5678" not in _bytes_in(tmp_path)


def _bytes_in(folder: Path) -> bytes:
    return b"".join(one.read_bytes() for one in folder.iterdir())


async def test_a_full_disk_asks_the_channel_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither broker nor disk: 503, so that the channel pushes again; nothing is said to be safe that is not."""
    async with channels() as web:
        web.broker.hold = True
        monkeypatch.setattr(web.gateway.spool, "_most", 0)
        answer = await web.push(side.push(TEXT))

    assert (503, "spool") == (answer.status_code, answer.json()["error"]["code"])
    assert 1 == web.counted("wechat", "failed")


@pytest.mark.parametrize("size", [65_537, 200_000])
async def test_a_body_that_is_too_large_is_refused(size: int) -> None:
    """A door takes so many bytes and no more."""
    async with channels() as web:
        assert 413 == (await web.push(side.push(b"<xml>" + b" " * size))).status_code


def fact(number: int, sender: str = "u-1") -> tuple[Fact, str]:
    """A fact for the spool."""
    spoken = MessageBody(kind="message", message_id=f"m-{number}", text="退款")
    raw = RawEvent(id=f"e-{number}", shop="demo", channel="wechat", sender=sender, body=spoken)
    event = intake(raw, MemoryKeyStore())
    return Fact("channel.events", event.conversation, event.event_id, event), ""


async def waiting(spool: Spool) -> list[str]:
    """The messages that may be sent now."""
    return [row.fact.value.body.message_id for row in await spool.first()]  # type: ignore[attr-defined]


async def test_a_conversations_records_leave_the_spool_one_by_one() -> None:
    """A second record of a conversation is not shown before the first is dropped, so none overtakes another."""
    spool = Spool()
    await asyncio.gather(spool.put([fact(1), fact(2)]), spool.put([fact(1, "u-2"), fact(1)]))

    assert 3 == len(spool)
    assert ["m-1", "m-1"] == await waiting(spool)
    await spool.drop([row.seq for row in await spool.first()])
    assert ["m-2"] == await waiting(spool)
    spool.close()


async def test_a_full_spool_stores_nothing() -> None:
    """A bound that would be passed is said, and none of the records is stored."""
    spool = Spool(most=2)
    with pytest.raises(SpoolError, match="wait for the broker"):
        spool.put([fact(1), fact(2), fact(3)])

    assert 0 == len(spool)
    spool.close()


async def test_a_disk_that_fails_is_said() -> None:
    """What can't be written is not counted as waiting, and the one who asked hears of it."""
    spool = Spool()
    spool._db.execute("drop table spool")
    with pytest.raises(SpoolError, match="no such table"):
        await spool.put([fact(1)])

    assert 0 == len(spool)
    spool.close()
