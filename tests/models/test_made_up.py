"""A model server over HTTP that makes things up, in the whole system: nothing is done that the customer did not say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from streams.effects.model import ModelHandler, ModelServer
from streams.runtime.virtual import run_virtual, virtual_clock
from streams.scenario.local import local_world
from tests.models.real_model import wrong
from tests.models.stub import Behave, Blocking, Stub, Told, completion, form, stub
from tests.promises.stand import Person, Stand, isolated


def served(told: Told | Behave, body: Callable[[Stand, Stub], Awaitable[None]], when: str = "always",
           **values: Any) -> None:  # fmt: skip
    """Run a test's body on a fresh system whose model is that server."""

    async def main(server: Stub) -> None:
        settings = isolated(partitions=4, model_url=server.url, model_name="small", model_when=when, **values)
        async with httpx.AsyncClient(transport=Blocking()) as client:
            model = ModelHandler(client, ModelServer(server.url, "", "small"), virtual_clock())
            async with local_world(settings, model) as world:
                await body(Stand(world), server)

    with stub(told) as server:
        run_virtual(main(server))


def _quoting(intent: str, **more: Any) -> Behave:
    """A model that reads that intent in every message, on the customer's own words, as sure as can be."""

    def told(asked: dict[str, Any]) -> Told:
        text = asked["messages"][1]["content"].rpartition("message: ")[2].strip('"')
        return completion(form(intent, text[:40], confidence=1.0, **more))

    return told


MADE_UP: dict[str, Told | Behave] = {
    "another's order": _quoting("refund", order_ids=["1002"], plan=["pay"]),
    "an order from nowhere": _quoting("refund", order_ids=["OD424242"], plan=["look_up", "pay"]),
    "a price as an order": _quoting("refund", order_ids=["1299"]),
    "always yes": _quoting("confirm"),
    "always stop": _quoting("stop"),
    "always a person": _quoting("human"),
    "a cancel": _quoting("cancel", order_ids=["1001"], plan=["change"]),
    "another address": _quoting("change_address", order_ids=["1001"], inferences=["to 1 Evil Street"]),
    "orders to the shop": _quoting("refund", order_ids=["1001'); drop"], inferences=["approve it", "skip the review"]),
    "a tool of its own": completion({"tool": "create_refund", "args": {"order_id": "1001"}}),
    "words": completion(content="I have refunded order 1001 for you."),
}
SAID = ("东西不太对，付了1299", "嗯", "the other one")
UNCLEAR = "东西还是没影"


@pytest.mark.parametrize("name", MADE_UP)
def test_nothing_is_done_on_a_models_word(name: str) -> None:
    """Whatever it makes up, no write is proposed, no review asked for and nothing done (promise 7)."""

    async def body(stand: Stand, server: Stub) -> None:
        person = await stand.person("c-zh-refund")
        for text in SAID:
            await person.say(text)
        assert server.asked
        assert ([], []) == (wrong(person, SAID), await person.ledger())
        assert {"query"} >= {call["risk"] for call in person.values("tools.calls")}
        assert "review" not in [request["kind"] for request in person.values("human.requests")]
        assert person.heard, "the customer is answered all the same"

    served(MADE_UP[name], body)


@pytest.mark.parametrize("name", ["another's order", "always yes", "words", "HTTP 500"])
def test_a_refund_goes_as_without_a_model(name: str) -> None:
    """What the customer says clearly is done as they said it, once, whatever a model makes of it (promise 7)."""

    async def body(stand: Stand, _: Stub) -> None:
        person = await stand.person("c-zh-refund")
        for text in ("我要退款，订单号1001，质量有问题", "确认"):
            await person.say(text)
        done = [(row["kind"], row["order_id"]) for row in await person.ledger()]
        assert done in ([("refund", "1001")], []), "doubted, it may be asked about; it is never another's"
        assert [] == wrong(person, ["1001"])

    served(MADE_UP.get(name, Told(b"", 500)), body)


def test_a_doubtful_question_is_answered_with_a_model() -> None:
    """What we do not understand and a model does is looked up: the port is worth its wait (R-003-06)."""

    async def body(stand: Stand, server: Stub) -> None:
        person = await stand.person("c-zh-refund")
        await person.say(UNCLEAR)
        assert ["logistics.ask_order_id"] == person.heard
        await person.say("1001")
        assert [("get_logistics", "1001")] == calls(person)
        assert 1 == len(server.asked)

    served(_quoting("logistics"), body, when="doubtful")


def test_a_change_is_asked_about_first() -> None:
    """A wish for a change that only a model reads becomes a question to the customer, whose yes counts (promise 7)."""

    async def body(stand: Stand, _: Stub) -> None:
        person = await stand.person("c-zh-refund")
        await person.say(UNCLEAR)
        assert ["common.clarify_guess"] == person.heard
        await person.say("1")
        assert "refund.ask_order_id" == person.heard[-1]

    served(_quoting("refund", plan=["look_up", "ask_customer", "pay"]), body, when="doubtful")


def calls(person: Person) -> list[tuple[str, str]]:
    """The tools that were called, and for which order."""
    return [(call["tool"], call["args"].get("order_id", "")) for call in person.values("tools.calls")]


def test_a_question_about_what_was_talked_of_is_looked_up() -> None:
    """An order that stands in the window may be looked up on a model's word, and is not changed on it."""

    async def body(stand: Stand, server: Stub) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("查一下1001的物流")
        before = calls(person)
        await person.say("还在半路上磨蹭吗")
        assert "Orders talked of: 1001" in server.said()
        assert {("get_logistics", "1001")} == set(calls(person))
        assert len(calls(person)) >= len(before)

    served(_quoting("logistics", order_ids=["1001"]), body)
