"""WeChat's pushes while the broker is dead: answered in time, and on the topic when it is back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from schemas import codec
from streams.broker import EmbeddedKafka
from streams.clock import SystemClock
from streams.topics import apply_topics
from tests.brokers import started
from tests.streams.channels import wechat_side as side
from tests.streams.runtime.kafka_rig import Rig, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
SENDERS, EACH, ALIVE = 20, 20, 5  # pushes of each sender, the first ones while the broker lives


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker that this test may kill."""
    own = EmbeddedKafka(tmp_path / "broker")
    started(own)
    yield own
    own.stop()


def gateway(rig: Rig) -> tuple[subprocess.Popen[str], str]:
    """`interlock gateway` with a WeChat account, once it answers; its base URL."""
    environment = {
        **os.environ, "INTERLOCK_BOOTSTRAP_SERVERS": rig.bootstrap, "INTERLOCK_GATEWAY_PORT": "0",
        "INTERLOCK_DATA_DIR": str(rig.settings.data_dir), "INTERLOCK_PARTITIONS": str(rig.settings.partitions),
        "INTERLOCK_CHANNELS": orjson.dumps({"wechat": side.options()}).decode(),
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "streams.cli", "gateway"], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    assert process.stdout is not None
    url = process.stdout.readline().split(" at ")[1].split(". ")[0]

    def answers() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{url}/healthz").status_code == 200
        return False

    wait_until(answers)
    return process, url


async def told(url: str, numbers: range) -> list[float]:
    """Each sender pushes these messages, one after the other; the seconds that each answer took."""
    taken: list[float] = []

    async def sender(client: httpx.AsyncClient, name: str) -> None:
        for number in numbers:
            second = SystemClock().now_ms() // 1000
            text = side.fields("text", CreateTime=second, Content=f"{number}", MsgId=f"{number}")
            body = side.xml({**text, "FromUserName": name})
            began = time.monotonic()
            answer = await client.post(f"{url}/v1/channels/wechat/demo", content=body,
                                       params=side.query(second, f"{name}-{number}"))  # fmt: skip
            taken.append(time.monotonic() - began)
            assert (200, b"success") == (answer.status_code, answer.content)

    async with httpx.AsyncClient(timeout=20) as client:
        await asyncio.gather(*(sender(client, f"u-{number}") for number in range(SENDERS)))
    return sorted(taken)


def heard(rig: Rig) -> dict[str, list[str]]:
    """The message ids of each sender on the topic, in order, a repeat of an event id left out."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for record in rig.records("channel.events"):
        event = codec.decode("channel.events", record.value)
        found[event.sender].setdefault(event.event_id, event.body.message_id)
    return {sender: list(ids.values()) for sender, ids in found.items()}


def test_pushes_outlive_the_broker_and_the_gateway(own_broker: EmbeddedKafka, tmp_path: Path) -> None:
    """The broker is killed, then the gateway: each push is answered within a second, none is lost or reordered."""
    rig = Rig(own_broker.bootstrap, tmp_path)
    apply_topics(rig.bootstrap, rig.settings)
    process, url = gateway(rig)
    try:
        asyncio.run(told(url, range(ALIVE)))
        own_broker.kill()
        taken = asyncio.run(told(url, range(ALIVE, EACH)))
    finally:
        process.kill()
        process.wait()
    assert taken[int(len(taken) * 0.99)] < 1, [round(one, 2) for one in taken[-30:]]
    own_broker.start()
    process, _ = gateway(rig)
    expected = [f"wx-{number}" for number in range(EACH)]
    try:
        wait_until(lambda: sum(map(len, heard(rig).values())) >= SENDERS * EACH, 60)
        assert {f"u-{number}": expected for number in range(SENDERS)} == heard(rig)
    finally:
        process.terminate()
        assert 0 == process.wait(15)
