"""What is remembered of a customer, in the whole table: facts of earlier sessions, and stores that do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import FactsError, FactsUnavailableError, Hit
from streams.runtime.virtual import run_virtual
from streams.scenario.local import local_world
from tests.promises.stand import Person, Stand, isolated, whole

LATER = 2 * 3_600_000  # the conversation is closed by then
CITES = "上次那个到哪了"
SENDER = "c-zh-many"  # has three orders, so that only what was said before tells them apart


class Store(EmbeddedFacts):
    """A store in memory that counts its searches, and fails them as told."""

    def __init__(self, failing: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(None)
        self.failing, self.asked = failing, list[tuple[str, str | None]]()

    async def search(self, shop: str, text: str, *, customer: str | None = None, top: int = 5,
                     kinds: Iterable[str] = (), since_ms: int = 0, active_only: bool = True) -> list[Hit]:  # fmt: skip
        """See FactStore."""
        self.asked.append((text, customer))
        if self.failing is not None:
            await self.failing()
        return await super().search(shop, text, customer=customer, top=top, kinds=kinds, since_ms=since_ms,
                                    active_only=active_only)  # fmt: skip

    @property
    def recalls(self) -> int:
        """How often it was searched for a message."""
        return sum(bool(text) for text, _ in self.asked)


async def _down() -> None:
    message = "the store is down"
    raise FactsUnavailableError(message)


async def _broken() -> None:
    message = "the store answered 500"
    raise FactsError(message)


async def _slow() -> None:
    await asyncio.sleep(60)


def remembering(body: Callable[[Stand, Store], Awaitable[None]], store: Store | None = None, **values: Any) -> None:
    """Run a test's body on a fresh system with a store of its own."""
    kept = store or Store()

    async def main() -> None:
        async with local_world(isolated(**{"partitions": 4, **values}), facts=kept) as world:
            await body(Stand(world), kept)

    run_virtual(main())


def reasons(person: Person, rule: str) -> list[str]:
    """The words of a rule in the conversation's register, in order."""
    diffs = person.stand.lock.diffs(person.conversation)
    return [one["text"] for diff in diffs for one in diff["reasons"] if one["rule"] == rule]


def order_of(message: dict[str, Any]) -> str | None:
    """The order that a message is about."""
    found: str | None = (message["target_item"] or {}).get("order_id")
    return found


async def earlier(stand: Stand, number: str = "1021") -> Person:
    """A customer who asked about an order in an earlier conversation, which is closed."""
    person = await stand.person(SENDER)
    await person.say(f"查一下订单{number}的物流")
    await stand.pass_ms(LATER)
    assert "residue" == person.state["kind"]
    return person


def test_the_one_from_last_time_is_a_fact_of_an_earlier_session() -> None:
    """Nothing of the conversation is left, and "上次那个" is the order that the stores recall (R-002-10, F03)."""

    async def body(stand: Stand, store: Store) -> None:
        person = await earlier(stand)
        await person.say(CITES)
        message = person.values("messages.normalized")[-1]
        assert ("logistics", "1021", True) == (message["intent"], order_of(message), "resolved" in message["marks"])
        assert 1 == store.recalls
        assert [one["write_id"] for one in person.state["memory"]["recalled"]["facts"]]
        assert ["在谈的商品：订单1021"] == [text.partition("，")[0] for text in reasons(person, "memory.recalled")]

    remembering(body)


@pytest.mark.parametrize(("first", "text"), [
    ("查一下订单1021的物流", "上次问的那个"), ("where is my order 1021", "the one I asked about last time"),
    ("where is my order 1021", "the item from my last chat"), ("where is my order 1021", "same thing as last time"),
])  # fmt: skip
def test_the_one_that_was_asked_about_is_recalled_in_either_language(first: str, text: str) -> None:
    """Said alone it is no wish: the customer is asked what it is about the order that the stores recall (R-002-10)."""

    async def body(stand: Stand, store: Store) -> None:
        person = await stand.person(SENDER)
        await person.say(first)
        await stand.pass_ms(LATER)
        await person.say(text)
        message = person.values("messages.normalized")[-1]
        assert ("inform", "1021", ["resolved"]) == (message["intent"], order_of(message), message["marks"])
        assert (1, "common.what_about_order") == (store.recalls, person.heard[-1])

    remembering(body)


@pytest.mark.parametrize(("first", "text"), [
    ("查一下订单1021的物流", "之前说的话还算数"), ("where is my order 1021", "last time you were rude"),
    ("where is my order 1021", "you told me last time it was free"),
])  # fmt: skip
def test_what_is_said_of_last_time_is_about_no_order(first: str, text: str) -> None:
    """The stores may be asked, but what they recall is not put into a message that means none of it (case F03)."""

    async def body(stand: Stand, store: Store) -> None:
        person = await stand.person(SENDER)
        await person.say(first)
        await stand.pass_ms(LATER)
        await person.say(text)
        assert order_of(person.values("messages.normalized")[-1]) is None
        assert store.recalls <= 1

    remembering(body)


def test_facts_are_loaded_when_a_session_starts() -> None:
    """The newest active facts come with the profile, once a session, however much is said (R-003-22)."""

    async def body(stand: Stand, store: Store) -> None:
        person = await earlier(stand)
        for text in ("你好", "查一下订单1022的物流", "谢谢"):
            await person.say(text)
        assert ["item/current"] == [one["key"] for one in person.state["memory"]["profile"]["facts"]]
        assert [("", person.conversation)] * 2 == store.asked
        assert 2 == len([one for one in person.values("tools.results") if one["tool"] == "crm.profile"])

    remembering(body)


@pytest.mark.parametrize(("failing", "why"), [
    (_down, "the store is down"), (_broken, "the store answered 500"), (_slow, "no answer in 1000 ms"),
])  # fmt: skip
def test_without_the_store_the_message_is_read_without(failing: Callable[[], Awaitable[None]], why: str) -> None:
    """Down, 5xx or slow: within two seconds the message is read, the record says why, the conversation goes on."""

    async def body(stand: Stand, store: Store) -> None:
        person = await earlier(stand)
        store.failing = failing
        await person.say(CITES, ms=2_000)
        assert f"recall unavailable: {why}" in reasons(person, "memory.recall_unavailable")
        assert "logistics" == person.values("messages.normalized")[-1]["intent"]
        assert len(person.heard) == 2
        await person.say("订单1020到哪了", ms=5_000)
        assert "1020" == order_of(person.values("messages.normalized")[-1])
        assert not {one for one in person.state["timers"] if one.startswith("perception.")}

    remembering(body)


def test_a_store_that_failed_is_left_alone_for_a_while() -> None:
    """Messages right after a failure do not wait again; half a minute later the store is asked once more."""

    async def body(stand: Stand, store: Store) -> None:
        person = await stand.person(SENDER)
        await person.say("你好")
        store.failing = _down
        for text in (CITES, "上次那件衣服呢", "之前买的那个呢"):
            await person.say(text, ms=3_000)
        assert 1 == store.recalls
        assert 2 == len([one for one in reasons(person, "memory.recall_unavailable") if "not asked again" in one])
        await stand.pass_ms(30_000)
        await person.say(CITES)
        assert 2 == store.recalls

    remembering(body)


def test_people_and_stops_do_not_wait_for_the_store() -> None:
    """While a message waits, a wish for a person is handed over at once, behind it in the order that was said."""

    async def body(stand: Stand, store: Store) -> None:
        person = await stand.person(SENDER)
        await person.say("你好")
        store.failing = _slow
        await person.write(CITES)
        await person.write("转人工")
        await asyncio.sleep(0.3)
        assert ["handover"] == [one["kind"] for one in person.values("human.requests")]
        assert ["logistics", "human"] == [one["intent"] for one in person.values("messages.normalized")][-2:]

    remembering(body)


def test_a_message_behind_keeps_its_turn() -> None:
    """What is said while a message waits is told after it, and one that is taken back is never told (B11)."""

    async def body(stand: Stand, store: Store) -> None:
        person = await stand.person(SENDER)
        await person.say("你好")
        store.failing = _slow
        first = await person.write(CITES)
        second = await person.write("上回那件大衣呢")
        await person.write("订单1020到哪了", "m-last")
        await asyncio.sleep(0.3)
        assert 1 == len(person.values("messages.normalized"))
        await person.recall(first, ms=3_000)
        told = [one["ref"]["message_id"] for one in person.values("messages.normalized")]
        assert [second, "m-last"] == told[1:]

    remembering(body)


def test_a_successor_asks_again() -> None:
    """A worker that ends while a message waits leaves nothing behind: the next one tells it, once (promise 6)."""

    async def body(stand: Stand, store: Store) -> None:
        person = await earlier(stand)
        store.failing = _slow
        message_id = await person.write(CITES)
        await asyncio.sleep(0.1)
        store.failing = None
        await stand.lock.restart()
        await stand.pass_ms(15_000)
        told = [one for one in person.values("messages.normalized") if one["ref"]["message_id"] == message_id]
        assert 1 == len(told)
        assert {} == person.state["pending"]
        assert 2 == len([one for one in person.values("tools.results") if one["tool"] == "crm.profile"])

    remembering(body)


def test_nobody_recalls_another_customers_facts() -> None:
    """The same words of somebody else find nothing: a customer is the whole conversation (promise 1)."""

    async def body(stand: Stand, store: Store) -> None:
        await earlier(stand)
        other = await stand.person("c-zh-two")
        await other.say(CITES)
        assert ["nothing is known"] == reasons(other, "memory.recalled")
        assert {SENDER, "c-zh-two"} == {str(customer).rpartition("/")[2] for _, customer in store.asked}
        assert "1021" != order_of(other.values("messages.normalized")[-1])

    remembering(body)


def test_nothing_is_asked_where_it_is_switched_off() -> None:
    """With both times 0 no effect is declared, and a message that cites the past is read at once."""

    async def body(stand: Stand) -> None:
        person = await stand.person(SENDER)
        await person.say(CITES)
        assert ["logistics"] == [one["intent"] for one in person.values("messages.normalized")]
        assert [] == [one for one in person.values("tools.results") if "." in one["tool"]]

    whole(body, profile_ms=0, recall_ms=0)
