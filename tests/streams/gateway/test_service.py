"""The web channel as a process on a real broker: nothing answered is lost, and people's words get through."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas import codec
from schemas.people import HumanRequest
from streams.clock import fresh_id
from streams.gateway.service import check_partitions
from streams.java import BrokerError
from streams.topics import apply_topics
from tests.streams.gateway.local import CONVERSATION, event, outbound
from tests.streams.runtime.kafka_rig import Rig, now_ms, wait_until

pytestmark = pytest.mark.kafka
WHO = {"shop": "acme", "channel": "web", "sender": "u-1"}


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """All topics, the pipeline's own empty."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    apply_topics(broker, rig.settings)
    return rig


class Process:
    """`interlock gateway` in a process of its own."""

    def __init__(self, rig: Rig) -> None:
        self.environment = {
            **os.environ, "INTERLOCK_BOOTSTRAP_SERVERS": rig.bootstrap, "INTERLOCK_GATEWAY_PORT": "0",
            "INTERLOCK_DATA_DIR": str(rig.settings.data_dir), "INTERLOCK_PARTITIONS": str(rig.settings.partitions),
        }  # fmt: skip
        self.process = subprocess.Popen([sys.executable, "-m", "streams.cli", "gateway"], env=self.environment,
                                        stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split(" at ")[1].split(". ")[0]
        self.environment["INTERLOCK_GATEWAY_URL"] = self.url
        wait_until(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/healthz").status_code == 200
        return False

    def reviews(self, *arguments: str) -> str:
        """`interlock reviews …`: what it printed."""
        done = subprocess.run([sys.executable, "-m", "streams.cli", "reviews", *arguments], env=self.environment,
                              capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
        return done.stdout + done.stderr

    def end(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(15)


@pytest.fixture
def gateway(rig: Rig) -> Iterator[Process]:
    """A running gateway."""
    started = Process(rig)
    yield started
    started.process.kill()
    started.process.wait()


async def test_what_was_answered_is_there_after_sigterm(rig: Rig, gateway: Process) -> None:
    """SIGTERM in full flow: every event that was answered is on the topic, and the exit status is 0 (C21)."""
    answered: set[str] = set()
    enough = asyncio.Event()

    async def pour(client: httpx.AsyncClient, lane: int) -> None:
        for number in range(10_000):
            batch = [event(id=f"{lane}-{number}-{n}", sender=f"u-{lane}-{n}") for n in range(50)]
            answer = await client.post("/v1/events", json=batch)
            answered.update(answer.json().get("event_ids", ()))
            if len(answered) >= 3_000:
                enough.set()

    async with httpx.AsyncClient(base_url=gateway.url, timeout=20) as client:
        lanes = [asyncio.create_task(pour(client, lane)) for lane in range(8)]
        await enough.wait()
        status = await asyncio.to_thread(gateway.end)
        await asyncio.gather(*lanes, return_exceptions=True)

    there = {codec.decode("channel.events", one.value).event_id for one in rig.records("channel.events")}
    assert 0 == status
    assert answered <= there


async def test_a_stop_with_open_streams_is_quick_and_the_outbox_stays(rig: Rig, gateway: Process) -> None:
    """Open streams end at once on SIGTERM; a new gateway goes on from the same outbox."""
    body = {"conversation": CONVERSATION, **outbound().model_dump(mode="json")}
    async with httpx.AsyncClient(base_url=gateway.url, timeout=20) as client:
        assert 202 == (await client.post("/v1/outbox", json=body)).status_code
        async with client.stream("GET", "/v1/stream", params=WHO) as answer:
            lines = answer.aiter_lines()
            assert ": open" == await anext(lines)
            ending = asyncio.create_task(asyncio.to_thread(gateway.end))
            async with asyncio.timeout(5):
                rest = [line async for line in lines]
            assert 0 == await ending
    assert 1 == sum(line.startswith("data: ") for line in rest)
    second = await asyncio.to_thread(Process, rig)
    async with httpx.AsyncClient(base_url=second.url) as client:
        kept = await client.get("/v1/stream", params={**WHO, "once": "true"})
    assert 0 == await asyncio.to_thread(second.end)
    assert '"message_id":"o-1"' in kept.text


def _ask(rig: Rig, kind: Any) -> str:
    name = fresh_id("q")
    request = HumanRequest(
        request_id=name,
        session_id="s",
        kind=kind,
        rule="r",
        reason="money",
        requested_at=now_ms(),
        expires_at=None,
        call_hash="hash-1",
        tool="create_refund",
        args={"amount_fen": 5000},
    )
    rig.publish("human.requests", CONVERSATION, request, name)
    rig.producer.flush(10)
    return name


def _shown(gateway: Process) -> list[str]:
    return [one["request_id"] for one in httpx.get(f"{gateway.url}/v1/requests").json()["requests"]]


def test_a_person_approves_by_command(rig: Rig, gateway: Process) -> None:
    """A request is listed, its approval is bound to its call, and it leaves the list (R-003-18)."""
    name = _ask(rig, "review")
    wait_until(lambda: name in _shown(gateway))
    listed = gateway.reviews("list")
    assert all(words in listed for words in (name, CONVERSATION, "create_refund amount_fen=5000"))

    assert "approve: decision-" in gateway.reviews("approve", name, "--by", "staff-1")
    (record,) = rig.records("human.decisions")
    decision = codec.decode("human.decisions", record.value)
    assert CONVERSATION.encode() == record.key
    assert ("approve", name, "hash-1", "staff-1") == (
        decision.kind, decision.request_id, decision.call_hash, decision.by)  # fmt: skip
    wait_until(lambda: name not in _shown(gateway))
    assert f"no open review has the id {name}" in gateway.reviews("refuse", name)


def test_a_person_takes_over_answers_and_releases(rig: Rig, gateway: Process) -> None:
    """A hand-over is taken by its request's id, answered, and given back."""
    name = _ask(rig, "handover")
    wait_until(lambda: name in _shown(gateway))
    for words in (("takeover", name), ("reply", CONVERSATION, "您好"), ("release", CONVERSATION)):
        assert "decision-" in gateway.reviews(*words, "--by", "staff-1")

    decisions = [codec.decode("human.decisions", one.value) for one in rig.records("human.decisions")]
    assert ["takeover", "reply", "release"] == [one.kind for one in decisions]
    assert [name, None, None] == [one.request_id for one in decisions]
    assert "您好" == decisions[1].text
    wait_until(lambda: name not in _shown(gateway))


def test_another_partition_count_is_refused(rig: Rig) -> None:
    """Keys are placed by the setting: when the topic has another count the gateway does not start (promise 1)."""
    with pytest.raises(BrokerError, match=r"channel.events has 4 partitions, INTERLOCK_PARTITIONS says 5"):
        check_partitions(rig.settings.model_copy(update={"partitions": 5}))


def test_a_missing_topic_is_named(broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its topic the gateway says which command makes it."""
    monkeypatch.setattr("streams.gateway.service.EVENTS", "no.such.topic")
    with pytest.raises(BrokerError, match=r"no topic no\.such\.topic: run `interlock topics apply`"):
        check_partitions(Rig(broker, tmp_path).settings)
