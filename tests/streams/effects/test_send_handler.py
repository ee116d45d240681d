"""The send handler against the real gateway app, and against one that loses answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from memory.sealing import MemoryKeyStore
from schemas.delivery import OutboundMessage, Receipt
from schemas.events import linked_id
from streams.channels.port import Outcome
from streams.effects.send import SendHandler
from streams.gateway.app import Gateway
from streams.gateway.outbox import Outbox
from streams.runtime.local import LocalLog, LocalSend
from streams.runtime.ports import Effect, Fact
from streams.runtime.virtual import VirtualLoop, run_virtual, virtual_clock
from streams.settings import Settings
from tests.streams.gateway.keys import ORDERS, WORKER, key_file

CONVERSATION = "acme/web/u-1"
Answer = Callable[[httpx.Request], httpx.Response]


def effect(now: int, attempt: int = 1, deadline: int = 30_000) -> Effect:
    """A declared send."""
    message = OutboundMessage(message_id="m-1", session_id="s-1", attempt=attempt, kind="reply", template_id="t.a",
                              language="zh", text="好的")  # fmt: skip
    return Effect(CONVERSATION, f"m-1:{attempt}", "send", "m-1", now, now + deadline, 2_000,
                  message.model_dump(mode="json"))  # fmt: skip


class Channel:
    """A real gateway whose answers pass through `spoil`."""

    def __init__(self, clock: VirtualLoop, **settings: Any) -> None:
        chosen = Settings(bootstrap_servers="none", **settings)
        self.outbox = Outbox(None, clock.now_ms)
        app = Gateway(chosen, LocalSend(LocalLog(clock)), self.outbox, MemoryKeyStore(), clock).app()
        self._gateway = httpx.ASGITransport(app)
        self.losses = 0
        self.requests = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """The gateway's answer, or none: lost after the gateway has stored the message."""
        self.requests += 1
        answer = await self._gateway.handle_async_request(request)
        await answer.aread()
        if self.losses:
            self.losses -= 1
            await asyncio.sleep(600)
        return answer

    def visible(self) -> list[tuple[str, int]]:
        """What a client sees: message id and attempt."""
        return [(one.message_id, one.attempt) for one in self.outbox.after(CONVERSATION, 0)]


def send(losses: int = 0, attempts: tuple[int, ...] = (1,)) -> tuple[list[Receipt], Channel]:
    """Send the message's attempts through a gateway that loses so many answers."""

    async def main() -> tuple[list[Receipt], Channel]:
        clock = virtual_clock()
        channel = Channel(clock)
        channel.losses = losses
        async with httpx.AsyncClient(transport=httpx.MockTransport(channel)) as client:
            handler = SendHandler(client, "http://gateway/", clock)
            facts = [fact for attempt in attempts for fact in await handler.run(effect(clock.now_ms(), attempt))]
        assert {("delivery.receipts", CONVERSATION)} == {(fact.topic, fact.conversation) for fact in facts}
        return [fact.value for fact in facts if isinstance(fact.value, Receipt)], channel

    return run_virtual(main())


def answered(answer: httpx.Response | Exception, deadline: int = 30_000) -> tuple[Receipt, int]:
    """The receipt of a send to a channel that always answers so, and how often it was asked."""
    asked = 0

    def service(_request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, content=answer.content)

    async def main() -> Receipt:
        clock = virtual_clock()
        async with httpx.AsyncClient(transport=httpx.MockTransport(service)) as client:
            (fact,) = await SendHandler(client, "http://g", clock).run(effect(clock.now_ms(), deadline=deadline))
        assert isinstance(fact.value, Receipt)
        return fact.value

    return run_virtual(main()), asked


def test_a_stored_message_is_sent() -> None:
    """202 is `sent`, with the channel's time and one id for the attempt (R-002-29)."""
    (receipt,), channel = send()

    assert ("m-1:1:sent", "sent", 1, "sender") == (
        receipt.receipt_id, receipt.state, receipt.attempt, receipt.source)  # fmt: skip
    assert receipt.occurred_at is not None
    assert [("m-1", 1)] == channel.visible()


def test_a_lost_answer_is_repeated_and_one_message_is_visible() -> None:
    """The channel accepted and its answer is lost: the retry has the same id, the customer sees one message (A13)."""
    (receipt,), channel = send(losses=2)

    assert ("sent", 3) == (receipt.state, channel.requests)
    assert [("m-1", 1)] == channel.visible()


def test_an_outcome_that_stays_unknown_is_told_as_such() -> None:
    """All answers lost: not failed for good, delivery may repeat or a receipt may tell (A13)."""
    (receipt,), channel = send(losses=9)

    assert ("failed", True) == (receipt.state, receipt.retryable)
    assert "unknown" in receipt.reason
    assert [("m-1", 1)] == channel.visible()


def test_a_resend_stays_one_message() -> None:
    """Attempt 2 is the same visible message with a higher attempt (R-002-31, A13)."""
    receipts, channel = send(attempts=(1, 2))

    assert ["m-1:1:sent", "m-1:2:sent"] == [one.receipt_id for one in receipts]
    assert [("m-1", 2)] == channel.visible()


@pytest.mark.parametrize("answer", [
    httpx.Response(200, json={"errcode": 45015, "errmsg": "window closed"}),
    httpx.Response(200, json={"error": {"code": "blocked", "message": "no"}}),
    httpx.Response(422, json={"error": {"code": "wrong_value", "message": "no", "field": "text"}}),
])  # fmt: skip
def test_a_refusal_is_failed_without_retry(answer: httpx.Response) -> None:
    """A 4xx, or an error inside a 200, is failed with its reason, asked once (H13)."""
    receipt, asked = answered(answer)

    assert ("failed", False, 1) == (receipt.state, receipt.retryable, asked)
    assert receipt.reason


@pytest.mark.parametrize("answer", [
    httpx.Response(503, json={"error": {"code": "outbox", "message": "full"}}), httpx.Response(200, content=b"<html>"),
    httpx.Response(429, json={"error": {"code": "busy", "message": ""}}), httpx.ConnectError("refused"),
])  # fmt: skip
def test_a_fault_that_may_pass_is_retried_and_left_retryable(answer: httpx.Response | Exception) -> None:
    """Two quick retries, then delivery's timer decides (R-002-27)."""
    receipt, asked = answered(answer)

    assert ("failed", True, 3) == (receipt.state, receipt.retryable, asked)


def test_after_its_deadline_nothing_is_sent() -> None:
    """A send whose deadline has passed does not leave (promise 6)."""
    receipt, asked = answered(httpx.Response(202), deadline=0)

    assert ("failed", True, 0) == (receipt.state, receipt.retryable, asked)


def test_a_successor_repeats_under_the_same_id() -> None:
    """A pending send past its deadline is repeated; the message id keeps it one (promise 6)."""

    async def main() -> list[tuple[str, int]]:
        clock = virtual_clock()
        channel = Channel(clock)
        async with httpx.AsyncClient(transport=httpx.MockTransport(channel)) as client:
            handler = SendHandler(client, "http://gateway", clock)
            pending = effect(clock.now_ms())
            await handler.run(pending)
            await asyncio.sleep(60)
            (fact,) = await handler.resolve(pending)
            assert "m-1:1:sent" == fact.id
        return channel.visible()

    assert [("m-1", 1)] == run_virtual(main())


class Sent:
    """A channel that sends by itself, and what it was given."""

    repeatable = True

    def __init__(self) -> None:
        self.effects: list[Effect] = []

    async def post(self, effect: Effect) -> Outcome:
        """See Sender."""
        self.effects.append(effect)
        return Outcome(vendor_id="v-1")


@pytest.mark.parametrize("channel", ["wechat", "app"])
def test_a_roots_message_goes_to_the_linked_channel(channel: str) -> None:
    """Channel, receiver and the answered message are the linked one's, the receipt is the root's (R-003-05)."""
    to = f"acme/{channel}/w-1"

    async def main() -> tuple[Fact, Sent, Channel]:
        clock, sent = virtual_clock(), Sent()
        gateway = Channel(clock)
        async with httpx.AsyncClient(transport=httpx.MockTransport(gateway)) as client:
            handler = SendHandler(client, "http://gateway", clock, {"wechat": sent})
            asked = effect(clock.now_ms())
            request = {**asked.request, "to": to, "in_reply_to": linked_id(to, "m-9")}
            (fact,) = await handler.run(replace(asked, request=request))
        return fact, sent, gateway

    fact, sent, gateway = run_virtual(main())
    assert ("delivery.receipts", CONVERSATION) == (fact.topic, fact.conversation)
    if channel == "wechat":
        assert [(to, "m-9")] == [(one.conversation, one.request["in_reply_to"]) for one in sent.effects]
    else:
        assert ["m-9"] == [orjson.loads(one.message)["in_reply_to"] for one in gateway.outbox.after(to, 0)]
    assert [] == gateway.visible()


@pytest.mark.parametrize(("key", "sent", "tries"), [(WORKER, "sent", 1), ("", "failed", 3), (ORDERS, "failed", 1)])
def test_the_gateway_is_shown_the_workers_key(key: str, sent: str, tries: int, tmp_path: Path) -> None:
    """With the right key it is sent. An unknown key is tried again, as keys change; one without the right is not."""

    async def main() -> tuple[Receipt, int]:
        clock = virtual_clock()
        channel = Channel(clock, producer_key_file=key_file(tmp_path))
        async with httpx.AsyncClient(transport=httpx.MockTransport(channel)) as client:
            (fact,) = await SendHandler(client, "http://gateway", clock, None, key).run(effect(clock.now_ms()))
        assert isinstance(fact.value, Receipt)
        return fact.value, channel.requests

    receipt, asked = run_virtual(main())
    assert (sent, tries, sent == "failed" and not key) == (receipt.state, asked, receipt.retryable)
    assert WORKER not in receipt.reason
