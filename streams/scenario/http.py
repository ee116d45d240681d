"""The HTTP side of a scenario: a real client of the gateway, the shop's ledger, and a scripted reviewer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
import orjson

from schemas.base import Model
from schemas.delivery import OutboundMessage, Receipt
from schemas.errors import InterlockError
from schemas.events import Body, RawEvent
from schemas.people import HumanDecision
from streams.clock import SystemClock, fresh_id
from streams.gateway.access import bearer
from streams.scenario.expect import Observation, Row, differences
from streams.scenario.format import Fault, Scenario, setting_of
from streams.scenario.player import Played, play
from streams.scenario.reports import BY, REPORTED
from streams.scenario.tail import TopicTail
from streams.settings import Settings

QUIET_S = 1.5  # so long without a record of a conversation, and nothing more is expected
PATIENCE_S = 25.0  # an outcome that is not there by then is a wrong one
LOOK_S = 0.2
RECONNECT_S = 0.3


class Tail(Protocol):
    """What the pipeline wrote about a conversation so far."""

    def of(self, conversation: str) -> dict[str, list[Row]]:
        """Its records by topic."""
        ...

    def count(self, conversation: str) -> int:
        """How many; unchanged means quiet."""
        ...


class WorldError(InterlockError):
    """The gateway or the shop did not take what a scenario sent: method, path, status and answer."""


@dataclass
class Ends:
    """Where the running system is."""

    settings: Settings
    client: httpx.AsyncClient
    tail: Tail
    clock: SystemClock = field(default_factory=SystemClock)
    patience_s: float = PATIENCE_S

    async def post(self, url: str, body: Any) -> Any:
        """POST JSON; the answer. Raises WorldError for any status but 2xx."""
        headers = {"content-type": "application/json"}
        answer = await self._asked("POST", url, content=orjson.dumps(body), headers=headers)
        if not answer.is_success:
            message = f"POST {url}: {answer.status_code} {answer.text[:300]}"
            raise WorldError(message)
        return answer.json() if answer.content else None

    async def get(self, url: str, **params: str) -> Any:
        """GET JSON. Raises httpx.HTTPError."""
        answer = await self._asked("GET", url, params=params)
        answer.raise_for_status()
        return answer.json()

    async def _asked(self, method: str, url: str, **request: Any) -> httpx.Response:
        """Once more where the server closed an idle connection just then; every POST carries an id, so it is safe."""
        with contextlib.suppress(httpx.RemoteProtocolError):
            return await self._request(method, url, **request)
        return await self._request(method, url, **request)

    async def _request(self, method: str, url: str, **request: Any) -> httpx.Response:
        if url.startswith(f"{self.settings.gateway_url}/"):  # and never to the shop
            request["headers"] = {**request.get("headers", {}), **bearer(self.settings.gateway_key)}
        try:
            return await self.client.request(method, url, **request)
        except httpx.ConnectError as error:
            message = f"nothing answers at {url} ({error}): start `interlock gateway` and `interlock shop`"
            raise WorldError(message) from error


def _json(model: Model) -> dict[str, Any]:
    return model.model_dump(mode="json")


class HttpCustomer:
    """See `Customer`: reads the gateway's event stream and reports what it shows."""

    def __init__(self, scenario: Scenario, ends: Ends) -> None:
        self._scenario, self._ends = scenario, ends
        self._who = {"shop": scenario.shop, "channel": scenario.channel, "sender": scenario.sender}
        self._unheard: list[OutboundMessage] = []
        self._news = asyncio.Condition()
        self._last_id = ""
        self._seen: set[str] = set()
        self._reading: asyncio.Task[None] | None = None
        self._reports: set[asyncio.Task[None]] = set()

    async def send(self, event_id: str, body: Body) -> None:
        """See Customer."""
        event = RawEvent(id=event_id, occurred_at=self._ends.clock.now_ms(), body=body, **self._who)
        await self._ends.post(f"{self._ends.settings.gateway_url}/v1/events", _json(event))

    async def open(self) -> None:
        """See Customer."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name=f"stream {self._scenario.name}")

    async def close(self) -> None:
        """See Customer. What was shown is still reported."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._reading = None
        if self._reports:
            await asyncio.gather(*self._reports)

    async def wait(self, ms: int) -> None:
        """See Customer."""
        await asyncio.sleep(ms / 1000)

    async def hear(self, wanted: Callable[[OutboundMessage], bool], within_ms: int) -> OutboundMessage | None:
        """See Customer."""
        try:
            async with asyncio.timeout(within_ms / 1000), self._news:
                await self._news.wait_for(lambda: any(map(wanted, self._unheard)))
                found = next(filter(wanted, self._unheard))
                self._unheard.remove(found)
                return found
        except TimeoutError:
            return None

    async def staff(self, does: str, text: str) -> None:
        """See Customer."""
        await decide(self._ends, self._scenario.conversation, {"kind": does, "text": text})

    async def _read(self) -> None:
        """The stream, connected again wherever it was cut, from the last id on."""
        while True:
            with contextlib.suppress(httpx.HTTPError):
                async for event_id, data in self._events():
                    self._last_id = event_id
                    await self._show(OutboundMessage.model_validate_json(data))
            await asyncio.sleep(RECONNECT_S)

    async def _events(self) -> AsyncIterator[tuple[str, str]]:
        url = f"{self._ends.settings.gateway_url}/v1/stream"
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        async with self._ends.client.stream("GET", url, params=self._who, headers=headers, timeout=None) as answer:
            answer.raise_for_status()
            event_id, data = "", []
            async for line in answer.aiter_lines():
                name, _, value = line.partition(":")
                if name == "id":
                    event_id = value.strip()
                elif name == "data":
                    data.append(value.removeprefix(" "))
                elif not line and data:
                    yield event_id, "\n".join(data)
                    data = []

    async def _show(self, message: OutboundMessage) -> None:
        if message.message_id not in self._seen:
            self._seen.add(message.message_id)
            async with self._news:
                self._unheard.append(message)
                self._news.notify_all()
        report = asyncio.create_task(self._report(message))
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)

    async def _report(self, message: OutboundMessage) -> None:
        name, url = message.message_id, f"{self._ends.settings.gateway_url}/v1/receipts"
        for state in REPORTED[self._scenario.receipts]:
            receipt = Receipt(
                receipt_id=f"{name}:{message.attempt}:{state}", message_id=name, state=state,
                occurred_at=self._ends.clock.now_ms(), source="client",
            )  # fmt: skip
            await self._ends.post(url, {"conversation": self._scenario.conversation, **_json(receipt)})


async def decide(ends: Ends, conversation: str, fields: dict[str, Any]) -> None:
    """A person's word about a conversation, with an id of its own. Raises WorldError."""
    decision = HumanDecision(decision_id=fresh_id("dec"), by=BY, decided_at=ends.clock.now_ms(), **fields)
    body = {"conversation": conversation, **_json(decision)}
    await ends.post(f"{ends.settings.gateway_url}/v1/decisions", body)


class HttpWorld:
    """See `World`: a gateway, a shop and a broker that run."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._rules: dict[str, str] = {}
        self._decided: set[str] = set()

    async def customer(self, scenario: Scenario) -> HttpCustomer:
        """See World."""
        self._rules[scenario.conversation] = scenario.approver
        return HttpCustomer(scenario, self._ends)

    async def fault(self, fault: Fault) -> None:
        """See World."""
        await self._ends.post(f"{self._ends.settings.shop_url}/faults", _json(fault))

    def deadline(self, name: str) -> int:
        """See World."""
        return int(getattr(self._ends.settings, setting_of(name)))

    async def observe(self, scenario: Scenario) -> Observation:
        """See World: until it is as expected and quiet, or patience ends."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._ends.patience_s + (self.deadline("window") / 1000 if scenario.expect.health else 0)
        count, since = -1, loop.time()
        while True:
            seen = await self._look(scenario)
            now, found = loop.time(), self._ends.tail.count(scenario.conversation)
            if found != count:
                count, since = found, now
            scored = not scenario.expect.health or bool(seen.scores)
            if now > end or (now - since > QUIET_S and scored and not differences(scenario, seen)):
                return seen
            await asyncio.sleep(LOOK_S)

    async def score(self, played: Sequence[Played]) -> None:
        """Wait until every window with activity so far has closed, and take the scores in."""
        window = self.deadline("window")
        left = window - self._ends.clock.now_ms() % window + self._ends.settings.window_grace_ms
        await asyncio.sleep(left / 1000 + QUIET_S)
        for one in played:
            one.seen.records = self._ends.tail.of(one.scenario.conversation)

    async def _look(self, scenario: Scenario) -> Observation:
        done = await self._ends.get(f"{self._ends.settings.shop_url}/ledger", customer_id=scenario.sender)
        return Observation(self._ends.tail.of(scenario.conversation), done["effects"])

    async def review(self) -> None:
        """Answer open reviews as each conversation's scenario says, until cancelled. Raises WorldError for no key."""
        url = f"{self._ends.settings.gateway_url}/v1/requests"
        while True:
            with contextlib.suppress(httpx.HTTPError):
                answer = await self._ends.client.get(url, headers=bearer(self._ends.settings.gateway_key))
                if answer.status_code in {401, 403}:
                    message = f"GET {url}: {answer.status_code} {answer.text[:300]}"
                    raise WorldError(message)
                for row in answer.json()["requests"]:
                    await self._answer(row)
            await asyncio.sleep(LOOK_S)

    async def _answer(self, row: dict[str, Any]) -> None:
        rule = self._rules.get(row["conversation"], "none")
        if row["kind"] != "review" or rule == "none" or row["request_id"] in self._decided:
            return
        self._decided.add(row["request_id"])
        fields = {"kind": rule, "request_id": row["request_id"], "call_hash": row["call_hash"], "reason": "scripted"}
        await decide(self._ends, row["conversation"], fields)


@contextlib.asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[HttpWorld]:
    """A world over the gateway, shop and broker of the settings. Raises KafkaException without a broker."""
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=30) as client:
        with TopicTail(settings) as tail:
            yield HttpWorld(Ends(settings, client, tail))


async def play_over_http(scenarios: Sequence[Scenario], settings: Settings, run: str) -> list[Played]:
    """All scenarios at once against what runs. Raises WorldError, httpx.HTTPError or KafkaException."""
    async with connected(settings) as world:
        reviewing = asyncio.create_task(world.review())
        try:
            return list(await asyncio.gather(*(play(scenario, world, run) for scenario in scenarios)))
        finally:
            if reviewing.done():
                reviewing.result()  # raises why nobody answered
            reviewing.cancel()
