"""Identity links through the whole table: one customer on several channels, with one conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.events import Body, HeartbeatBody, MessageBody, PresenceBody, RatingBody
from schemas.step import Draft, Input
from streams.commands.trace import text_lines
from streams.replay.letters import letters, redrive
from streams.replay.local import LocalSource
from streams.replay.trace import trace_event
from tests.promises.rerun import rerun
from tests.promises.stand import DIFFS, Stand, isolated, whole
from tests.streams.linking import OWNER, ROOT, WISH, both, link, root_of, rules, shown, templates, why

HOUR = 3_600_000


def test_a_linked_customer_is_served_where_they_write() -> None:
    """The old key's messages are handled at the root, with its orders; answers show where they are asked (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        await wechat.say(WISH)
        await wechat.say("确认", ms=8_000)
        assert ["refund.confirm", "refund.in_review", "refund.success"] == templates(wechat)
        assert ["m-1", "m-2"] == [one.in_reply_to for one in shown(wechat)][:2]
        assert [] == templates(web)
        assert [(OWNER, 5000)] == [(one["customer_id"], one["amount_fen"]) for one in await web.ledger()]
        assert {"read"} == {one["state"] for one in web.state["actions"]["messages"].values()}
        assert {} == wechat.state["perception"]["messages"]
        assert [] == stand.values("delivery.receipts.dlq") + stand.values("channel.events.dlq")

    whole(body)


def test_answers_follow_the_customer_from_channel_to_channel() -> None:
    """What is asked in one channel is answered in the other, and the next answer shows in that one (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        await wechat.say("我要退款，衣服太大了")
        await web.say("1001")
        await wechat.say("确认", ms=8_000)
        assert ["refund.ask_order_id", "refund.in_review", "refund.success"] == templates(wechat)
        assert ["refund.confirm"] == templates(web)
        assert 1 == len(await web.ledger())
        assert wechat.conversation == web.state["identity"]["answer_at"]

    whole(body)


def test_the_same_message_id_of_two_channels_is_two_messages() -> None:
    """Channels count their own messages; a forward keeps event id and text, and gets a name of its own (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        await web.say("你好", message_id="m-1")
        await wechat.say("我的快递到哪了", message_id="m-1")
        heard = web.state["perception"]["messages"]
        assert ["你好", "我的快递到哪了"] == [one["text"] for one in heard.values()]
        assert "perception.repeat" not in rules(web)
        forwarded = web.values("channel.events")[-1]
        assert wechat.values("channel.events")[-1]["event_id"] == forwarded["event_id"]
        await wechat.recall("m-1")
        assert [False, True] == [one["recalled"] for one in web.state["perception"]["messages"].values()]

    whole(body)


def test_a_sealed_phone_is_opened_at_the_root() -> None:
    """A forward keeps seal and key id; the root opens it as the old key's, and nothing is in clear (promise 9)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        await wechat.say("订单1001的收货电话改成13812345678")
        before, after = wechat.values("channel.events")[-1], web.values("channel.events")[-1]
        assert before["seal"] == after["seal"]
        assert stand.world.keys.key_for(wechat.conversation)[0] == after["seal"]["key_id"]
        message = web.values("messages.normalized")[-1]
        assert stand.world.keys.key_for(ROOT)[0] == message["seal"]["key_id"]
        assert not any(b"13812345678" in (record.value or b"") for record in stand.everything())
        assert [] == stand.values("channel.events.dlq")

    whole(body)


def test_a_repeat_of_the_producer_is_one_message() -> None:
    """What was handled before the link, or forwarded after it, is not handled again (A15, R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        early = await wechat.send(wechat.raw("e-early", _text("m-0", "你好")))
        await link(wechat, ROOT)
        late = await wechat.send(wechat.raw("e-late", _text("m-1", "谢谢")))
        for event in (early, late, late):
            await stand.world.publish("channel.events", wechat.conversation, event, event.event_id)
        await stand.pass_ms(1_000)
        assert ["谢谢"] == [one["text"] for one in web.state["perception"]["messages"].values()]
        assert 3 == rules(wechat).count("runtime.duplicate")

    whole(body)


def _text(message_id: str, text: str) -> MessageBody:
    return MessageBody(kind="message", message_id=message_id, text=text)


def test_a_merge_keeps_both_histories() -> None:
    """The old state stays as it was, the root says of each message where it was written (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await wechat.say("你好")
        await link(wechat, ROOT)
        await wechat.say("谢谢")
        assert ["你好"] == [one["text"] for one in wechat.state["perception"]["messages"].values()]
        event = web.values("channel.events")[-1]
        since = wechat.state["identity"]["since"]
        assert (wechat.conversation, since) == (event["forwarded"]["conversation"], event["forwarded"]["since"])
        assert wechat.conversation in why(web, "identity.heard")
        linking = next(one for one in wechat.values(DIFFS) if one["version"] == since)
        assert "identity.linked" in [one["rule"] for one in linking["reasons"]]

    whole(body)


def test_a_link_outlives_silence_and_restarts() -> None:
    """Closed after silence, and every partition taken over: messages still go to the root (R-003-05, promise 2)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await wechat.say("你好")
        await link(wechat, ROOT)
        await stand.pass_ms(2 * HOUR)
        assert ("residue", "residue") == (wechat.state["kind"], web.state["kind"])
        await stand.lock.restart()
        await wechat.say("谢谢")
        assert ROOT == root_of(wechat)
        assert ["common.greeting", "common.welcome"] == templates(wechat)

    whole(body)


def test_a_link_can_end_and_begin_again() -> None:
    """A linked conversation that names itself is a customer of its own; a weak proof does not end it (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        await wechat.say("你好")
        await link(wechat, wechat.conversation, proof="nickname", name="l-2")
        assert ROOT == root_of(wechat)
        await link(wechat, wechat.conversation, name="l-3")
        await wechat.say("谢谢")
        assert (None, {}) == (root_of(wechat), web.state["identity"]["linked"])
        assert ["谢谢"] == [one["text"] for one in wechat.state["perception"]["messages"].values()]
        await link(wechat, ROOT, name="l-4")
        await wechat.say("谢谢")
        assert ["common.greeting", "common.welcome", "common.welcome"] == templates(wechat)
        assert ["你好", "谢谢"] == [one["text"] for one in web.state["perception"]["messages"].values()]

    whole(body)


def test_nothing_else_is_forwarded() -> None:
    """Presence, heartbeats and ratings stay with the channel where they happened (design 3a, R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        await wechat.say("你好")
        here = PresenceBody(kind="presence", status="online")
        bodies: list[Body] = [HeartbeatBody(kind="heartbeat"), here, RatingBody(kind="rating", score=5)]
        for number, one in enumerate(bodies):
            await wechat.send(wechat.raw(f"x-{number}", one))
        await stand.pass_ms(1_000)
        assert ["identity_link", "message"] == [one["body"]["kind"] for one in web.values("channel.events")]

    whole(body)


def test_the_log_alone_gives_every_decision_of_both_again() -> None:
    """Links, forwards, returned receipts and a circle: replayed from the log byte for byte (promise 5, R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await wechat.say(WISH)
        await link(wechat, ROOT)
        await link(web, wechat.conversation)
        await wechat.say("我要退款，订单号1001，电话13812345678", ms=6_000)
        await link(wechat, wechat.conversation, name="l-2")
        pairs = list(rerun(stand.everything(), stand.world.keys, isolated(partitions=4)))
        assert [] == [(old, new) for old, new in pairs if old != new]
        text = b"".join(old for old, _ in pairs)
        for rule in ("identity.linked", "identity.forwarded", "identity.joined", "identity.refused", "identity.ended",
                     "delivery.returned"):  # fmt: skip
            assert rule.encode() in text

    whole(body)


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_trace_goes_on_at_the_root(partitions: int) -> None:
    """A producer asks after its event under the old key and sees that it was forwarded, and answered (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, _ = await both(stand)
        await link(wechat, ROOT)
        await wechat.say("你好")
        source = LocalSource(tuple(stand.everything()), partitions)
        first, second = trace_event(source, "e-1", wechat.conversation)
        assert ("forwarded", "handled") == (first.outcome, second.outcome)
        assert (wechat.conversation, ROOT) == (first.event.key, second.event.key)
        assert [("common.greeting", "read")] == [(templates(wechat)[0], one.state) for one in second.answers]
        lines = [line for one in (first, second) for line in text_lines(one)]
        assert any(f"forwarded by {wechat.conversation}" in line for line in lines)
        assert [one.event.at for one in trace_event(source, "e-1")] == [first.event.at, second.event.at]

    whole(body, partitions=partitions)


def _boom(_draft: Draft, cause: Input) -> None:
    raise LookupError(cause.id)


def test_a_message_that_can_not_be_forwarded_is_a_dead_letter() -> None:
    """A bug of ours loses no word: it is a dead letter, and a redrive forwards it (R-002-49, R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        whole_table = stand.lock._rows
        stand.table([replace(row, step=_boom) if row.name == "identity" else row for row in whole_table])
        await stand.lock.restart()
        await wechat.say("谢谢")
        assert ["step_failed"] == [one["code"] for one in stand.values("channel.events.dlq", wechat.conversation)]
        stand.table(whole_table)
        await stand.lock.restart()
        letter = next(iter(letters(LocalSource(tuple(stand.everything()), 4), ["channel.events"])))
        stand.lock.log.append(redrive(letter, stand.world.keys, 4))
        await stand.pass_ms(1_000)
        assert ["谢谢"] == [one["text"] for one in web.state["perception"]["messages"].values()]

    whole(body)
