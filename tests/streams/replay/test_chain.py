"""The chain of a session, from the topics alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.commands.replay import as_object, chain_of, text_lines
from streams.replay.chain import CHAIN_TOPICS, Step, build_chain, effects_of
from streams.replay.find import EARLY_MS, NotFoundError, collect, conversation_stretch, session_stretch, session_time
from streams.runtime.ports import Record
from tests.streams.replay.recorded import REFUND, Recorded, refund, shifted, two_sessions


def chain(recorded: Recorded, name: str = REFUND) -> list[Step]:
    """As `interlock replay` has it."""
    return chain_of(recorded.source, name)


def assert_causes_first(steps: list[Step]) -> None:
    """No step comes before a cause of it, and each partition keeps its offset order."""
    place = {step.at: number for number, step in enumerate(steps)}
    assert all(place[cause] < place[step.at] for step in steps for cause in step.causes if cause in place)
    for topic in {step.topic for step in steps}:
        offsets = [step.offset for step in steps if step.topic == topic]
        assert sorted(offsets) == offsets


def test_a_session_is_told_step_by_step() -> None:
    """Message, intent, plan, call, result, review, reply, receipts and health stand in it (R-002-17, R-003-30)."""
    told = "\n".join(text_lines(REFUND, chain(refund())))
    for words in (
        "message · “我要退款，订单号1001，衣服太大了”", "intent refund", "order_id “1001” 8-12", "plan refund v1 open",
        "call create_refund", "result create_refund success", "person asked: review", "person decided: approve",
        "退款已受理：订单1001，金额50.00元", "receipt read", "displayed → read", "health 100",
        "planning.review_approved",
    ):  # fmt: skip
        assert words in told


def test_every_step_says_where_and_when_it_stands() -> None:
    """Each line has topic, partition, offset and time, and they are the record's own (R-003-30)."""
    recorded = refund()
    stood = {(one.topic, one.partition, one.offset, one.time) for one in recorded.records}
    steps = chain(recorded)
    assert {(*step.at, step.time) for step in steps} <= stood
    head, *lines = text_lines(REFUND, steps)
    assert all(session in head for session in recorded.sessions(REFUND))
    assert len(steps) == len(lines)
    assert all(f"{step.topic} {step.partition}:{step.offset}" in line for step, line in zip(steps, lines, strict=True))


def test_nothing_of_the_conversation_is_left_out() -> None:
    """Every record of the key is in the chain, on whatever topic, but for the derived state.updates (R-003-30)."""
    recorded = refund()
    expected = {(one.topic, one.partition, one.offset) for topic in CHAIN_TOPICS for one in recorded.of(topic, REFUND)}
    assert expected == {step.at for step in chain(recorded)}


def test_every_step_but_a_customers_has_its_cause() -> None:
    """A customer's event begins; each other record follows from one in the chain (R-002-17)."""
    steps = chain(refund())
    assert {"channel.events"} == {step.topic for step in steps if not step.causes}
    assert_causes_first(steps)


def test_the_chain_of_causes_leads_from_the_wish_to_the_receipt() -> None:
    """From the first message one can walk to the last receipt and to the score (R-002-17)."""
    steps = chain(refund())
    followed = effects_of(steps, steps[0])
    assert {"tools.results", "actions.outbound", "delivery.states", "feedback.health"} <= {
        step.topic for step in followed
    }


@pytest.mark.parametrize("topic", ["state.diffs", "actions.outbound", "channel.events", "delivery.receipts"])
def test_wrong_times_never_show_a_cause_after_its_effect(topic: str) -> None:
    """Append times of one topic are 10 s late or early: order of cause and offset stays, no step is lost (case D05)."""
    records = list(refund().records)
    for by in (10_000, -10_000):
        moved = shifted(records, lambda one, by=by: by if one.topic == topic else 0)  # type: ignore[misc]
        steps = chain_of(refund().only(lambda _: True).source, REFUND)
        again = build_chain([one for one in moved if one.key == REFUND.encode()])
        assert_causes_first(again)
        assert {step.at for step in steps} == {step.at for step in again}


def test_times_that_go_back_inside_a_partition_keep_offset_order() -> None:
    """Offsets 10, 11, 12 appended at +150, 0 and +100 ms stay 10, 11, 12 (case D05)."""
    records = [Record("channel.events", 0, offset, 1_000 + ms, b"a/b/c", b"{}") for offset, ms in
               ((10, 150), (11, 0), (12, 100))]  # fmt: skip
    assert [10, 11, 12] == [step.offset for step in build_chain(records)]


def test_an_emit_published_again_is_shown_as_such() -> None:
    """After a recovery the same emit may stand twice: the second one says of which it is a repeat (promise 4)."""
    recorded = refund()
    first = recorded.of("actions.outbound", REFUND)[0]
    again = replace(first, offset=99, time=first.time + 60_000)
    steps = build_chain([*(one for one in recorded.records if one.key == REFUND.encode()), again])
    repeat = next(step for step in steps if step.at == ("actions.outbound", first.partition, 99))
    assert first.offset == repeat.repeat_of
    assert f"(again: offset {first.offset})" in as_object(repeat)["words"]
    assert_causes_first(steps)


def test_a_record_that_nobody_can_read_is_part_of_the_story() -> None:
    """Rubbish under the conversation's key is a step, too, and says that it can't be read (promise 10)."""
    rubbish = Record("channel.events", 0, 0, 1_000, b"a/b/c", b"{cut", (("ce_position", b"x|y"),))
    steps = build_chain([rubbish, replace(rubbish, offset=1, value=None), replace(rubbish, offset=2, value=b'{"a":1}')])
    assert ["unreadable record", "unreadable record", '{"a":1}'] == [as_object(step)["words"] for step in steps]


def test_a_log_that_contradicts_itself_is_shown_whole() -> None:
    """Causes that go in a circle lose no record (promise 10)."""
    diff = b'{"conversation":"a/b/c","version":1,"cause":{"topic":"plans","partition":0,"offset":0}}'
    records = [Record("state.diffs", 0, 0, 2_000, b"a/b/c", diff),
               Record("plans", 0, 0, 1_000, b"a/b/c", b"{}", (("ce_position", b"a/b/c|1|0"),))]  # fmt: skip
    assert ["plans", "state.diffs"] == [step.topic for step in build_chain(records)]


# -- finding --------------------------------------------------------------------------------------------


def test_a_session_holds_what_belongs_to_it_and_no_more() -> None:
    """Two sessions of one customer are told apart, and each has its own inputs, decisions and scores (R-003-30)."""
    recorded = two_sessions()
    first, second = recorded.sessions(REFUND)
    old, new = chain(recorded, first), chain(recorded, second)
    assert not {step.at for step in old} & {step.at for step in new}
    assert "帮我转人工" in "\n".join(text_lines(second, new))
    assert "帮我转人工" not in "\n".join(text_lines(first, old))
    named = {step.get("session_id") for step in [*old] if step.get("session_id")}
    assert {first} == named


def test_a_session_is_sought_by_the_time_in_its_id() -> None:
    """The id is a UUIDv7: nothing that was appended before the session is read (R-002-17)."""
    recorded = two_sessions()
    first, second = recorded.sessions(REFUND)
    stretch = session_stretch(recorded.source, second)
    began = session_time(second)
    assert (REFUND, began, None) == (stretch.conversation, stretch.since_ms, stretch.until_ms)
    assert all(one.time >= (began or 0) - EARLY_MS for one in collect(recorded.source, stretch))
    assert session_stretch(recorded.source, first).until_ms is not None


def test_a_score_decided_in_the_next_session_belongs_to_the_one_it_names() -> None:
    """A window that closes when the customer is back is told where its score counts (R-002-40)."""
    recorded = two_sessions()
    first, second = recorded.sessions(REFUND)
    moved = tuple(
        replace(one, value=(one.value or b"").replace(first.encode(), second.encode(), 1))
        if one.topic == "state.diffs" and b'"feedback.health"' in (one.value or b"") and one.key == REFUND.encode()
        else one
        for one in recorded.records
    )
    told = text_lines(first, chain(replace(recorded, records=moved), first))
    assert any("feedback.health 10:" in line for line in told)
    assert any(line.endswith("· feedback.health") for line in told), "the decision that made the score"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("0194abcd-0000-7000-8000-000000000000", "no decision of it on state.diffs"),
        ("s-1", "no session id"),
        ("shop-1/web", "no conversation id"),
        ("demo/web/nobody", "the topics hold nothing of it"),
        ("~99", "no system conversation of 12 partitions"),
    ],
)
def test_what_is_not_there_is_said(name: str, words: str) -> None:
    """An unknown session or conversation is an error that says what was looked for (R-003-30)."""
    with pytest.raises(NotFoundError, match=words):
        chain(refund(), name)


def test_a_log_whose_head_was_compacted_away_is_read_to_its_end() -> None:
    """Offsets with holes and a first one far from 0: the end is a position, not a count (cases C15, D01)."""
    recorded = refund()
    spread = [replace(one, offset=17_091 + 7 * one.offset) for one in recorded.of("plans", REFUND)]
    others = [one for one in recorded.records if one.topic != "plans"]
    holes = replace(recorded, records=(*others, *spread))
    read = collect(holes.source, conversation_stretch(holes.source, REFUND))
    assert [one.offset for one in spread] == [one.offset for one in read if one.topic == "plans"]


def test_internals_show_reasons_and_changed_values() -> None:
    """Under each decision stand its rules with evidence, and every value before and after (R-003-30)."""
    told = text_lines(REFUND, chain(refund()), internals=True)
    assert any("because planning.review_approved" in line for line in told)
    assert any("session: null → {" in line for line in told)
    assert any("planning › turns: 0 → 1" in line for line in told)
    assert len(told) > len(text_lines(REFUND, chain(refund())))
