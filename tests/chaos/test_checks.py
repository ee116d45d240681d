"""The chaos run's checks find each kind of damage in a good recording, and nothing in the good one itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from streams.runtime.ports import Record
from tests.chaos import checks
from tests.chaos.checks import Story, Violation
from tests.streams.replay.recorded import REFUND, refund

Damage = Callable[[list[Record]], list[Record]]


def story(records: Sequence[Record]) -> Story:
    """The refund's conversation out of a log."""
    return checks.stories(records, REFUND.__eq__)[REFUND]


def rules(found: Sequence[Violation]) -> set[str]:
    """The rules that are broken."""
    return {one.rule for one in found}


def mine(topic: str, number: int) -> Record:
    """The n-th record of the refund on a topic."""
    return refund().of(topic, REFUND)[number]


def without(record: Record) -> Damage:
    """A log that has lost a record."""
    return lambda log: [one for one in log if one is not record]


def with_value(record: Record, **fields: Any) -> Damage:
    """A log in which a record says something else."""
    changed = replace(record, value=orjson.dumps({**orjson.loads(record.value or b""), **fields}))
    return lambda log: [changed if one is record else one for one in log]


def with_more(record: Record, **fields: Any) -> Damage:
    """A log with the record once more, at the end of its topic."""
    again = replace(record, offset=1_000_000, **fields)
    return lambda log: [*log, again]


def swapped(first: Record, second: Record) -> Damage:
    """A log in which two records stand in each other's place."""
    places = {first.offset: replace(second, offset=first.offset), second.offset: replace(first, offset=second.offset)}
    return lambda log: [places[one.offset] if one is first or one is second else one for one in log]


def test_a_good_log_has_no_violation() -> None:
    """The checks accept what a crash-free run writes, every conversation of it (promises 1 to 4 and 6)."""
    for one in checks.stories(refund().records).values():
        assert [] == checks.check(one)


def test_the_recording_has_what_the_checks_look_at() -> None:
    """A check over nothing proves nothing: there are diffs, inputs, emits and a written state."""
    good = story(refund().records)
    assert good.diffs
    assert good.inputs
    assert good.update is not None
    assert {"messages.normalized", "actions.outbound", "plans"} <= good.emitted.keys()


@pytest.mark.parametrize(("damage", "expected"), [
    (with_more(mine("state.diffs", 3)), "fork"),
    (without(mine("state.diffs", 3)), "gap"),
    (without(mine("state.diffs", -1)), "lost"),
    (without(mine("messages.normalized", 0)), "emits"),
    (without(mine("plans", -1)), "emits"),
    (swapped(mine("actions.outbound", 0), mine("actions.outbound", 1)), "emits"),
    (without(mine("channel.events", 0)), "phantom"),
    (with_value(mine("state.updates", -1), now=1), "live"),
    (with_more(mine("channel.events", 0), topic="channel.events.dlq"), "dead letter"),
])  # fmt: skip
def test_damage_is_found(damage: Damage, expected: str) -> None:
    """A log with one thing wrong breaks the rule that is named for it (promises 1 to 4)."""
    assert expected in rules(checks.check(story(damage(list(refund().records)))))


def test_another_value_before_is_found() -> None:
    """A diff whose `before` is not what the one earlier left breaks the chain (promise 3)."""
    entries = enumerate(story(refund().records).diffs)
    number, diff = next((number, entry.diff) for number, entry in entries
                        if any("before" in change for change in entry.diff["changes"]))  # fmt: skip
    changes = [{**change, "before": "another"} if "before" in change else change for change in diff["changes"]]
    damaged = with_value(mine("state.diffs", number), changes=changes)(list(refund().records))
    assert {"before"} == rules(list(checks.chain(story(damaged))))


def test_another_whole_state_is_found() -> None:
    """A session's first diff carries the state before it, and no other (promise 3)."""
    diff = story(refund().records).diffs[0].diff
    damaged = with_value(mine("state.diffs", 0), whole={**diff["whole"], "kind": "other"})(list(refund().records))
    assert "before" in rules(list(checks.chain(story(damaged))))


def test_inputs_decided_out_of_order_are_found() -> None:
    """Two inputs of a topic decided the wrong way round break the order (promise 1)."""
    entries = [(number, entry.diff["cause"]) for number, entry in enumerate(story(refund().records).diffs)
               if entry.diff["cause"]["topic"] == "channel.events"][:2]  # fmt: skip
    (first, cause), (second, other) = entries
    log = with_value(mine("state.diffs", first), cause=other)(list(refund().records))
    log = with_value(mine("state.diffs", second), cause=cause)(log)
    assert "order" in rules(list(checks.order(story(log))))


def test_an_input_decided_twice_is_found() -> None:
    """A second diff for an input is a violation, also when its version is a new one (promise 3)."""
    last = mine("state.diffs", -1)
    version = orjson.loads(last.value or b"")["version"]
    log = [*refund().records, replace(last, offset=1_000_000, value=orjson.dumps(
        {**orjson.loads(last.value or b""), "base": version, "version": version + 1}))]  # fmt: skip
    assert "handled twice" in rules(list(checks.handled(story(log))))


def test_a_resend_that_a_receipt_had_answered_is_found() -> None:
    """A message that was displayed before its resend's deadline must not be sent again (promise 6, R-002-31)."""
    receipts = refund().of("delivery.receipts", REFUND)
    seen = next(one for one in receipts if orjson.loads(one.value or b"")["state"] == "displayed")
    message = orjson.loads(seen.value or b"")["message_id"]
    last = mine("state.diffs", -1)
    cause = {**orjson.loads(last.value or b"")["cause"], "topic": "delivery.receipts", "offset": -1}
    again = {"topic": "actions.outbound", "data": {"message_id": message, "attempt": 2}}
    late = with_value(last, emits=[again], cause={**cause, "time": seen.time + 1})(list(refund().records))
    early = with_value(last, emits=[again], cause={**cause, "time": seen.time})(list(refund().records))
    assert {"sent again"} == rules(list(checks.resends(story(late))))
    assert [] == list(checks.resends(story(early)))


def test_emits_published_again_are_no_violation() -> None:
    """A successor publishes emits again in order; a reader drops the repeats (promise 4)."""
    again = [replace(record, offset=record.offset + 1_000_000) for record in refund().of("messages.normalized", REFUND)]
    assert [] == checks.check(story([*refund().records, *again]))


def test_a_state_that_a_fresh_owner_lacks_or_has_wrong_is_found() -> None:
    """What recovery rebuilds is what the diffs give, for every conversation (promise 3)."""
    known = {REFUND: story(refund().records)}
    state = dict(checks.replayed(known[REFUND]))
    assert [] == list(checks.recovered(known, {REFUND: orjson.dumps(state)}))
    assert {"recovered"} == rules(list(checks.recovered(known, {})))
    assert {"recovered"} == rules(list(checks.recovered(known, {REFUND: orjson.dumps({**state, "now": 1})})))


def test_an_effect_done_twice_is_found() -> None:
    """Two effects under one key, or two of a kind on one order, are one too many (promise 6)."""
    row = {"key": "k1", "kind": "refund", "order_id": "1", "customer_id": "c", "at": 1}
    assert [] == list(checks.ledger([row, {**row, "key": "k2", "order_id": "2"}], {}))
    assert {"effect twice"} == rules(list(checks.ledger([row, {**row, "order_id": "2"}], {})))
    assert {"effect twice"} == rules(list(checks.ledger([row, {**row, "key": "k2"}], {})))


def test_a_message_shown_twice_or_never_decided_is_found() -> None:
    """The channel shows each decided message once, and nothing else (promise 6)."""
    known = {REFUND: story(refund().records)}
    message = refund().values("actions.outbound", REFUND)[0]["message_id"]
    assert [] == list(checks.shown([(REFUND, message), ("other/web/c", "m")], known))
    assert {"shown twice"} == rules(list(checks.shown([(REFUND, message)] * 2, known)))
    assert {"shown undecided"} == rules(list(checks.shown([(REFUND, "m-none")], known)))


def test_a_violation_says_where() -> None:
    """An account names rule, conversation, version, topic, partition and offset (style: errors)."""
    found = next(iter(checks.versions(story(with_more(mine("state.diffs", 3))(list(refund().records))))))
    partition = mine("state.diffs", 3).partition
    assert str(found).startswith(f"fork: {REFUND} version 4 (state.diffs [{partition}] at 1000000): first written at")
