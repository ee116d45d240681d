"""Cases C that only a broker proves: long calls, joins in mid call, and nothing lost at the end of a process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.streams.runtime.kafka_parts import WallTool
from tests.streams.runtime.kafka_rig import PARTITIONS, Node, Rig, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
ALL = set(range(PARTITIONS))


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """Fresh topics, and a group of this test's own."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    return rig


async def _results(rig: Rig) -> list[str]:
    records = await asyncio.to_thread(rig.records, "tools.results")
    return [(record.key or b"").decode() for record in records]


async def test_c25_a_call_beyond_the_poll_limit_is_done_once(rig: Rig) -> None:
    """A call longer than session timeout and poll limit together: no rebalance, no second call (case C25)."""
    tool = WallTool(seconds=16.0)
    async with rig.worker({"tool": tool}, poll_limit_ms=7_000, session_timeout_ms=6_000) as node:
        await node.until(lambda: node.numbers == ALL)
        epoch = node.worker.owner.epoch
        rig.say(0, "call")
        rig.producer.flush()
        await node.handled("tools.results", 1, 60)
        assert epoch == node.worker.owner.epoch
    assert (1, 1, 0) == (tool.begun, tool.ended, tool.asked)
    assert ["demo/web/u1"] == await _results(rig)


async def _calls(rig: Rig, node: Node) -> None:
    for number in range(PARTITIONS):
        rig.say(number, "call", sender=rig.sender_on(number))
    rig.producer.flush()
    await node.handled("channel.events", PARTITIONS)


@pytest.mark.parametrize("seconds", [0.1, 6.0], ids=["finished", "under-way"])
async def test_c11_a_join_repeats_no_call(rig: Rig, seconds: float) -> None:
    """A second worker joins when calls are done, or run: none is made twice, each has one outcome (case C11)."""
    tool = WallTool(seconds)
    async with rig.worker({"tool": tool}) as one:
        await one.until(lambda: one.numbers == ALL)
        await _calls(rig, one)
        await one.until(lambda: tool.begun == PARTITIONS)
        async with rig.worker({"tool": tool}) as two:
            await two.until(lambda: len(one.numbers) == len(two.numbers) == 2)
            await asyncio.to_thread(wait_until, lambda: len(rig.records("tools.results")) >= PARTITIONS)
            await two.until(lambda: tool.begun == PARTITIONS)
            await asyncio.sleep(1)
    assert PARTITIONS == tool.begun
    assert PARTITIONS == len(set(await _results(rig)))
    settled = [diff for diff in rig.diffs() if any(one["rule"] == "test.settled" for one in diff["reasons"])]
    assert PARTITIONS == len(settled)
    assert rig.whole()


@pytest.mark.slow
def test_c21_a_file_of_100001_events_is_all_there(rig: Rig, tmp_path: Path) -> None:
    """`interlock produce` ends when the broker has every event of the file, each once, in order (case C21)."""
    count, file = 100_001, tmp_path / "events.jsonl"
    with file.open("wb") as stream:
        for number in range(count):
            body = {"kind": "message", "message_id": f"m-{number}", "text": "audit"}
            stream.write(orjson.dumps({"id": f"p-{number}", "shop": "demo", "channel": "web",
                                       "sender": f"u{number % 7}", "body": body}) + b"\n")  # fmt: skip
    env = {**os.environ, "INTERLOCK_BOOTSTRAP_SERVERS": rig.bootstrap, "INTERLOCK_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", "from streams.cli import main; main()", "produce", str(file)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr[-500:]
    assert str(count) in done.stdout
    found: dict[bytes | None, list[int]] = {}
    for record in rig.records("channel.events"):
        found.setdefault(record.key, []).append(int(orjson.loads(record.value or b"")["id"].removeprefix("p-")))
    assert count == sum(map(len, found.values()))
    assert all(sorted(numbers) == numbers for numbers in found.values())
