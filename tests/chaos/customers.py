"""Customers of a chaos run: generated scenarios with orders of their own, and clients that try again like real ones."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from streams.demo.shop.seed import Customer, Order
from streams.demo.shop.store import Store
from streams.scenario.format import Scenario, parse
from streams.scenario.http import Ends, HttpWorld, WorldError
from streams.scenario.tail import TopicTail
from streams.settings import Settings
from tests.chaos.stand import now_ms

HEAR_MS = 75_000  # an answer may have to wait for another worker, and for the deadline of a lost one's call
PATIENCE_S = 60.0
TRY_AGAIN_S = 0.3
WAVE = 20

_numbers = itertools.count(1)

_REFUND = """
steps:
  - say: {ask}
  - hear: refund.confirm
    within_ms: {hear}
  - wait: {pause}
  - say: {yes}
  - hear: refund.success
    within_ms: {hear}
expect:
  outcome: refunded
  says: [refund.confirm, refund.success]
  refunds: [{{order_id: "{order}", amount_fen: 5000}}]
  delivery: read
  max_messages: 4
"""
_ADDRESS = """
steps:
  - say: {ask}
  - hear: address.confirm
    within_ms: {hear}
  - wait: {pause}
  - say: {yes}
  - hear: address.success
    within_ms: {hear}
expect:
  outcome: address_changed
  says: [address.confirm, address.success]
  address_changes: [{{order_id: "{order}"}}]
  delivery: read
  max_messages: 4
"""
_LOGISTICS = """
steps:
  - say: {ask}
  - hear: logistics.status
    within_ms: {hear}
  - wait: {pause}
  - say: {yes}
expect:
  outcome: answered
  says: [logistics.status]
  delivery: read
  max_messages: 3
"""


@dataclass(frozen=True)
class Kind:
    """What a customer wants, in one language, and the state that their order must have."""

    language: str
    status: Any
    parcel: int
    script: str
    ask: str
    yes: str


KINDS = (
    Kind("zh", "delivered", 3, _REFUND, "我要退款，订单号{order}，衣服太大了", "确认"),
    Kind("en", "delivered", 3, _REFUND, "I would like a refund for order {order}, it stopped working", "go ahead"),
    Kind("en", "shipped", 2, _LOGISTICS, "Where is my order {order}?", "thanks"),
    Kind("zh", "paid", 0, _ADDRESS, "订单{order}帮我改一下地址，改成上海市浦东新区世纪大道100号", "确认"),
    Kind("zh", "delivered", 3, _REFUND, "我要退款，订单号{order}，质量有问题", "是的"),
)  # fmt: skip


def wave(
    name: str, count: int = WAVE, pause_ms: int = 0, hear_ms: int = HEAR_MS, label: str = ""
) -> tuple[list[Scenario], list[Order]]:
    """`count` scenarios in a shop of their own, and the orders that they need; customers think for `pause_ms`."""
    scenarios, orders = [], []
    for index, kind in zip(range(count), itertools.cycle(KINDS), strict=False):
        number = next(_numbers)
        order = f"{500_000 + number}" if kind.language == "zh" else f"OD{500_000 + number}"
        sender = f"c-{label or name}-{index:02d}"
        text = kind.script.format(ask=kind.ask.format(order=order), yes=kind.yes, hear=hear_ms, order=order,
                                  pause=pause_ms)  # fmt: skip
        head = f"name: {sender}\ntitle: chaos\nlanguage: {kind.language}\nshop: {name}\nsender: {sender}\n"
        scenarios.append(parse(head + text, sender))
        orders.append(Order(order, sender, kind.status, 5_000, events=_parcel(kind.parcel)))
    return scenarios, orders


def _parcel(steps: int) -> tuple[tuple[int, str, str], ...]:
    return tuple((-1_000 * (steps - step), f"第{step}步", f"step {step}") for step in range(steps))


def stock(data_dir: Path, orders: Sequence[Order]) -> None:
    """Put the orders, and who they belong to, into the shop's file."""
    store = Store(str(data_dir / "shop.sqlite"), now_ms)
    try:
        store.add([Customer(order.customer_id, "Customer", "standard", "13800000000") for order in orders], orders)
    finally:
        store.close()


class PatientEnds(Ends):
    """A client that sends the same thing again until it is taken: its ids make that safe."""

    async def post(self, url: str, body: Any) -> Any:
        """See Ends. Raises WorldError when it is refused, or not taken within the patience."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.patience_s
        said = ""
        while loop.time() < end:
            try:
                answer = await self.client.post(url, content=orjson.dumps(body),
                                                headers={"content-type": "application/json"})  # fmt: skip
            except httpx.TransportError as error:
                said = repr(error)
            else:
                if answer.is_success:
                    return answer.json() if answer.content else None
                said = f"{answer.status_code} {answer.text[:300]}"
                if answer.status_code < 500 and answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                    break
            await asyncio.sleep(TRY_AGAIN_S)
        message = f"POST {url}: {said}"
        raise WorldError(message)


@contextlib.asynccontextmanager
async def world(settings: Settings) -> AsyncIterator[HttpWorld]:
    """The customers' side, with reviews answered by a scripted approver."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=30) as client:
        with TopicTail(settings) as tail:
            made = HttpWorld(PatientEnds(settings, client, tail, patience_s=PATIENCE_S))
            reviewing = asyncio.create_task(made.review())
            try:
                yield made
            finally:
                reviewing.cancel()
