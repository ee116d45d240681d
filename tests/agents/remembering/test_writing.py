"""What the memory step writes of a turn, through the whole table on virtual time."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from memory.sealing import open_seal
from schemas.events import Seal
from schemas.memory import MemoryWrite
from tests.promises.stand import DIFFS, Person, Stand, whole

HOUR = 3_600_000
ADDRESS = "上海市浦东新区世纪大道100号8栋201室"


def _writes(person: Person, kind: str = "") -> list[dict[str, Any]]:
    return [one for one in person.values("memory.writes") if f"/{kind}" in one["key"][len(person.conversation) :]]


def _summaries(person: Person, kind: str = "") -> list[tuple[str | None, str | None]]:
    return [tuple(value and value["summary"] for value in (one["value_before"], one["value_after"]))
            for one in _writes(person, kind)]  # fmt: skip


def test_a_write_says_all_that_the_register_asks_for() -> None:
    """Id, trace, session, key, before, after, source, trigger and time; read, then written (R-004-08)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("以后都发京东快递")
        await person.say("以后不要发京东快递了")
        first, second = [MemoryWrite.model_validate(one, strict=False) for one in _writes(person)]
        traces = [dict(one.headers)["traceparent"] for one in stand.records("channel.events", person.conversation)]
        assert [(trace or b"")[3:35].decode() for trace in traces[-2:]] == [first.trace_id, second.trace_id]
        assert first.write_id != second.write_id
        assert {"demo/web/u-1/preference/carrier"} == {first.key, second.key}
        assert (None, first.value_after) == (first.value_before, second.value_before)
        assert {"customer"} == {first.source, second.source}
        assert "m-2: preference.carrier" == second.trigger_context
        assert person.state["session"]["id"] == second.session_id
        assert first.timestamp < second.timestamp <= stand.now

    whole(body)


def test_state_and_register_agree_also_when_the_conversation_was_closed() -> None:
    """What is known outlives the session: the next write, days later, names it as the value before (R-004-08)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("我喜欢发顺丰")
        await stand.pass_ms(2 * HOUR)
        assert "residue" == person.state["kind"]
        await stand.lock.restart()
        await person.say("以后不要顺丰")
        assert [(None, "快递偏好：顺丰"), ("快递偏好：顺丰", "快递偏好：不要顺丰")] == _summaries(person)
        known = person.state["memory"]["known"]["preference/carrier"]
        assert (_writes(person)[-1]["value_after"], _writes(person)[-1]["write_id"]) == (
            known["value"],
            known["write_id"],
        )

    whole(body)


def test_each_write_is_a_decision_with_its_reason() -> None:
    """The diff that commits a write holds the changed value and a reason that names it (promises 4 and 5)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("以后不要顺丰")
        (write,) = _writes(person)
        (diff,) = [
            one for one in person.values(DIFFS) if any(emit["topic"] == "memory.writes" for emit in one["emits"])
        ]
        named = [one["rule"] for one in diff["reasons"] if write["write_id"] in one["evidence"]]
        assert ["memory.write", "planning.say"] == named
        assert any(change["path"].startswith("/memory/known") for change in diff["changes"])

    whole(body)


def test_what_is_said_again_is_no_write() -> None:
    """The same wish twice is one write: only a change is one (R-004-08)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("以后不要顺丰")
        await person.say("我说了，以后不要顺丰")
        assert 1 == len(_writes(person))

    whole(body)


def test_an_address_is_masked_and_sealed() -> None:
    """The register has the region of an address; the rest opens with the conversation's key alone (promise 9)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say(f"请帮我改地址，改成{ADDRESS}")
        value = _writes(person, "address/")[0]["value_after"]
        raw = stand.records("memory.writes", person.conversation)
        assert not [one for one in raw if "世纪大道".encode() in (one.value or b"")]
        assert re.fullmatch(r"上海市.{0,4}\*+", value["text"])
        clear = open_seal(stand.world.keys, Seal.model_validate(value["seal"]), person.conversation)
        assert ADDRESS == orjson.loads(clear or b"")["address"]

    whole(body)


def test_a_complaint_and_who_took_it_are_kept() -> None:
    """A complaint is a thing of its own, with its order; the colleague who takes over has it in hand (R-002-19)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund", approver="none")
        await person.say("我要投诉，质量太差了，订单1001")
        await stand.world.decide(person.conversation, {"kind": "takeover"})
        await stand.lock.settle()
        told, taken = _writes(person, "complaint/")
        assert ("1001", "customer", "staff") == (told["value_after"]["order_id"], told["source"], taken["source"])
        assert taken["value_after"]["handled_by"]

    whole(body)


def test_a_task_that_ends_is_an_earlier_problem() -> None:
    """Flow, order, amount and outcome of a finished task, by task summary (R-003-22, R-004-09)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("我要退款，订单号1001，衣服太大了")
        await person.say("确认")
        (write,) = _writes(person, "problem/")
        wanted = {"flow": "refund", "outcome": "done", "order_id": "1001", "amount_fen": 5_000}
        assert ("task_summary", wanted) == (write["source"], {name: write["value_after"][name] for name in wanted})

    whole(body)


@pytest.mark.parametrize(("text", "promised"), [("我会在24小时内给您回电", "24小时内给您回电"), ("您好", None),
                                               ("we will send a new one", "we will send a new one")])  # fmt: skip
def test_what_staff_promise_is_kept(text: str, promised: str | None) -> None:
    """A colleague's promise is remembered in their words, what is none is not; the source is staff (R-004-09)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1", approver="none")
        await person.say("转人工")
        await stand.world.decide(person.conversation, {"kind": "takeover"})
        await stand.world.decide(person.conversation, {"kind": "reply", "text": text})
        await stand.lock.settle()
        assert 1 == len([one for one in _writes(person, "promise/") if one["source"] == "assistant"])
        staff = [one["value_after"]["summary"] for one in _writes(person, "promise/") if one["source"] == "staff"]
        assert [] == staff if promised is None else promised in staff[0]

    whole(body)


def test_a_message_taken_back_takes_back_what_it_said() -> None:
    """After a recall, what stood before stands again, as a write that names what it undoes (case B11)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("我喜欢发顺丰")
        await person.say("以后不要顺丰", message_id="wrong")
        await person.recall("wrong")
        first, second, back = _writes(person)
        assert first["value_after"] == back["value_after"]
        assert ([second["write_id"]], first["write_id"]) == (back["undoes"], back["restores"])

    whole(body)


@pytest.mark.parametrize("recalled", [("m-a", "m-b"), ("m-b", "m-a")])
def test_what_was_taken_back_never_stands_again(recalled: tuple[str, str]) -> None:
    """Two messages about one thing, both recalled in either order: nothing of either is known (case B11)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("我喜欢发顺丰", message_id="m-a")
        await person.say("我喜欢发京东快递", message_id="m-b")
        for name in recalled:
            await person.recall(name)
        assert person.state["memory"]["known"]["preference/carrier"]["value"] is None
        assert _writes(person)[-1]["value_after"] is None

    whole(body)


def test_an_edit_is_laid_over_what_stood_before_the_message() -> None:
    """An edited wish replaces its first wording, and one that is edited away is taken back (case B11)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("以后不要顺丰", message_id="m-a")
        await person.edit("m-a", "以后不要中通")
        assert ["zto"] == person.state["memory"]["known"]["preference/carrier"]["value"]["avoid"]
        await person.edit("m-a", "你好呀，在不在呢")
        assert person.state["memory"]["known"]["preference/carrier"]["value"] is None
        assert [1, 1, 1] == [len({one["key"]}) for one in _writes(person)]

    whole(body)


def test_the_anchor_is_what_the_conversation_is_about() -> None:
    """The state knows the order that is spoken of and which message named it; another order begins anew (R-002-12)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("订单1001的红色连衣裙到哪了")
        first = person.state["memory"]["anchor"]
        await person.say("订单1002呢")
        second = person.state["memory"]["anchor"]
        assert ("1001", "m-1", "1002", "m-2") == (first["order_id"], first["message_id"], second["order_id"],
                                                  second["message_id"])  # fmt: skip
        assert "colour" in first
        assert "colour" not in second

    whole(body)


def test_the_state_forgets_the_oldest_things_that_never_come_again() -> None:
    """Complaints without end do not grow the state without end; the register has them all (design: state bus)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1", approver="none")
        for number in range(30):
            await person.say(f"我要投诉，订单10{number:02d}质量太差了")
        known = [key for key in person.state["memory"]["known"] if key.startswith("complaint/")]
        assert 30 == len(_writes(person, "complaint/"))
        assert 10 < len(known) <= 24

    whole(body)
