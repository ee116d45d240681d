"""Promise 3, no gaps: versions go up by one; (conversation, version) is written once and names all that happened."""

from __future__ import annotations

import orjson
import pytest

from memory.bus import VersionConflictError, apply, empty, verify
from streams.runtime.ports import Outgoing, PartitionLostError
from tests.promises.stand import DIFFS, Person, Stand, whole


async def _lost(stand: Stand, person: Person, text: str) -> None:
    """The commit's outcome gets lost while the customer writes; a successor takes over from the log alone."""
    stand.lock.commit.lose_next = True
    with pytest.raises(PartitionLostError):
        await person.say(text)
    await stand.lock.restart()
    await stand.lock.settle()


async def _troubled(stand: Stand) -> list[Person]:
    """Two refunds in one partition or two, with owners that die at every turn."""
    people = [await stand.person("c-zh-refund"), await stand.person("c-en-logistics")]
    await people[0].say("我要退款，订单号1001，衣服太大了")
    await _lost(stand, people[1], "Where is my order OD100008?")
    await stand.pass_ms(5_000)
    await stand.lock.restart()
    await _lost(stand, people[0], "确认")
    await people[1].say("thanks")
    await stand.pass_ms(60_000)
    return people


def test_versions_have_no_gap_through_lost_owners() -> None:
    """Every version once, in order, each from what the one before it left, and each input decided once (promise 3)."""

    async def body(stand: Stand) -> None:
        for person in await _troubled(stand):
            diffs, state = person.values(DIFFS), empty(person.conversation)
            assert list(range(1, len(diffs) + 1)) == [diff["version"] for diff in diffs]
            for diff in diffs:
                verify(state, diff)
                state = apply(state, diff)
            assert orjson.dumps(state) == orjson.dumps(person.state)
        causes = [(one["topic"], one["partition"], one["offset"]) for one in
                  (diff["cause"] for diff in stand.values(DIFFS))]  # fmt: skip
        assert len(set(causes)) == len(causes)
        assert [5_000] == [row["amount_fen"] for row in await people_ledger(stand)]

    whole(body)


async def people_ledger(stand: Stand) -> list[dict[str, int]]:
    """What the shop did, for whomever."""
    answer = await stand.world._shop.get("/ledger")
    return list(answer.json()["effects"])


@pytest.mark.parametrize(("base", "version"), [(1, 2), (4, 5), (-1, 0), (0, 2), (-1, 1), (0, 0)])
def test_a_register_with_a_gap_or_a_fork_is_refused(base: int, version: int) -> None:
    """Whatever is not the next version of what there is stops the owner, who names both (promise 3, J01)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("你好", ms=0)
        await stand.lock.settle()
        last = person.values(DIFFS)[-1]
        forged = {**last, "base": last["version"] + base, "version": last["version"] + version}
        stand.lock.log.append(Outgoing(DIFFS, stand.lock.partition_of(person.conversation),
                                       person.conversation.encode(), orjson.dumps(forged)))  # fmt: skip
        with pytest.raises(VersionConflictError, match=person.conversation):
            await stand.lock.restart()

    whole(body)


def test_every_decision_names_its_cause_its_reasons_and_its_changes() -> None:
    """No decision is without a reason, and none changes what its diff does not say (promise 3, R-002-19)."""

    async def body(stand: Stand) -> None:
        for person in await _troubled(stand):
            for diff in person.values(DIFFS):
                assert diff["reasons"]
                assert all(reason["rule"] for reason in diff["reasons"])
                record = stand.lock.log.records(diff["cause"]["topic"], diff["cause"]["partition"])
                assert record[diff["cause"]["offset"]].time == diff["cause"]["time"]

    whole(body)
