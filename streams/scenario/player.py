"""Plays a script through a customer's hands; whether HTTP or memory is behind them, it does not know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from schemas.delivery import OutboundMessage
from schemas.events import Body, EditBody, MessageBody, PresenceBody, RatingBody, RecallBody
from streams.scenario.expect import Observation, differences
from streams.scenario.format import (
    ComeBack,
    Edit,
    Fault,
    Hear,
    Leave,
    Rate,
    Recall,
    Say,
    Scenario,
    SendAgain,
    Staff,
    Step,
    Wait,
)


class Customer(Protocol):
    """The hands of one scripted customer: their client and, where the script says so, the staff's."""

    async def send(self, event_id: str, body: Body) -> None:
        """An event of the customer, with the producer's id."""
        ...

    async def open(self) -> None:
        """The window is open: messages are read and receipts sent, also for what came meanwhile."""
        ...

    async def close(self) -> None:
        """The window is closed."""
        ...

    async def wait(self, ms: int) -> None:
        """That much time passes."""
        ...

    async def hear(self, wanted: Callable[[OutboundMessage], bool], within_ms: int) -> OutboundMessage | None:
        """The next message not heard before that is wanted; None when it did not come in time."""
        ...

    async def staff(self, does: str, text: str) -> None:
        """Support staff decide about this conversation."""
        ...


class World(Protocol):
    """Where a scenario is played."""

    async def customer(self, scenario: Scenario) -> Customer:
        """The customer's hands; reviews of this conversation are answered as the scenario says."""
        ...

    async def fault(self, fault: Fault) -> None:
        """Tell the shop to do something wrong."""
        ...

    async def observe(self, scenario: Scenario) -> Observation:
        """Wait until nothing more comes of it, then all that is known of the conversation."""
        ...

    def deadline(self, name: str) -> int:
        """The setting of a named deadline, milliseconds."""
        ...


@dataclass
class Played:
    """A scenario with what came of it; `faults` is empty when that is what it expects."""

    scenario: Scenario
    seen: Observation = field(default_factory=Observation)
    faults: list[str] = field(default_factory=list)


class _Player:
    def __init__(self, scenario: Scenario, world: World, customer: Customer, run: str) -> None:
        self.scenario, self.world, self.customer = scenario, world, customer
        self.prefix = f"{scenario.name}-{run}" if run else scenario.name
        self.sent: dict[str, tuple[str, Body]] = {}
        self.faults: list[str] = []

    async def _send(self, name: str, body: Body) -> None:
        event_id = f"{self.prefix}:{name}"
        self.sent[name] = (event_id, body)
        await self.customer.send(event_id, body)

    def _message(self, name: str) -> str:
        return f"{self.prefix}:{name}"

    async def _hear(self, number: int, step: Hear) -> None:
        found = await self.customer.hear(lambda message: step.template in ("any", message.template_id), step.within_ms)
        if found is None:
            # Noted and not raised: what comes later tells more about why it was not said.
            self.faults.append(f"step {number}: {step.template} not heard within {step.within_ms} ms")

    async def _customer_step(self, number: int, step: Step) -> None:
        match step:
            case Say(text=text, id=name):
                name = name or f"m{number}"
                await self._send(name, MessageBody(kind="message", message_id=self._message(name), text=text))
            case Recall(of=name):
                await self._send(f"{number}", RecallBody(kind="recall", message_id=self._message(name)))
            case Edit(of=name, text=text):
                await self._send(f"{number}", EditBody(kind="edit", message_id=self._message(name), text=text))
            case SendAgain(of=name):
                await self.customer.send(*self.sent[name])
            case Rate(score=score):
                await self._send(f"{number}", RatingBody(kind="rating", score=score))

    async def step(self, number: int, step: Step) -> None:
        """One line of the script."""
        match step:
            case Hear():
                await self._hear(number, step)
            case Wait(ms=ms, past=past):
                await self.customer.wait(ms + (self.world.deadline(past) if past else 0))
            case Leave():
                await self._send(f"{number}", PresenceBody(kind="presence", status="offline"))
                await self.customer.close()
            case ComeBack():
                await self._send(f"{number}", PresenceBody(kind="presence", status="online"))
                await self.customer.open()
            case Staff(does=does, text=text):
                await self.customer.staff(does, text)
            case _:
                await self._customer_step(number, step)


async def play(scenario: Scenario, world: World, run: str = "") -> Played:
    """Play a scenario to its end and compare. A customer who does not hear what they wait for goes on.

    `run` makes the producer's ids new, where the same file was played before.
    """
    for fault in scenario.shop_faults:
        await world.fault(fault)
    customer = await world.customer(scenario)
    await customer.open()
    player = _Player(scenario, world, customer, run)
    for number, step in enumerate(scenario.steps, 1):
        await player.step(number, step)
    seen = await world.observe(scenario)
    await customer.close()
    return Played(scenario, seen, [*player.faults, *differences(scenario, seen)])
