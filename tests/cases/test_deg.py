"""Cases D, E and G: times in other units, claims and approvals, and metrics, through the whole table."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import pytest

from schemas.events import MessageBody
from schemas.people import HumanDecision
from schemas.tools import ToolCall
from streams.metrics import Metrics
from streams.processors.wiring import metrics_of
from streams.runtime.ports import Outgoing
from streams.scenario.format import Fault
from tests.promises.stand import Person, Stand, isolated, whole

WISH = "我要退款，订单号1001，衣服太大了"


@pytest.mark.parametrize("when", [1_767_578_400, 1_767_578_400_000_000, 0, -1, 10**18])
def test_d15_a_time_in_another_unit_reaches_no_window(when: int) -> None:
    """Seconds or microseconds among milliseconds: quarantined with the field's name, no window of 1970 (case D15)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        event = await person.send(person.raw("e-0", MessageBody(kind="message", message_id="m-0", text="谢谢")))
        await stand.pass_ms(2_000)
        record = stand.lock.log.records("channel.events")[-1]
        wrong = orjson.dumps({**event.model_dump(mode="json"), "event_id": "ev-2", "occurred_at": when})
        headers = tuple((name, b"ev-2" if name == "ce_id" else text) for name, text in record.headers)
        stand.lock.log.append(Outgoing("channel.events", record.partition, record.key, wrong, headers))
        await person.say("谢谢", ms=330_000)
        (letter,) = person.values("channel.events.dlq")
        assert "occurred_at" == letter["field"]
        starts = [one["window_start"] for one in person.values("feedback.health")]
        assert starts
        assert all(abs(start - stand.now) < 3_600_000 for start in starts)
        assert 2 == len(person.values("messages.normalized"))

    whole(body)


@pytest.mark.parametrize("text", [
    "已为您退款50元", "Your refund of 50 yuan was done", "你说已经退了，对吧？", "refund OD100001 is done, thanks",
])  # fmt: skip
def test_e07_nothing_is_said_to_be_done_that_was_not(text: str) -> None:
    """Whatever the customer claims, no message claims a success without the id of a success result (case E07)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        for line in (text, "对吧", "确认"):
            await person.say(line)
        _claims_are_backed(person)
        assert [] == await person.ledger()

    whole(body)


def _claims_are_backed(person: Person) -> None:
    succeeded = {one["result_id"] for one in person.values("tools.results") if one["status"] == "success"}
    for message in person.values("actions.outbound"):
        if message["claims_success"]:
            cited = {one["id"] for one in message["evidence"] if one["kind"] == "tool_result"}
            assert cited
            assert cited <= succeeded


def test_e07_a_success_cites_its_result() -> None:
    """The wording of success carries the id of the very result that it rests on (case E07)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        await person.say("确认")
        assert "refund.success" in [
            one["template_id"] for one in person.values("actions.outbound") if one["claims_success"]
        ]
        _claims_are_backed(person)

    whole(body)


@pytest.mark.parametrize("tool", ["refund_order_v2", "get-order", "GET_ORDER", "create_refund ", "取订单", "x" * 60])
def test_e13_an_invented_tool_name_is_a_structured_error(tool: str) -> None:
    """Refused with the real names, nothing runs, the conversation goes on (case E13)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        known = person.values("tools.calls")[0]
        try:
            call = ToolCall.model_validate_json(orjson.dumps({**known, "call_id": "call-x", "tool": tool}))
        except ValueError:
            return  # no name at all: the contract refuses it before any gate
        await stand.world.publish("tools.calls", person.conversation, call, "call-x")
        await stand.pass_ms(2_000)
        (result,) = [one for one in person.values("tools.results") if one["call_id"] == "call-x"]
        assert ("refused", "unknown_tool", 0) == (result["status"], result["error"]["code"], result["attempts"])
        assert "get_order" in result["error"]["message"]
        await person.say("确认")
        assert "refund.success" == person.heard[-1]

    whole(body)


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("same_id", [True, False])
@pytest.mark.parametrize("gap", [0, 50, 5_000])
def test_e17_an_approval_delivered_twice(restart: bool, same_id: bool, gap: int) -> None:  # noqa: FBT001 (parameters)
    """Twice, with a restart between or none, under one id or two: one refund, one result (case E17)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund", approver="none")
        await person.say(WISH)
        await person.say("确认")
        ((request_id, review),) = person.state["planning"]["reviews"].items()
        for number in range(2):
            name = "d-1" if same_id else f"d-{number}"
            word = HumanDecision(decision_id=name, kind="approve", by="reviewer", request_id=request_id,
                                 call_hash=review["call_hash"], decided_at=stand.now)  # fmt: skip
            await stand.world.publish("human.decisions", person.conversation, word, word.decision_id)
            if restart:
                await stand.lock.restart()
            await stand.pass_ms(gap)
        await stand.pass_ms(30_000)
        assert [5_000] == [row["amount_fen"] for row in await person.ledger()]
        assert 1 == len([one for one in person.values("tools.results") if one["tool"] == "create_refund"])
        assert 1 == person.heard.count("refund.success")

    whole(body)


def _samples(metrics: Metrics, name: str) -> Mapping[tuple[tuple[str, str], ...], float]:
    return {tuple(sorted(sample.labels.items())): sample.value for family in metrics.registry.collect()
            for sample in family.samples if sample.name == name}  # fmt: skip


def test_g05_the_first_failure_since_the_start_is_an_increase() -> None:
    """A worker's metrics hold every tool's failure at 0 before anything ran; the first one shows as 1 (case G05)."""
    metrics = metrics_of(isolated())
    failure = (("status", "failure"), ("tool", "create_refund"))
    assert 0 == _samples(metrics, "interlock_tool_outcomes_total")[failure]
    assert 0 == _samples(metrics, "interlock_decisions_by_rule_total")[(("rule", "perception.unreadable"),)]

    async def body(stand: Stand) -> None:
        stand.ports(metrics=metrics)
        await stand.world.fault(Fault(path_prefix="/refunds", kind="error", status=503, times=9))
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        await person.say("确认", ms=10_000)

    whole(body)
    assert 1 == _samples(metrics, "interlock_tool_outcomes_total")[failure]


def test_g01_conversations_add_no_series() -> None:
    """Twice as many conversations, of other customers and orders, add not one series; no id is a label (case G01)."""

    async def body(stand: Stand) -> None:
        metrics = metrics_of(isolated())
        stand.ports(metrics=metrics)
        sizes = []
        for half in range(2):
            for number in range(10):
                person = await stand.person(f"c-{half}-{number}", receipts="none")
                await person.say(f"我要退款，订单{5000 + 10 * half + number}，太大了", ms=10)
            await stand.pass_ms(5_000)
            sizes.append(metrics.series())
        assert sizes[0] == sizes[1]
        assert b"c-0-" not in metrics.exposition()

    whole(body)


def test_g07_two_systems_in_one_process_count_apart() -> None:
    """Two systems built side by side register nothing twice, and each counts its own (case G07)."""
    counts = []
    for number in range(2):
        metrics = metrics_of(isolated())

        async def body(stand: Stand, metrics: Metrics = metrics, times: int = number + 1) -> None:
            stand.ports(metrics=metrics)
            person = await stand.person("c-zh-refund")
            for _ in range(times):
                await person.say("你好")

        whole(body)
        counts.append(_samples(metrics, "interlock_decisions_total")[(("topic", "channel.events"),)])
    assert [1, 2] == counts
