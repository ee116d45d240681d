"""A link between two partitions of a real broker, with the worker gone in between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from memory.sealing import MemoryKeyStore
from schemas.events import IdentityLinkBody
from streams.processors import identity, perception
from streams.runtime.table import Row
from tests.streams.runtime.kafka_rig import Rig, wait_until
from tests.streams.runtime.support import event

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """Fresh topics, and a group of this test's own."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    return rig


def _table(rig: Rig) -> Sequence[Row]:
    return identity.linked(perception.row(rig.settings, MemoryKeyStore()))


def _heard(rig: Rig) -> dict[str, list[str]]:
    """What was understood, by conversation; what a recovery published again counts once."""
    found: dict[str, list[str]] = {}
    once = {dict(record.headers)["ce_id"]: record for record in reversed(rig.records("messages.normalized"))}
    for record in reversed(once.values()):
        found.setdefault((record.key or b"").decode(), []).append(orjson.loads(record.value or b"")["text"])
    return found


async def _until(rig: Rig, expected: dict[str, list[str]]) -> None:
    await asyncio.to_thread(wait_until, lambda: expected == _heard(rig))


async def test_a_link_holds_across_partitions_and_workers(rig: Rig) -> None:
    """Before the link here, after it at the root, each once, whoever owns the two partitions then (R-003-05)."""
    old, root = rig.sender_on(0), rig.sender_on(1)
    root_id = f"demo/web/{root}"
    body = IdentityLinkBody(kind="identity_link", root=root_id, proof="login")
    link = event(1, old).model_copy(update={"body": body})
    async with rig.worker(table=_table(rig)):
        rig.say(0, "你好", old)
        rig.publish("channel.events", link.conversation, link, link.event_id)
        rig.say(2, "谢谢", old)
        await _until(rig, {f"demo/web/{old}": ["你好"], root_id: ["谢谢"]})
    rig.say(2, "谢谢", old)
    rig.say(3, "再见", old)
    async with rig.worker(table=_table(rig)):
        await _until(rig, {f"demo/web/{old}": ["你好"], root_id: ["谢谢", "再见"]})
        rig.say(4, "你好", root)
        await _until(rig, {f"demo/web/{old}": ["你好"], root_id: ["谢谢", "再见", "你好"]})
    rules = [reason["rule"] for diff in rig.diffs() for reason in diff["reasons"]]
    assert [1, 1, 2, 2, 1] == [rules.count(rule) for rule in (
        "identity.linked", "identity.joined", "identity.forwarded", "identity.heard", "runtime.duplicate",
    )]  # fmt: skip
    assert rig.whole()
