"""`interlock memory` against a real broker and a worker: history, writes, rollback, set (R-004-10, R-004-11)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memory.keeping import fact_of
from memory.key_file import open_key_store
from memory.register import Register
from memory.sealing import MemoryKeyStore
from schemas.cloudevents import root
from schemas.messages import MessageRef, NormalizedMessage
from streams.cli import build
from streams.memory_backup import back_up, backups
from streams.memory_stores import open_stores
from streams.processors import memory, system
from streams.reader import KafkaSource
from streams.replay.memory import read_register
from streams.replay.rebuild import read_history
from tests.streams.runtime.kafka_rig import Node, Rig

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
KEYS = MemoryKeyStore()
WHO, KEY, TIME = "demo/web/u-1", "demo/web/u-1/preference/carrier", "demo/web/u-1/preference/contact_time"


@pytest.fixture
def rig(broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Fresh topics, and an environment in which the commands find them."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    for name, value in (("BOOTSTRAP_SERVERS", broker), ("GROUP", rig.settings.group), ("DATA_DIR", str(tmp_path)),
                        ("PARTITIONS", str(rig.settings.partitions))):  # fmt: skip
        monkeypatch.setenv(f"INTERLOCK_{name}", value)
    return rig


def _say(rig: Rig, number: int, text: str) -> str:
    """A message that was read; its trace."""
    ref = MessageRef(message_id=f"m-{number}", event_id=f"e-{number}", session_id="s", at=1_767_578_400_000)
    message = NormalizedMessage(ref=ref, intent="inform", confidence=0.9, evidence=(), language="zh",
                                sentiment="neutral", text=text)  # fmt: skip
    rig.publish("messages.normalized", WHO, message, f"r-{number}")
    rig.producer.flush(10)
    return root(f"r-{number}")[3:35]


async def _run(*arguments: str, status: int = 0) -> str:
    result = await asyncio.to_thread(CliRunner().invoke, build(), ["memory", *arguments])
    assert status == result.exit_code, result.output
    return result.output if status == 0 else str(result.exception)


def _register(rig: Rig) -> Register:
    with KafkaSource(rig.settings) as source:
        return read_register(source).register


async def test_a_trace_is_found_and_rolled_back(rig: Rig) -> None:
    """History and writes find it, a dry run changes nothing, --yes backs up first; and the rollback is undone, too."""
    async with rig.worker(table=[memory.hearing(KEYS), memory.row(rig.settings, KEYS)]) as node:
        _say(rig, 1, "我喜欢发顺丰")
        wrong = _say(rig, 2, "以后不要顺丰，请晚上打电话联系我")
        await node.handled("messages.normalized", 2)
        lines = (await _run("history", KEY)).splitlines()
        assert ["快递偏好：顺丰", "快递偏好：不要顺丰"] == [line.split(" -> ")[1].split("  ")[0] for line in lines]
        assert 2 == len((await _run("writes", "--trace", wrong)).splitlines())

        assert "Nothing was changed. --yes does it." in await _run("rollback", "--trace", wrong)
        assert (2, []) == (len(_register(rig).history(KEY)), backups(rig.settings.data_dir / "backups"))

        done = await _run("rollback", "--trace", wrong, "--yes", "--by", "agent-7", "--reason", "another's 13800000000")
        assert 1 == len(backups(rig.settings.data_dir / "backups"))
        assert [["sf"], None] == [(_register(rig).value(key) or {}).get("choice") for key in (KEY, TIME)]
        assert "asked by agent-7" in (shown := await _run("history", KEY))
        assert "13800000000" not in shown

        await _run("rollback", "--trace", done.rsplit("--trace ", 1)[1].partition("`")[0], "--yes")
        assert ["sf"] == (_register(rig).value(KEY) or {})["avoid"]
        assert [] == list(_register(rig).breaks())


async def test_staff_set_a_value_by_hand(rig: Rig) -> None:
    """A quality check, which only people know, becomes a write of source staff; phones in it are masked (promise 9)."""
    async with rig.worker(table=[memory.hearing(KEYS), memory.row(rig.settings, KEYS)]):
        key, value = f"{WHO}/quality_check/q1", '{"summary": "13812345678 查", "complaint": "c1", "agent": "agent-9"}'
        assert "Nothing was changed" in await _run("set", key, value)
        await _run("set", key, value, "--yes", "--by", "agent-7")
        (write,) = _register(rig).history(key)
        assert ("staff", "138****5678 查") == (write.source, (write.value_after or {})["summary"])
        assert "expected an object" in await _run("set", key, "5", "--yes", status=1)
        assert "nothing was ever written" in await _run("history", f"{WHO}/preference/none", status=1)


async def _applied(rig: Rig, count: int) -> None:
    """What the keeper does with the first `count` writes."""
    stores, register = open_stores(rig.settings), _register(rig)
    found = [write for key in register.keys for write in register.history(key)]
    await stores.facts.put([fact_of(write) for write in sorted(found, key=lambda one: one.timestamp)[:count]])
    await stores.close()


async def _known(rig: Rig) -> list[str]:
    stores = open_stores(rig.settings)
    hits = await stores.facts.search("demo", "")
    await stores.close()
    return sorted(hit.fact.summary for hit in hits)


@contextlib.asynccontextmanager
async def _lost(rig: Rig) -> AsyncIterator[tuple[Node, Path]]:
    """A worker that wrote twice, a backup of the stores between the two writes, and the store of facts without them."""
    async with rig.worker(table=[memory.hearing(KEYS), memory.row(rig.settings, KEYS), system.row()]) as node:
        _say(rig, 1, "我喜欢发顺丰")
        _say(rig, 2, "请晚上打电话联系我")
        await node.handled("messages.normalized", 2)
        await _applied(rig, 1)
        stores = open_stores(rig.settings)
        made = await back_up(stores, rig.settings.data_dir / "backups", ["demo"], 1_767_578_400_000, 20)
        await stores.facts.delete_customer("demo", WHO)
        await stores.close()
        yield node, made


async def test_a_backup_is_restored_and_that_is_in_the_register(rig: Rig) -> None:
    """Shown first; then a backup, a word in the register, and the stores say what files and register say (R-004-11)."""
    open_key_store(rig.settings.data_dir).close()
    async with _lost(rig) as (node, made):
        shown = await _run("restore", str(made))
        assert f"{made.name}/demo.facts: shop demo, 1 facts of 1 customers" in shown
        assert f"  {KEY}: nothing -> 快递偏好：顺丰" in shown
        assert ([], [made]) == (await _known(rig), backups(made.parent))

        done = await _run("restore", str(made), "--yes", "--by", "li", "--reason", "disk of 13800000000 lost")
        assert ["快递偏好：顺丰", "联系时间：晚上"] == await _known(rig)
        assert f"`interlock memory restore {backups(made.parent)[-1]} --yes` takes it back" in done
        await node.handled("system.events", 1)
        with KafkaSource(rig.settings) as source:
            (reason,) = [one for diff in read_history(source, "~0").diffs.values() for one in diff["reasons"]]
        assert "runtime.memory_restored" == reason["rule"]
        assert f"demo from {made.name}/demo.facts, {made.name}/demo.relations, by li" in reason["text"]


async def test_a_restore_brings_no_forgotten_customer_back(rig: Rig) -> None:
    """Not by the backup, not by the register; and without the keys that know them nothing is restored (promise 9)."""
    async with _lost(rig) as (_, made):
        assert "knows which customers were forgotten" in await _run("restore", str(made), status=1)
        keys = open_key_store(rig.settings.data_dir)
        keys.forget(WHO, 1_999_999_999_999)
        keys.close()
        assert "1 of 1 forgotten customers are left out" in await _run("restore", str(made), "--yes")
        assert [] == await _known(rig)
