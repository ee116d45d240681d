"""What a channel is: doors through which it pushes to us, and a way to send. An adapter file makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import httpx

from schemas.delivery import Receipt
from schemas.events import RawEvent
from streams.gateway.reading import RefusedError
from streams.runtime.ports import Clock, Effect

Fault = Literal["signature", "replay", "entity", "downgrade"]


@dataclass(frozen=True, slots=True)
class Push:
    """One HTTP request of a channel; `path` are the variables of the door's path, header names are in lower case."""

    now_ms: int
    body: bytes = b""
    query: Mapping[str, str] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a push that was taken."""

    body: bytes = b""
    status: int = 200
    media_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a push held: customers' events, receipts with their conversations, and how it is answered."""

    events: tuple[RawEvent, ...] = ()
    receipts: tuple[tuple[str, Receipt], ...] = ()
    reply: Reply = Reply()


class SecurityError(RefusedError):
    """A push that looks like an attack; counted by its kind."""

    def __init__(self, status: int, kind: Fault, message: str, field: str = "") -> None:
        super().__init__(status, kind, message, field)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Door:
    """A path below `/v1/channels/<name>` and the function that reads what is pushed there.

    `read` raises RefusedError, which names the field, and nothing else, whatever was pushed. `signed`: it checks a
    proof of its own; a push at any other door needs a producer key that may publish, where there are keys.
    """

    method: Literal["GET", "POST"]
    path: str
    read: Callable[[Push], Taken]
    max_bytes: int = 1_048_576
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one try to send came to. `passing`: the same try later may do; `at`: the channel's time, if it says one."""

    reason: str = ""
    passing: bool = False
    at: int | None = None
    vendor_id: str | None = None

    @property
    def sent(self) -> bool:
        """Whether the channel took it."""
        return not self.reason


class Sender(Protocol):
    """One try to send a message. Raises TimeoutError or httpx.RequestError when the outcome is not known."""

    @property
    def repeatable(self) -> bool:
        """Whether the channel shows a message id once, however often it is sent (case A13)."""
        ...

    async def post(self, effect: Effect) -> Outcome:
        """Send `effect.request`, an OutboundMessage, to the customer of `effect.conversation`."""
        ...


@dataclass(frozen=True, slots=True)
class Channel:
    """An adapter. Without a sender, messages wait in the gateway's outbox for the customer's client.

    A channel with `blind` never says what the customer saw, so nothing is sent again because no one looked.
    """

    name: str
    doors: tuple[Door, ...] = ()
    sender: Callable[[httpx.AsyncClient, Clock], Sender] | None = None
    blind: bool = False
