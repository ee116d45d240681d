"""Every processor states failure domain, degrade path and alarm; each is broken once, and what is stated happens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import httpx
import pytest

from agents.perception import PerceptionConfig, make_step
from agents.planning import step as planning_step
from agents.planning.pack import load_pack
from agents.understanding.port import Context, Reading
from memory.sealing import MemoryKeyStore, seal
from schemas.events import MessageBody, Seal
from schemas.step import Draft, Input
from streams.effects.send import SendHandler
from streams.intake import intake
from streams.metric_list import BY_NAME
from streams.metrics import RecordedMetrics
from streams.processors import wiring
from streams.processors.edges import DOMAINS
from streams.runtime.ports import Outgoing
from streams.runtime.table import Domain, Row
from streams.scenario.format import Fault
from tests.promises.stand import DIFFS, Person, Stand, isolated, whole

ROWS: tuple[Row, ...] = wiring.rows(isolated(partitions=4), MemoryKeyStore())
STATED: tuple[Row | Domain, ...] = (*ROWS, *DOMAINS)
WISH = "我要退款，订单号1001，衣服太大了"
RULES: Final = "interlock_decisions_by_rule_total"


@pytest.mark.parametrize("one", STATED, ids=lambda one: str(one.name))
def test_each_states_domain_degrade_path_and_alarm(one: Row | Domain) -> None:
    """All three are said in words, and an alarm names metrics that exist, with labels that they have (R-002-49)."""
    assert min(len(one.failure_domain), len(one.degrade), len(one.alarm)) > 15
    name, _, condition = one.alarm.partition(": ")
    assert re.fullmatch(r"Interlock[A-Z][A-Za-z]+", name)
    metrics = re.findall(r"interlock_[a-z_]+", condition)
    assert metrics
    for metric in metrics:
        assert metric in BY_NAME, metric
    for metric, label in re.findall(r"(interlock_[a-z_]+)\{([a-z]+)=", condition):
        assert label in BY_NAME[metric].labels
    for label in re.findall(r"with ([a-z]+) ", condition):
        assert any(label in BY_NAME[metric].labels for metric in metrics), label


def test_no_part_and_no_alarm_is_there_twice() -> None:
    """The parts of the table and around it have a name and an alarm each (R-002-49)."""
    assert {"perception", "planning", "tools", "delivery", "feedback", "hearing", "memory", "identity", "session",
            "system", "recall", "intake", "timers", "keeper"} == {one.name for one in STATED}  # fmt: skip
    assert len(STATED) == len({one.name for one in STATED}) == len({one.alarm.partition(":")[0] for one in STATED})


class Raises:
    """A reader behind the understanding port that is broken."""

    def read(self, text: str, context: Context) -> Reading:
        """Fail."""
        raise RuntimeError(text, context)


def _boom(_draft: Draft, cause: Input) -> None:
    raise LookupError(cause.id)


def _broken(stand: Stand, name: str, step: Callable[[Draft, Input], None] = _boom) -> RecordedMetrics:
    """The table with one broken step; the metrics of the run."""
    made = wiring.rows(stand.lock._settings, stand.world.keys)
    stand.table([replace(row, step=step) if row.name == name else row for row in made])
    metrics = RecordedMetrics()
    stand.ports(metrics=metrics)
    return metrics


def _templates(person: Person) -> list[str]:
    return [one["template_id"] for one in person.values("actions.outbound") if one["kind"] != "resend"]


def test_perception_a_broken_reader_brings_a_person() -> None:
    """Whatever the reader does, the customer is handed over, and the rule that the alarm names counts (R-002-04)."""

    async def body(stand: Stand) -> None:
        def sealer(conversation: str, plaintext: bytes, context: bytes) -> Seal:
            return seal(stand.world.keys, conversation, plaintext, context=context)

        metrics = _broken(stand, "perception", make_step(Raises(), sealer, PerceptionConfig()))
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        assert ["handover"] == [one["kind"] for one in person.values("human.requests")]
        assert _templates(person)[0].startswith("handover.")
        assert 1 == metrics.value(RULES, "perception.unreadable")

    whole(body)


def test_perception_without_the_clear_text_reads_the_masked_one() -> None:
    """With the customer's key destroyed before it is read, a message is understood from what is shown (R-002-49)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        body = MessageBody(kind="message", message_id="m-1", text=WISH + "，电话13800000000")
        event = intake(person.raw("e-1", body), stand.world.keys)
        assert event.seal is not None
        stand.world.keys.destroy(person.conversation)
        await stand.world.publish("channel.events", person.conversation, event, event.event_id)
        await stand.pass_ms(4_000)
        assert ["refund.confirm"] == _templates(person)

    whole(body)


def test_perception_what_is_not_understood_is_asked_once_then_a_person() -> None:
    """One clarifying question, then a person: never a loop (R-003-13)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("嗯这个那个")
        await person.say("嗯那个这个")
        first, *others = _templates(person)
        assert first.startswith("common.")
        assert any(one.startswith("handover.") for one in others)

    whole(body)


def test_planning_a_broken_flow_file_brings_a_person_and_executes_nothing() -> None:
    """A flow that skips its call says nothing is done, executes nothing, and a person gets the context (E07)."""

    async def body(stand: Stand) -> None:
        pack = load_pack()
        refund = pack.flows["refund"]
        table = {**refund.table, "confirm_detail": {**refund.table["confirm_detail"], "confirmed": "notify_success"}}
        planted = type(pack)({**pack.flows, "refund": refund.model_copy(update={"table": table})}, pack.tools,
                             pack.templates)  # fmt: skip
        metrics = _broken(stand, "planning", planning_step.make_step(planted))
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        await person.say("确认")
        assert ["refund.confirm", "handover.default"] == _templates(person)
        assert [] == await person.ledger()
        assert person.values("human.requests")[-1]["context"]
        assert 1 == metrics.value(RULES, "planning.handover")

    whole(body)


def test_planning_a_record_that_its_step_can_not_take_is_a_dead_letter() -> None:
    """Our bug on one record stops nobody: it is a dead letter, told with the step's name, and delivery runs (C07)."""

    async def body(stand: Stand) -> None:
        metrics = _broken(stand, "planning")
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        await person.say("在吗")
        letters = stand.values("channel.events.dlq", person.conversation)
        assert ["step_failed", "step_failed"] == [one["code"] for one in letters]
        assert "planning" in letters[0]["reason"]
        assert 2 == metrics.value("interlock_dead_letters_total", "channel.events", "step_failed")

    whole(body)


@pytest.mark.parametrize(("kind", "fault", "template"), [
    ("query", {"path_prefix": "/orders", "method": "GET", "kind": "error", "status": 503, "times": 9}, "common.later"),
    ("query", {"path_prefix": "/orders", "method": "GET", "kind": "delay", "delay_ms": 9_000, "times": 9},
     "common.later"),
])  # fmt: skip
def test_tools_a_failed_query_is_said_to_have_failed(kind: str, fault: Mapping[str, Any], template: str) -> None:
    """A service that is down or slow: the customer is told so, no result is made up, the outcome counts (H05)."""

    async def body(stand: Stand) -> None:
        metrics = RecordedMetrics()
        stand.ports(metrics=metrics)
        await stand.world.fault(Fault.model_validate(fault))
        person = await stand.person("c-zh-logistics")
        await person.say("查一下订单1008的物流", ms=15_000)
        assert [template] == _templates(person)
        statuses = {one["status"] for one in person.values("tools.results") if one["tool"] == "get_logistics"}
        assert statuses <= {"failure", "timeout"}
        assert 1 == sum(metrics.value("interlock_tool_outcomes_total", "get_logistics", one) for one in statuses)
        assert {kind} == {one["risk"] for one in person.values("tools.calls")}

    whole(body)


@pytest.mark.parametrize("kind", ["error", "lost_response", "delay"])
def test_tools_a_failed_change_goes_to_a_person(kind: str) -> None:
    """A refund that fails, or whose outcome nobody knows: a person, and never the words of success (R-002-28)."""

    async def body(stand: Stand) -> None:
        for path, method in (("/refunds", "POST"), ("/effects", "GET")):
            await stand.world.fault(Fault.model_validate(
                {"path_prefix": path, "method": method, "kind": kind, "times": 99, "delay_ms": 9_000}))  # fmt: skip
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        await person.say("确认", ms=30_000)
        assert "refund.success" not in _templates(person)
        assert "handover" in [one["kind"] for one in person.values("human.requests")]
        assert len(await person.ledger()) <= 1

    whole(body)


def test_delivery_a_channel_that_is_down_gets_three_attempts_then_a_person() -> None:
    """The same message id in each attempt, then failed with the reason, and one person is asked (R-002-29, A13)."""
    posts: list[tuple[str, int]] = []

    def down(request: httpx.Request) -> httpx.Response:
        posts.append((request.url.path, 503))
        return httpx.Response(503, json={"error": {"code": "down", "message": "the channel is down"}})

    async def body(stand: Stand) -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(down)) as client:
            handler = SendHandler(client, "http://channel", stand.world.clock)
            metrics = RecordedMetrics()
            stand.ports(effects={**stand.lock.ports.effects, "send": handler}, metrics=metrics)
            person = await stand.person("c-zh-refund")
            await person.say("你好", ms=120_000)
        (message,) = person.state["actions"]["messages"].values()
        assert ("failed", 3) == (message["state"], message["attempt"])
        assert "down" in message["reason"]
        assert ["delivery.failed"] == [one["rule"] for one in person.values("human.requests")]
        assert 1 == metrics.value("interlock_messages_by_state_total", "demo", "web", "failed")
        assert {1} == {len({key for key, _ in posts})}

    whole(body)


@pytest.mark.parametrize("name", ["feedback", "hearing", "memory", "session"])
def test_what_nothing_depends_on_is_left_out_when_it_fails(name: str) -> None:
    """A step that raises on every record: the refund is done as ever, and what is missing is said (R-002-49)."""

    async def body(stand: Stand) -> None:
        metrics = _broken(stand, name)
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        await person.say("确认")
        await stand.pass_ms(2 * 3_600_000)
        assert ["refund.confirm", "refund.in_review", "refund.success"] == _templates(person)[:3]
        assert [5_000] == [row["amount_fen"] for row in await person.ledger()]
        assert [] == [topic for topic in stand.lock.log.topics() if topic.endswith(".dlq")]
        assert metrics.value(RULES, "runtime.step_left_out") > (1 if name == "hearing" else 3)
        writers = {one["source"] for one in person.values("memory.writes")}
        assert {"hearing": {"assistant", "task_summary"}, "memory": {"customer"}}.get(
            name, {"customer", "assistant", "task_summary"}) == writers  # fmt: skip
        if name == "feedback":
            assert [] == person.values("feedback.health")
        elif name == "session":
            assert "state" == person.state["kind"], "the conversation stays open"

    whole(body)


def test_hearing_that_fails_is_not_claimed() -> None:
    """What was not kept is not said to be noted: the customer is asked what they mean instead (R-004-15, R-002-49)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("u-1")
        await person.say("以后都发顺丰")
        _broken(stand, "hearing")
        await stand.lock.restart()
        await person.say("以后不要顺丰")
        assert ["memory.noted_parcels", "common.out_of_scope"] == _templates(person)[:2]

    whole(body)


def test_a_step_that_is_left_out_leaves_nothing_behind() -> None:
    """What an optional step set, emitted and said before it raised is not in the diff (R-002-49, promise 3)."""

    def half(draft: Draft, cause: Input) -> None:
        draft.set({"half": 1}, "feedback", "topics")
        draft.reason("test.half", "begun")
        draft.timer("feedback.half", draft.now + 1_000)
        raise LookupError(cause.id)

    async def body(stand: Stand) -> None:
        _broken(stand, "feedback", half)
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        text = str(person.values(DIFFS))
        assert "half" not in text
        assert "runtime.step_left_out" in text

    whole(body)


def test_session_with_work_pending_stays_open() -> None:
    """A review that nobody answers keeps the conversation open; its deadline is set anew (R-002-49)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-human", approver="none")
        await person.say("转人工")
        await stand.pass_ms(3 * 3_600_000)
        assert "state" == person.state["kind"]
        assert "session.close" in person.state["timers"]
        rules = [reason["rule"] for diff in person.values(DIFFS) for reason in diff["reasons"]]
        assert "session.kept" in rules

    whole(body)


def test_system_a_flooded_topic_pauses_alone() -> None:
    """One topic partition pauses and counts; its other topics and the other partitions go on (R-002-49)."""

    async def body(stand: Stand) -> None:
        metrics = RecordedMetrics()
        stand.ports(metrics=metrics)
        flooded, other = await stand.person("c-zh-refund"), await stand.person("c-en-unknown")
        assert stand.lock.partition_of(flooded.conversation) != stand.lock.partition_of(other.conversation)
        await flooded.say(WISH)
        partition = stand.lock.partition_of(flooded.conversation)
        for _ in range(7):
            stand.lock.log.append(Outgoing("tools.results", partition, flooded.conversation.encode(), b"{cut"))
        await flooded.say("你好")
        await other.say("Where is my order OD100004?")
        assert 1 == metrics.value("interlock_partition_stops_total", "dlq_limit")
        assert _templates(flooded)[1:], "the customer's topic goes on"
        assert ["logistics.status"] == _templates(other)

    whole(body, dlq_limit=5)


def test_timers_wait_while_the_clocks_disagree() -> None:
    """Beyond a second of skew no deadline fires; when the clocks agree again it does, late and once (R-002-30)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund", receipts="none")
        stand.lock.log.skew_ms = -5_000
        await person.say("你好", ms=60_000)
        assert [] == person.values("timers.fired")
        stand.lock.log.skew_ms = 0
        await person.say("在吗", ms=25_000)
        fired = [one["name"].partition(":")[0] for one in person.values("timers.fired")]
        assert {"delivery.silence"} <= set(fired)
        assert len(person.values("timers.fired")) == len({one["timer_id"] for one in person.values("timers.fired")})

    whole(body)
