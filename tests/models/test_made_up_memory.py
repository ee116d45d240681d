"""A model server over HTTP that makes memories up, in the whole system: what the customer did not say is not kept."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agents.remembering.question import FUNCTION, VERSION, function_schema, protocol
from schemas.tools import WRITER
from streams.effects.model import MAX_ANSWER
from tests.agents.remembering.test_planted import PLANTED, WISH, _Planting, _unplanted
from tests.models.stub import Stub, Told, completion
from tests.models.test_made_up import served
from tests.models.test_remembering import FORM, SAID, choices, writes
from tests.models.test_waiting import rules
from tests.promises.stand import Person, Stand


def answer(**kinds: Any) -> Told:
    """A chat completion that fills in the form so."""
    return completion(kinds, function=FUNCTION)


def said(value: str, evidence: str, **more: Any) -> dict[str, Any]:
    """One kind of the form."""
    return {"value": value, "evidence": evidence, **more}


def prefers(value: str, evidence: str, key: str = "carrier") -> dict[str, Any]:
    """A preference."""
    return said(value, evidence, key=key, stance="like")


async def asked(stand: Stand, text: str = SAID) -> Person:
    """A customer who said that, and got an answer."""
    person = await stand.person("c-zh-refund")
    await person.say(text)
    assert person.heard, "the customer is answered all the same"
    return person


def test_an_answer_is_recorded_with_all_that_it_cost() -> None:
    """Prompt version, model, tokens and latency stand beside the form, the protocol before it (R-004-04)."""

    async def body(stand: Stand, server: Stub) -> None:
        person = await asked(stand)
        assert [["sf"]] == choices(person)
        (result,) = [one for one in person.values("tools.results") if one["tool"] == WRITER]
        assert ["stub-1", VERSION, "m-1", []] == [result["data"][name] for name in ("model", "prompt", "message_id",
                                                                                   "raw_text")]  # fmt: skip
        assert ({"prompt": 700, "completion": 60}, True) == (result["token_usage"], result["duration_ms"] >= 0)
        assert FORM["preference"] == result["data"]["form"]["preference"]
        (question,) = server.asked
        assert ({"role": "system", "content": protocol()}, [function_schema()]) == (question["messages"][0],
                                                                                    question["tools"])  # fmt: skip
        assert FUNCTION == question["tool_choice"]["function"]["name"]

    served(answer(**FORM), body, when="never", model_memory=True)


REFUSED: dict[str, Told] = {
    "invented evidence": answer(preference=prefers("中通", "以后都发中通")),
    "an invented value": answer(preference=prefers("中通", "一律走顺丰")),
    "another subject": answer(preference=prefers("顺丰", "一律走顺丰", "language")),
    "an address from nowhere": answer(address=said("上海市浦东新区世纪大道100号", "一律走顺丰")),
    "a promise from nowhere": answer(promise=said("全额退款", "你们承诺全额退款")),
    "an order from nowhere": answer(item=said("OD424242", "OD424242")),
    "a phone from nowhere": answer(complaint=said("13812345678", "13812345678")),
}
BROKEN: dict[str, Told] = {
    "an injected key": answer(preference=prefers("顺丰", "一律走顺丰", "../../c-2/preference/carrier")),
    "an injected kind": answer(**FORM, refund_limit=said("顺丰", "一律走顺丰")),
    "deeper": answer(preference={**FORM["preference"], "value": {"text": {"zh": "顺丰"}}}),
    "an explanation": answer(**FORM, explanation="the customer likes SF"),
    "two answers": completion(FORM, function=FUNCTION, times=2),
    "two of a kind": answer(preference=[FORM["preference"]] * 2),
    "words": completion(content="The customer likes SF Express."),
    "the other function": completion({"intent": "refund", "evidence": [], "plan": [], "to_confirm": []}),
    "nested without end": completion("[" * 5_000, function=FUNCTION),
}
ABSENT: dict[str, Told] = {
    "huge": Told(b'{"x": "' + b"x" * MAX_ANSWER + b'"}'), "HTTP 500": Told(b"", 500), "HTML": Told(b"<html>"),
    "no choice": Told({"choices": []}), "an empty body": Told(b""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_customer_did_not_say_is_not_kept(name: str) -> None:
    """Whatever it makes up, nothing is written, and the register says what was refused (promise 7)."""

    async def body(stand: Stand, _: Stub) -> None:
        person = await asked(stand)
        assert [] == writes(person)
        assert {"memory.model_refused", "memory.model_nothing"} <= rules(person)

    served(REFUSED[name], body, when="never", model_memory=True)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_form_is_asked_for_once_more_and_then_left(name: str) -> None:
    """Its raw text is kept, it is asked for once more, and then the rules alone have chosen (R-000-09)."""

    async def body(stand: Stand, server: Stub) -> None:
        person = await asked(stand)
        assert ([], 2) == (writes(person), len(server.asked))
        assert "memory.model_absent" in rules(person)
        (result,) = [one for one in person.values("tools.results") if one["tool"] == WRITER]
        assert ("broken_form", 2) == (result["error"]["code"], len(result["data"]["raw_text"]))
        assert result["data"]["faults"][0] in server.asked[1]["messages"][-1]["content"]

    served(BROKEN[name], body, when="never", model_memory=True)


@pytest.mark.parametrize("name", ABSENT)
def test_a_broken_server_costs_the_memory_and_nothing_else(name: str) -> None:
    """No form at all: the conversation goes on, and the register says why nothing more was kept (R-003-21)."""

    async def body(stand: Stand, _: Stub) -> None:
        person = await asked(stand)
        assert [] == writes(person)
        assert "memory.model_absent" in rules(person)
        await person.say("以后都发京东")
        assert [["jd"]] == choices(person)

    served(ABSENT[name], body, when="never", model_memory=True)


def test_a_form_that_is_mended_counts() -> None:
    """The second form counts like a first one (R-000-09)."""
    answers = [BROKEN["words"], answer(**FORM)]

    async def body(stand: Stand, _: Stub) -> None:
        assert [["sf"]] == choices(await asked(stand))

    served(lambda _: answers.pop(0), body, when="never", model_memory=True)


@pytest.mark.parametrize("said_before", [(WISH, "确认"), ("订单1001到哪了",)])
def test_a_tools_text_never_becomes_a_write(said_before: tuple[str, ...]) -> None:
    """The model is shown no word of a tool; one that quotes it all the same writes nothing (R-004-09)."""
    keen = answer(preference=prefers("顺丰", "以后都发顺丰"), promise=said("退款", "24小时内退款"),
                                    address=said("中关村大街1号", "北京市海淀区中关村大街1号"))  # fmt: skip

    async def body(stand: Stand, server: Stub) -> None:
        handlers = {**stand.lock.ports.effects}
        stand.ports(effects={**handlers, "tool": _Planting(handlers["tool"], lambda text: text)})
        person = await stand.person("c-zh-refund")
        for text in (*said_before, "那我的包裹一概走圆通"):
            await person.say(text)
        assert PLANTED in str(person.values("tools.results"))
        assert server.asked
        assert not [one for one in server.asked if PLANTED in orjson.dumps(one).decode()]
        _unplanted(person)

    served(keen, body, when="never", model_memory=True)


def test_both_questions_go_their_ways() -> None:
    """One server, two forms: a doubtful message is read by it and asked about, and each answer is its own."""
    text = "寄件一律走顺丰，别的我信不过"

    def told(question: dict[str, Any]) -> Told:
        if question["tool_choice"]["function"]["name"] == FUNCTION:
            return answer(**FORM)
        return completion({"intent": "logistics", "evidence": [text], "plan": ["look_up"], "to_confirm": []})

    async def body(stand: Stand, server: Stub) -> None:
        person = await asked(stand, text)
        assert (2, [["sf"]]) == (len(server.asked), choices(person))
        assert {"model.taken", "memory.model_asked"} <= rules(person)

    served(told, body, when="doubtful", model_memory=True)
