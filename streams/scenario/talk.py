"""A conversation at the keyboard: lines in, the agent's messages out, and on request why, from the register itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from schemas.delivery import OutboundMessage
from schemas.events import MessageBody, RecallBody
from streams.scenario.format import Scenario, Wait
from streams.scenario.local import local_world
from streams.scenario.memory import MemoryCustomer, MemoryWorld
from streams.settings import Settings

TURN_MS = 4_000  # virtual; longer than a tool's time-out and a review together
HELP = "/recall takes the last message back, /wait SECONDS lets time pass, /quit ends."
STOP = "/quit"
DULL = frozenset({"delivery.receipts", "tools.calls"})  # decisions that say nothing about the agent's thinking

Row = Mapping[str, Any]


def explain(diff: Row) -> Iterator[str]:
    """One decision in lines: what caused it, why, and what follows."""
    cause = diff["cause"]
    yield f"version {diff['version']} on {cause['topic']}"
    for reason in diff["reasons"]:
        evidence = f" [{', '.join(reason['evidence'])}]" if reason["evidence"] else ""
        yield f"  {reason['rule']}: {reason['text']}{evidence}"
    for emit in diff["emits"]:
        yield from _emitted(emit["topic"], emit["data"])


def _emitted(topic: str, data: Row) -> Iterator[str]:
    if topic == "messages.normalized":
        spans = ", ".join(f"{one['field']}={one['value']!r} ({one['start']}-{one['end']})" for one in data["evidence"])
        yield f"  intent {data['intent']} ({data['confidence']:.2f}) from {spans or 'no span'}"
    elif topic == "plans":
        yield f"  plan {data['flow']} at {data['node']}: {data['status']} (version {data['version']})"
    elif topic == "tools.calls":
        yield f"  call {data['tool']} {data['args']}: {data['purpose']}"
    elif topic == "human.requests":
        yield f"  {data['kind']} for a person, {data['status']}: {data['reason']}"
    elif topic == "actions.outbound":
        yield f"  says {data['template_id']}"


class Talk:
    """The turns of one conversation. `say` shows a line to the person at the keyboard."""

    def __init__(self, world: MemoryWorld, scenario: Scenario, say: Callable[[str], None], *, why: bool) -> None:
        self._world, self._scenario, self._say, self._why = world, scenario, say, why
        self._customer = MemoryCustomer(scenario, world)
        self._version = 0
        self._count = 0

    async def run(self, lines: Iterable[str]) -> None:
        """Until the lines end or say so. Time stands still while a line is awaited."""
        self._world.follow(self._scenario)
        await self._customer.open()
        for line in lines:
            text = line.strip()
            if text == STOP:
                return
            if text:
                await self._turn(text)

    async def _turn(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        if name == "/wait" and rest.isdecimal():
            await self._listen(int(rest) * 1000)
        elif name == "/recall":
            await self._customer.send(f"recall-{self._count}", RecallBody(kind="recall", message_id=f"m-{self._count}"))
            await self._listen(TURN_MS)
        elif name.startswith("/"):
            self._say(HELP)
        else:
            try:
                body = MessageBody(kind="message", message_id=f"m-{self._count + 1}", text=text)
            except ValidationError as error:
                self._say(f"Not sent: {error.errors()[0]['msg']}.")
                return
            self._count += 1
            await self._customer.send(f"e-{self._count}", body)
            await self._listen(TURN_MS)

    async def _listen(self, ms: int) -> None:
        end = self._world.clock.now_ms() + ms
        while (left := end - self._world.clock.now_ms()) > 0:
            message = await self._customer.hear(lambda _: True, left)
            if message:
                self._show(message)
        await asyncio.sleep(0)
        if self._why:
            self._explain()

    def _show(self, message: OutboundMessage) -> None:
        for line in message.text.splitlines():
            self._say(f"agent> {line}")

    def _explain(self) -> None:
        for diff in self._world.interlock.diffs(self._scenario.conversation):
            known, self._version = self._version, max(self._version, diff["version"])
            if diff["version"] > known and diff["cause"]["topic"] not in DULL:
                for line in explain(diff):
                    self._say(f"  . {line}")


async def talk(settings: Settings, sender: str, approver: str, lines: Iterable[str], say: Callable[[str], None], *,
               why: bool) -> None:  # fmt: skip
    """One conversation in memory. Raises ValidationError for a sender that can't be one."""
    scenario = Scenario.model_validate({
        "name": "chat", "title": "Chat", "language": "zh", "sender": sender, "approver": approver,
        "steps": (Wait(kind="wait"),), "expect": {"outcome": "open"},
    })  # fmt: skip
    async with local_world(settings) as world:
        await Talk(world, scenario, say, why=why).run(lines)
