"""The customer's profile in the whole table: loaded once a session, sealed, waited for by nobody."""

from __future__ import annotations

import asyncio

import orjson

from memory.sealing import open_seal
from schemas.events import Seal
from streams.scenario.format import Fault
from tests.promises.stand import Stand, whole
from tests.streams.test_recall import LATER, order_of, reasons

DOWN = {"path_prefix": "/customers", "method": "GET", "kind": "error", "status": 503, "times": 99}


def test_a_profile_is_loaded_once_a_session() -> None:
    """Level, addresses and orders of the demo shop are there with their age, by one recorded result (R-003-22)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-many")
        for text in ("你好", "在吗", "谢谢"):
            await person.say(text)
        (result,) = [one for one in person.values("tools.results") if one["tool"] == "crm.profile"]
        profile = person.state["memory"]["profile"]
        assert ("gold", result["finished_at"]) == (profile["level"], profile["loaded_at"])
        assert [("1022", "shipped"), ("1021", "delivered"), ("1020", "delivered")] == [
            (one["order_id"], one["status"]) for one in profile["orders"]]  # fmt: skip
        assert {} == person.state["pending"]
        await stand.pass_ms(LATER)
        assert None is person.state["memory"].get("profile")

    whole(body)


def test_earlier_problems_and_their_solutions_are_in_it() -> None:
    """A refund of an earlier session is in the next session's profile, with what came of it (R-003-22)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        for text in ("我要退款，订单号1001，杯子裂了", "是的"):
            await person.say(text, ms=5_000)
        assert 1 == len(await person.ledger())
        await stand.pass_ms(LATER)
        await person.say("你好")
        assert ["refund 50.00 1001: accepted"] == person.state["memory"]["profile"]["problems"]

    whole(body)


def test_names_and_addresses_are_sealed() -> None:
    """What is personal in a profile is in clear on no topic, and its seal gives it back (promise 9)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-many")
        await person.say("你好")
        everything = b"".join(record.value or b"" for record in stand.everything()).decode()
        assert not [word for word in ("顾客19", "示例路20号") if word in everything]
        profile = person.state["memory"]["profile"]
        clear = open_seal(stand.world.keys, Seal(**profile["seal"]), person.conversation)
        assert ["顾客19", "示例市示例区示例路22号"] == [
            orjson.loads(clear or b"{}")["name"], orjson.loads(clear or b"{}")["addresses"][0]]  # fmt: skip

    whole(body)


def test_a_crm_that_is_down_is_said_and_waited_for_by_nobody() -> None:
    """The first message is answered as ever, the record says why there is no profile, and it is not asked again."""

    async def body(stand: Stand) -> None:
        await stand.world.fault(Fault.model_validate(DOWN))
        person = await stand.person("c-zh-logistics")
        for text in ("查一下订单1008的物流", "谢谢", "订单1008到哪了"):
            await person.say(text)
        assert 2 == person.heard.count("logistics.status")
        assert ["profile unavailable: the service answered 503"] == reasons(person, "memory.profile_unavailable")
        assert 1 == len([one for one in person.values("tools.results") if one["tool"] == "crm.profile"])
        profile = person.state["memory"]["profile"]
        assert (0, {"crm": "the service answered 503"}) == (profile["loaded_at"], profile["unavailable"])

    whole(body)


def test_a_slow_crm_keeps_nobody_waiting() -> None:
    """A CRM that hangs costs its own two seconds and no reply a millisecond (R-003-22)."""

    async def body(stand: Stand) -> None:
        await stand.world.fault(Fault.model_validate({**DOWN, "kind": "delay", "delay_ms": 60_000}))
        person = await stand.person("c-zh-logistics")
        await person.write("查一下订单1008的物流")
        await asyncio.sleep(0.5)
        assert ["logistics.status"] == person.heard
        assert [] == reasons(person, "memory.profile_unavailable")
        await stand.pass_ms(2_000)
        assert ["profile unavailable: no answer in 2000 ms"] == reasons(person, "memory.profile_unavailable")

    whole(body)


def test_an_old_profile_stays_with_its_age() -> None:
    """When the next session's load fails, the profile of the one before it stands, as old as it is."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-many")
        await person.say("你好")
        before = person.state["memory"]["profile"]
        await stand.world.fault(Fault.model_validate(DOWN))
        await stand.pass_ms(45 * 60_000)
        await person.say("在吗")
        after = person.state["memory"]["profile"]
        assert before["session_id"] != after["session_id"] == person.state["session"]["id"]
        assert (before["orders"], before["loaded_at"]) == (after["orders"], after["loaded_at"])
        assert ["crm"] == list(after["unavailable"])

    whole(body)


def test_the_only_order_of_a_customer_is_the_one_from_last_time() -> None:
    """Where the stores know nothing, the shop's own record tells what "上次那个" is, if it is one thing (R-003-22)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-logistics")
        await person.say("你好")
        await person.say("上次买的那个到哪了")
        assert "1008" == order_of(person.values("messages.normalized")[-1])
        other = await stand.person("c-zh-many")
        await other.say("你好")
        await other.say("上次买的那个到哪了")
        assert None is order_of(other.values("messages.normalized")[-1])
        await other.say("上次买的那件大衣到哪了")
        assert "1021" == order_of(other.values("messages.normalized")[-1])

    whole(body)


def test_each_customer_has_their_own() -> None:
    """Two customers side by side: neither's profile names an order of the other (promise 1)."""

    async def body(stand: Stand) -> None:
        people = [await stand.person(sender) for sender in ("c-zh-refund", "c-zh-two", "c-en-two")]
        for person in people:
            await person.write("你好")
        await stand.pass_ms(1_000)
        named = [[one["order_id"] for one in person.state["memory"]["profile"]["orders"]] for person in people]
        assert [["1001"], ["1010", "1009"], ["OD100010", "OD100009"]] == named

    whole(body)


def test_a_customer_without_a_record_is_no_failure() -> None:
    """Somebody whom the shop does not know has an empty profile, and no alarm is raised."""

    async def body(stand: Stand) -> None:
        person = await stand.person("walk-in")
        await person.say("你好")
        profile = person.state["memory"]["profile"]
        assert ([], {}) == (profile["orders"], profile["unavailable"])
        assert [] == reasons(person, "memory.profile_unavailable")

    whole(body)
