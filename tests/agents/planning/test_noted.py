"""What a customer said for good is acknowledged, in words that are true, and only where nothing else is answered."""

from __future__ import annotations

from typing import Any

import pytest

from streams.scenario.format import Fault
from tests.promises.stand import Person, Stand, whole

SF, MORNING = "以后都发顺丰", "Please don't call me in the morning"
PARCELS = "Orders that are placed already are not changed by it."


def _last(person: Person) -> dict[str, Any]:
    return person.values("actions.outbound")[-1]


def _evidence(person: Person) -> set[str]:
    return {ref["id"] for ref in _last(person)["evidence"]}


@pytest.mark.parametrize(("text", "answer"), [
    (SF, "已记下——快递偏好：顺丰。已经下的订单不会因此改变。"),
    ("请用中文回复我", "已记下——语言：中文。"),
    ("你好，以后都发顺丰，打电话请晚上打", "已记下——快递偏好：顺丰；联系时间：晚上。已经下的订单不会因此改变。"),
    ("我的地址是上海市浦东新区世纪大道100号", "已记下——收货地址：上海市浦东新区********。已经下的订单不会因此改变。"),
    (MORNING, "Noted: contact time: not in the morning."),
    ("From now on please use SF for all my parcels", f"Noted: courier: SF Express. {PARCELS}"),
    ("My address is 12 High Street, Springfield", f"Noted: delivery address. {PARCELS}"),
])  # fmt: skip
def test_what_is_kept_is_said_once(text: str, answer: str) -> None:
    """One message, which names what was noted, promises nothing, claims no success and cites the write (R-004-15)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say(text)
        (said,) = person.values("actions.outbound")
        assert (answer, False, []) == (said["text"], said["claims_success"], said["choices"])
        assert {one["write_id"] for one in person.values("memory.writes")} == _evidence(person)

    whole(body)


@pytest.mark.parametrize("text", ["这次发顺丰", "你们都发顺丰吗", "my friend always uses SF", "随便聊聊"])
def test_what_is_not_kept_is_not_said_to_be(text: str) -> None:
    """Nothing is noted of a wish for this once, a question, or another's habit (R-003-24)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say(text)
        assert [] == person.values("memory.writes")
        assert not {"memory.noted", "memory.noted_parcels"} & set(person.heard)

    whole(body)


def test_a_flow_answers_alone() -> None:
    """With an order to look for, its answer is the answer; the preference is kept all the same."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-logistics")
        await person.say("订单1008到哪了，以后都发顺丰")
        assert ["logistics.status"] == person.heard
        assert "sf" in person.state["memory"]["known"]["preference/carrier"]["value"]["choice"]

    whole(body)


def test_an_open_question_is_asked_once_more_behind_it() -> None:
    """In the middle of a task it is noted, and the task goes on where it was; no entry of its node is used up."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("我要退款，订单号1001，衣服太大了")
        before = person.state["planning"]["flows"][-1]["entries"]
        await person.say("请用中文回复我")
        assert ["refund.confirm", "memory.noted", "refund.confirm"] == person.heard
        assert before == person.state["planning"]["flows"][-1]["entries"]

    whole(body)


def test_said_again_it_cites_the_write_that_stands() -> None:
    """The same wish once more writes nothing (R-004-08), and is still no riddle."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say(SF)
        await person.say(SF)
        assert ["memory.noted_parcels"] * 2 == person.heard
        (write,) = person.values("memory.writes")
        assert {write["write_id"]} == _evidence(person)

    whole(body)


def test_what_waits_for_a_tool_is_noted_behind_its_answer() -> None:
    """A message that waits while a call runs is acknowledged in its turn, not before."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-logistics")
        await stand.world.fault(Fault(path_prefix="/orders", method="GET", kind="delay", delay_ms=2_000))
        await person.say("订单1008到哪了", ms=500)
        await person.say(SF)
        assert ["logistics.status", "memory.noted_parcels"] == person.heard

    whole(body)


def test_a_person_in_charge_is_not_interrupted() -> None:
    """While a colleague has the conversation the agent keeps what it hears and says nothing of it (X9)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("转人工")
        await person.client.staff("takeover", "")
        await stand.pass_ms(1_000)
        before = len(person.heard)
        await person.say(SF)
        assert not {"memory.noted", "memory.noted_parcels"} & set(person.heard[before:])
        assert "preference/carrier" in person.state["memory"]["known"]

    whole(body)


def test_an_edit_is_noted_as_it_reads_now() -> None:
    """A message that was changed is acknowledged by what it says in the end."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        first = await person.say(SF)
        await person.edit(first, "以后都发京东")
        assert "已记下——快递偏好：京东。已经下的订单不会因此改变。" == _last(person)["text"]

    whole(body)
