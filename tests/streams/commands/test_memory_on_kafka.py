"""`interlock memory` against a real broker and a worker: history, writes, rollback, set (R-004-10, R-004-11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memory.register import Register
from memory.sealing import MemoryKeyStore
from schemas.cloudevents import root
from schemas.messages import MessageRef, NormalizedMessage
from streams.cli import build
from streams.memory_backup import backups
from streams.processors import memory
from streams.reader import KafkaSource
from streams.replay.memory import read_register
from tests.streams.runtime.kafka_rig import Rig

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
