"""Sends a declared message through its channel; in doubt it repeats, where the channel shows an id once (A13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx
import orjson

from schemas import codec
from schemas.delivery import OutboundMessage, Receipt
from schemas.events import own_id
from streams.channels.port import Outcome, Sender
from streams.effects.faults import BROKEN, never_left
from streams.gateway.access import bearer
from streams.runtime.ports import Clock, Effect, Fact

TOPIC = "delivery.receipts"
RETRIES = 2  # then delivery's own timer goes on, with a longer pause
BASE_MS = 100
_ONCE = "; this channel would show a repeat twice"
_PASSING = frozenset({401, 408, 425, 429})  # and every 5xx: the fault may pass; 401: a key is being exchanged


class OutboxSender:
    """See Sender: POST to the gateway's outbox, whose 202 is `sent`."""

    repeatable = True

    def __init__(self, client: httpx.AsyncClient, gateway_url: str, gateway_key: str) -> None:
        self._client, self._headers = client, bearer(gateway_key)
        self._url = f"{gateway_url.rstrip('/')}/v1/outbox"

    async def post(self, effect: Effect) -> Outcome:
        """See Sender."""
        answer = await self._client.post(self._url, json=_body(effect), headers=self._headers, timeout=None)
        told = _judge(answer, str(effect.request["message_id"]))
        return Outcome(at=_time(answer)) if told is None else Outcome(told[0], passing=told[1])


class SendHandler:
    """The "send" effect handler: through the channel's own sender, or the gateway's outbox where it has none."""

    def __init__(self, client: httpx.AsyncClient, gateway_url: str, clock: Clock,
                 senders: Mapping[str, Sender] | None = None, gateway_key: str = "") -> None:  # fmt: skip
        self._outbox = OutboxSender(client, gateway_url, gateway_key)
        self._senders = senders or {}
        self._clock = clock

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler. Not started after the deadline."""
        if self._clock.now_ms() >= effect.deadline:
            return [self._fact(effect, "failed", "not sent: its deadline had passed", retryable=True)]
        return await self._send(effect, effect.deadline)

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler: the message id makes a repeat safe, where the channel heeds it; else a person is asked."""
        if not self._sender(effect).repeatable:
            return [self._fact(effect, "failed", f"outcome unknown: its worker ended{_ONCE}")]
        return await self._send(effect, self._clock.now_ms() + effect.timeout_ms)

    def _sender(self, effect: Effect) -> Sender:
        return self._senders.get(addressed(effect).conversation.split("/")[1], self._outbox)

    async def _send(self, effect: Effect, until: int) -> Sequence[Fact]:
        sender, reason = self._sender(effect), ""
        for number in range(RETRIES + 1):
            left = min(effect.timeout_ms, until - self._clock.now_ms())
            try:
                # httpx's time-outs are for each phase; this one is for all of it
                async with asyncio.timeout(max(left, 1) / 1000):
                    outcome = await sender.post(addressed(effect))
            except (TimeoutError, *BROKEN) as error:
                reason = f"outcome unknown: {type(error).__name__}"
                if not (sender.repeatable or never_left(error)):
                    return [self._fact(effect, "failed", reason + _ONCE)]
            else:
                if outcome.sent:
                    return [self._fact(effect, "sent", at=outcome.at, vendor_id=outcome.vendor_id)]
                reason = outcome.reason
                if not outcome.passing:
                    return [self._fact(effect, "failed", reason)]
            pause = BASE_MS * 2**number
            if number == RETRIES or self._clock.now_ms() + pause >= until:
                break
            await asyncio.sleep(pause / 1000)
        return [self._fact(effect, "failed", reason, retryable=True)]

    def _fact(self, effect: Effect, state: Any, reason: str = "", *, at: int | None = None,
              retryable: bool = False, vendor_id: str | None = None) -> Fact:  # fmt: skip
        message = codec.validate(OutboundMessage, dict(effect.request))
        receipt = Receipt(
            receipt_id=f"{message.message_id}:{message.attempt}:{state}", message_id=message.message_id,
            attempt=message.attempt, state=state, occurred_at=at, reason=reason[:500], source="sender",
            retryable=retryable, vendor_id=vendor_id,
        )  # fmt: skip
        return Fact(TOPIC, effect.conversation, receipt.receipt_id, receipt)


def addressed(effect: Effect) -> Effect:
    """The send as its channel sees it: a root's message can be for the channel of a linked conversation (R-003-05)."""
    to, asked = effect.request.get("to"), effect.request.get("in_reply_to")
    if to is None:
        return effect
    named = None if asked is None else own_id(to, asked)
    return replace(effect, conversation=to, request={**effect.request, "in_reply_to": named})


def _body(effect: Effect) -> dict[str, Any]:
    return {"conversation": effect.conversation, **effect.request}


def _judge(answer: httpx.Response, message_id: str) -> tuple[str, bool] | None:
    """None when it was taken; else why not, and whether the fault may pass. A 200 with an error is none (H13)."""
    body = _object(answer)
    error = body.get("error")
    if isinstance(error, dict):
        reason = f"{error.get('code', answer.status_code)}: {error.get('message', '')} {error.get('field', '')}".strip()
    elif body.get("errcode") not in (None, 0):
        reason = f"errcode {body['errcode']}: {body.get('errmsg', '')}"
    # the id, not only the status: a proxy in between can answer 202, too
    elif answer.status_code == 202 and body.get("message_id") == message_id:
        return None
    else:
        return f"answered {answer.status_code} without the message's id", answer.status_code not in range(400, 500)
    return reason, answer.status_code >= 500 or answer.status_code in _PASSING


def _time(answer: httpx.Response) -> int | None:
    """When the channel stored it, by the channel's clock."""
    at = _object(answer).get("at")
    return at if type(at) is int else None


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
