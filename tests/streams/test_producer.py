"""The producer library without a broker: what it refuses, how it tells what was lost, and what it imports."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from memory.sealing import MemoryKeyStore
from schemas.errors import BadRecordError
from streams.producer import AsyncProducer, Failure, NotDeliveredError, Producer, ProducerError
from tests.streams.producing import event

NOWHERE = "127.0.0.1:1"  # nobody listens there
HEAVY = ("faust", "aiokafka", "httpx", "starlette", "uvicorn", "neo4j", "weaviate", "typer", "rich",
         "pydantic_settings", "agents", "feedback", "sklearn", "numpy")  # fmt: skip


def producer(**options: Any) -> Producer:
    """One that reaches nobody."""
    return Producer(NOWHERE, keys=MemoryKeyStore(), **{"at_exit": False, "timeout_s": 1.0, **options})


def test_what_was_not_delivered_is_told_and_raised() -> None:
    """A broker that is away: the callback hears of each event, flush raises once with the first reasons (case C21)."""
    heard: list[Failure] = []
    sending = producer(on_error=heard.append)
    names = [sending.send(event(number)) for number in range(3)]
    with pytest.raises(NotDeliveredError, match="3 events did not reach the broker") as told:
        sending.flush(10)
    sending.close()
    assert names == [one.event_id for one in told.value.failures] == [one.event_id for one in heard]
    assert "demo/app/u0" == heard[0].conversation


def test_a_block_that_ends_well_raises_what_was_lost() -> None:
    """The end of a `with` block is a flush: events that are nowhere raise there, and are no success."""
    with pytest.raises(NotDeliveredError, match="send them again under the same ids"), producer() as sending:
        sending.send(event(1))


def test_a_block_that_fails_keeps_its_own_error(caplog: pytest.LogCaptureFixture) -> None:
    """The block's error goes on; what was lost is in the log beside it."""
    with pytest.raises(ZeroDivisionError), producer() as sending:
        sending.send(event(1 // 0 if sending.send(event(1)) else 0))
    assert "at the end: 1 events did not reach the broker" in caplog.text


def test_a_full_queue_is_never_taken_for_sent() -> None:
    """No room: the send waits, then raises; the event was not accepted (case C21)."""
    sending = producer(timeout_s=0.3, config={"queue.buffering.max.messages": 1, "message.timeout.ms": 60_000})
    sending.send(event(1))
    with pytest.raises(ProducerError, match="no room for ev-"):
        sending.send(event(2))
    with pytest.raises(NotDeliveredError):
        sending.close(0.1)


async def test_an_async_send_raises_for_its_own_event() -> None:
    """Who awaited the event is told that it is not there."""
    sending = AsyncProducer(NOWHERE, keys=None, at_exit=False, timeout_s=0.5)
    with pytest.raises(NotDeliveredError) as told:
        await sending.send(event(1))
    await sending.close()
    assert "demo/app/u1" == told.value.failures[0].conversation


@pytest.mark.parametrize(("changes", "field"), [
    ({"sender": "a/b"}, "sender"), ({"id": None}, "id"), ({"body": {"kind": "dance"}}, "body.kind"),
])  # fmt: skip
def test_what_is_no_event_raises_at_once(changes: dict[str, Any], field: str) -> None:
    """The field is named, and nothing was handed over."""
    sending = producer()
    with pytest.raises(BadRecordError) as told:
        sending.send({**event(1), **changes})
    sending.close()
    assert field == told.value.field


def test_an_event_that_no_topic_takes_raises_at_once() -> None:
    """The broker would refuse it for ever: once sealed it is larger than a record may be."""
    wide = event(1)
    files = [{"kind": "voice", "ref": f"f-{number}", "text": "13812345678 " + "退" * 19_900} for number in range(15)]
    wide["body"] = {"kind": "message", "message_id": "m", "text": "", "attachments": files}
    sending = producer()
    with pytest.raises(BadRecordError, match="the topic takes at most 1048576"):
        sending.send(wide)
    sending.close()


@pytest.mark.parametrize("name", ["partitioner", "acks", "enable.idempotence", "bootstrap.servers"])
def test_order_and_placement_are_not_for_choice(name: str) -> None:
    """One producer with another partitioner would break the one order of a conversation (promise 1)."""
    with pytest.raises(ProducerError, match=name):
        producer(config={name: "0"})


def test_a_closed_producer_takes_nothing() -> None:
    """A send after the end raises; nothing disappears."""
    sending = producer()
    sending.close()
    with pytest.raises(ProducerError, match="closed"):
        sending.send(event(1))


def test_a_service_imports_little() -> None:
    """Other teams' services do not load the pipeline, the web server, the stores or a model with it."""
    code = f"import sys, streams.producer; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "[]" == done.stdout.strip()
