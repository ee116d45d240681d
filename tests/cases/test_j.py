"""Cases J: the state bus, confirmations and clocks, through the whole table on virtual time."""

from __future__ import annotations

import orjson
import pytest

from memory.bus import apply, empty
from tests.promises.stand import DIFFS, Person, Stand, whole

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
WISH = "我要退款，订单号1001，衣服太大了"


@pytest.mark.parametrize("reason", ["坏了/裂了~漏水", "~1/~0//", "a/b~c 坏了", "质量不好\\/"])
def test_j05_keys_with_slashes_and_tildes_make_the_round_trip(reason: str) -> None:
    """A key with "/" and "~" of a customer's words replays to the same state, byte for byte (cases J03, J05)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("我要退款，订单号1001")
        await person.say(reason, message_id="m/~1")
        await person.say("确认")
        state = empty(person.conversation)
        for diff in person.values(DIFFS):
            state = apply(state, diff)
        assert orjson.dumps(person.state) == orjson.dumps(state)
        assert "m/~1" in state["perception"]["messages"]

    whole(body)


async def _staff(stand: Stand, person: Person, does: str, text: str = "") -> None:
    await stand.world.decide(person.conversation, {"kind": does, "text": text})
    await stand.lock.settle()


@pytest.mark.parametrize("silence", [14 * DAY, 31 * MINUTE, 2 * DAY])
def test_j11_the_waiting_clock_starts_with_each_question(silence: int) -> None:
    """Answered after 3 s, silent for days, answered by a person after 40 s: 3 s and 40 s, two sessions (case J11)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-human", approver="none")
        await _staff(stand, person, "takeover")
        for wait in (3_000, 40_000):
            await person.write("在吗，什么时候到")
            await stand.pass_ms(wait)
            await _staff(stand, person, "reply", "您好，我来帮您")
            await stand.pass_ms(silence if wait == 3_000 else 5_000)
        latencies = [one for one in person.values("feedback.signals") if one["kind"] == "reply_latency"]
        assert [3, 40] == [round(one["value"] / 1_000) for one in latencies]
        sessions = {one["ref"]["session_id"] for one in person.values("messages.normalized")}
        assert 2 == len(sessions)

    whole(body)


@pytest.mark.parametrize(("every", "count"), [(4 * MINUTE, 9), (29 * MINUTE, 4), (10 * MINUTE, 7)])
def test_j13_silence_counts_from_the_last_message(every: int, count: int) -> None:
    """Messages for longer than the limit, none of them far from the last: one session, nobody left (case J13)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        for _ in range(count):
            await person.say("谢谢", ms=every)
        sessions = {one["ref"]["session_id"] for one in person.values("messages.normalized")}
        assert 1 == len(sessions)
        kinds = {one["kind"] for one in person.values("feedback.signals")}
        assert not kinds & {"interruption", "repeat"}

    whole(body)


@pytest.mark.parametrize("text", ["确认", "1", "是的"])
@pytest.mark.parametrize("gap", [0, 40])
def test_j15_twenty_confirmations_are_one_refund(text: str, gap: int) -> None:
    """Twenty at once, or while review and call run: one request, one refund, no other success (case J15)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say(WISH)
        for _ in range(20):
            await person.write(text)
            if gap:
                await stand.pass_ms(gap)
        await stand.pass_ms(20_000)
        assert [5_000] == [row["amount_fen"] for row in await person.ledger()]
        assert 1 == len([one for one in person.values("human.requests") if one["kind"] == "review"])
        assert 1 == len([one for one in person.values("tools.calls") if one["risk"] == "money"])
        assert 1 == len([one for one in person.values("actions.outbound") if one["claims_success"]])

    whole(body)


@pytest.mark.parametrize("hours", [1, 3, 11])
def test_j19_while_we_owe_the_answer_the_customer_is_not_gone(hours: int) -> None:
    """Hours of human review and a silent customer: no sign of leaving, no reminder, and the answer comes (case J19)."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund", approver="none")
        await person.say(WISH)
        await person.say("确认")
        before = len(person.values("actions.outbound"))
        await stand.pass_ms(hours * HOUR)
        kinds = {one["kind"] for one in person.values("feedback.signals")}
        assert "interruption" not in kinds
        assert before == len(person.values("actions.outbound"))
        ((request_id, review),) = person.state["planning"]["reviews"].items()
        await stand.world.decide(person.conversation, {"kind": "approve", "request_id": request_id,
                                                       "call_hash": review["call_hash"]})  # fmt: skip
        await stand.pass_ms(10_000)
        assert "refund.success" == person.heard[-1]

    whole(body, review_ms=12 * HOUR)
