"""Promise 5, decisions are pure: the same state and the same recorded inputs give the same decision, for ever."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from memory.sealing import KeyStore
from streams.runtime.ports import Outgoing, Record
from tests.promises.rerun import rerun
from tests.promises.stand import DIFFS, Stand, isolated, whole

SETTINGS = isolated(partitions=4)


async def _eventful(stand: Stand) -> None:
    """Refund, sealed address, recall, unreadable record, a restart, resends, scores, closing."""
    zh, en = await stand.person("c-zh-refund"), await stand.person("c-en-unknown", receipts="none")
    home = await stand.person("c-zh-address")
    await zh.say("我要退款，订单号1001，衣服太大了，电话13800000000")
    await home.say("订单1006帮我改一下地址，改成上海市浦东新区世纪大道100号，收件人电话13800000000", message_id="a-1")
    await en.say("I want a refund for order OD999999, it arrived broken")
    partition = stand.lock.partition_of(zh.conversation)
    stand.lock.log.append(Outgoing("channel.events", partition, zh.conversation.encode(), b'{"cut'))
    await zh.say("确认")
    await stand.lock.restart()
    await home.recall("a-1")
    await en.say("never mind")
    await stand.pass_ms(2 * 3_600_000)


@cache
def _recorded() -> tuple[list[Record], KeyStore]:
    kept: list[tuple[list[Record], KeyStore]] = []

    async def body(stand: Stand) -> None:
        await _eventful(stand)
        kept.append((stand.everything(), stand.world.keys))

    whole(body)
    return kept[0]


def test_the_log_alone_gives_every_decision_again() -> None:
    """Recorded inputs through the steps, without the run's clock and effects: all diffs byte for byte (promise 5)."""
    records, keys = _recorded()
    pairs = list(rerun(records, keys, SETTINGS))

    assert len(pairs) > 60
    assert [] == [(old, new) for old, new in pairs if old != new]
    text = b"".join(old for old, _ in pairs)
    for rule in ("runtime.dead_letter", "session.closed", "planning.review", "delivery.resend", "perception.recalled"):
        assert rule.encode() in text


@pytest.mark.slow
def test_another_process_decides_the_same(tmp_path: Path) -> None:
    """Another process, with other hash seeds and another time zone, makes the same diffs (promise 5)."""
    records, keys = _recorded()
    file = tmp_path / "log.pickle"
    file.write_bytes(pickle.dumps((records, keys, SETTINGS)))
    digest = hashlib.sha256(b"".join(record.value or b"" for record in
                                     sorted(records, key=lambda one: (one.partition, one.offset))
                                     if record.topic == DIFFS)).hexdigest()  # fmt: skip
    for seed, zone in (("1", "Asia/Shanghai"), ("2", "America/St_Johns")):
        command = [sys.executable, "-m", "tests.promises.rerun", str(file)]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        assert digest == done.stdout


def test_a_wrong_record_gives_another_decision() -> None:
    """The comparison can fail: one changed word in the recording is seen (promise 5)."""
    records, keys = _recorded()
    changed = [
        Record(one.topic, one.partition, one.offset, one.time + (one.topic == "tools.results"), one.key, one.value,
               one.headers)
        for one in records
    ]  # fmt: skip
    assert any(old != new for old, new in rerun(changed, keys, SETTINGS))
