"""Identity links through the whole table: one customer on several channels, and what must never come of a link."""

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

MINUTE, HOUR = 60_000, 3_600_000


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


@pytest.mark.parametrize("first", ["wechat", "web"])
def test_two_links_in_a_circle_are_refused(first: str) -> None:
    """The second link of a circle is refused where it comes in, and the first one stands (R-003-05)."""

    async def body(stand: Stand) -> None:
        people = list(await both(stand))
        if first == "web":
            people.reverse()
        one, two = people
        await link(one, two.conversation)
        await link(two, one.conversation)
        assert (two.conversation, None) == (root_of(one), root_of(two))
        assert "circle" in why(two, "identity.refused")
        await one.say("你好")
        assert ["common.greeting"] == templates(one)

    whole(body)


def test_a_circle_in_the_same_moment_ends() -> None:
    """Both links taken before either is known to the other: both come back, nobody is linked, each talks (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT, ms=0)
        await link(web, wechat.conversation, ms=0)
        await wechat.write("你好")
        await web.write("你好")
        await stand.pass_ms(3_000)
        assert {"identity.linked", "identity.sent_back", "identity.refused"} <= set(rules(wechat)) & set(rules(web))
        assert [None, None] == [root_of(wechat), root_of(web)]
        count = len(stand.values("channel.events"))
        await wechat.say("你好")
        await web.say("你好")
        assert count + 2 == len(stand.values("channel.events"))
        assert 2 == len(templates(wechat)) == len(templates(web))

    whole(body, partitions=12)


@pytest.mark.parametrize("gap_ms", [1_000, 0])
def test_two_hops_are_refused(gap_ms: int) -> None:
    """A conversation that others are linked to is linked to none, and none is linked to a linked one (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        app = await stand.person("a-1", channel="app")
        await link(app, wechat.conversation, ms=gap_ms)
        await link(wechat, ROOT, ms=3_000)
        linked = {one.conversation: root_of(one) for one in (app, wechat, web) if root_of(one)}
        assert 1 == len(linked)
        if gap_ms:
            assert "two hops away" in why(wechat, "identity.refused")
        other = await stand.person("a-2", channel="app")
        await link(other, next(iter(linked)), ms=3_000)
        assert root_of(other) is None
        assert "linked to" in why(other, "identity.refused")
        await other.say("你好")
        assert ["common.greeting"] == templates(other)

    whole(body, partitions=12)


@pytest.mark.parametrize(
    ("root", "proof", "said"),
    [
        (ROOT, "nickname", "no proof"),
        (ROOT, "name", "no proof"),
        (ROOT, "avatar", "no proof"),
        (ROOT, "address", "no proof"),
        ("demo/wechat/w-1", "login", "itself"),
        ("other/web/c-zh-refund", "login", "another shop"),
        ("demo/web/ c", "login", "can't be a conversation"),
        ("demo/web/c\u200b", "login", "can't be a conversation"),
        (f"demo/web/{'x' * 65}", "login", "can't be a conversation"),
    ],
)
def test_a_link_in_doubt_joins_nobody(root: str, proof: str, said: str) -> None:
    """A weak proof, another shop, itself, or what is no conversation: refused with its reason (R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, root, proof=proof)
        assert said in why(wechat, "identity.refused")
        assert root_of(wechat) is None
        await wechat.say("你好")
        assert ["common.greeting"] == templates(wechat)
        assert {} == web.state

    whole(body)


def test_an_open_refund_ends_and_is_told() -> None:
    """A refund that waits for a review ends with the link: the review closes, an approval does nothing (R-003-05)."""

    async def body(stand: Stand) -> None:
        web, app = await stand.person(OWNER, approver="none"), await stand.person("a-1", channel="app")
        await web.say(WISH)
        await web.say("确认")
        review = web.values("human.requests")[-1]
        await link(web, app.conversation)
        assert "linked.ended" == templates(web)[-1]
        assert "退款" in shown(web)[-1].text
        assert "closed" == web.values("human.requests")[-1]["status"]
        word = {"kind": "approve", "request_id": review["request_id"], "call_hash": review["call_hash"]}
        await stand.world.decide(web.conversation, word)
        await stand.pass_ms(5_000)
        assert [] == await web.ledger()
        assert ("cancelled", []) == (web.values("plans")[-1]["status"], web.state["planning"]["flows"])

    whole(body)


@pytest.mark.parametrize("text", [WISH, "I want a refund for order 1001, the shirt is too large"])
def test_what_was_in_flight_before_the_link_is_handled_there(text: str) -> None:
    """A message just before the link is the old key's; what it would ask has no answer there, so it ends (R-003-05)."""

    async def body(stand: Stand) -> None:
        web, app = await stand.person(OWNER), await stand.person("a-1", channel="app")
        await web.write(text)
        await link(web, app.conversation, ms=5_000)
        assert ["linked.ended"] == templates(web)
        assert ["refund"] == [one["intent"] for one in web.values("messages.normalized")]
        assert [] == app.values("messages.normalized")
        assert [] == web.state["planning"]["flows"]
        assert ("请再说一次" if text == WISH else "say so again") in shown(web)[0].text

    whole(body)


@pytest.mark.parametrize("outcome", ["done", "lost"])
def test_a_call_that_runs_goes_on_to_its_outcome(outcome: str) -> None:
    """A refund under way when the link comes is not cancelled blindly: its customer gets the outcome (R-003-05)."""

    async def body(stand: Stand) -> None:
        web, app = await stand.person(OWNER), await stand.person("a-1", channel="app")
        await web.say(WISH)
        await web.write("确认")
        while "planning.review_approved" not in rules(web):
            await stand.pass_ms(50)
        if outcome == "lost":
            await stand.lock.restart()
        await link(web, app.conversation, ms=20_000)
        assert "refund.success" == templates(web)[-1]
        assert 1 == len(await web.ledger())
        assert app.conversation == root_of(web)
        await web.say("到账了吗", ms=2_000)
        assert 1 == len(app.values("messages.normalized"))

    whole(body)


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


def test_a_person_goes_with_the_customer() -> None:
    """Who waits for a person waits at the root, too: the old request closes, a new one is open (X9, R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand, approver="none")
        await wechat.say("转人工")
        await link(wechat, ROOT)
        old, new = wechat.values("human.requests"), web.values("human.requests")
        assert [("open", "handover"), ("closed", "handover")] == [(one["status"], one["kind"]) for one in old]
        assert ["planning.linked"] == [one["rule"] for one in new]
        assert ("agent", "human") == (wechat.state["planning"]["owner"], web.state["planning"]["owner"])
        await stand.world.decide(ROOT, {"kind": "takeover"})
        await stand.world.decide(ROOT, {"kind": "reply", "text": "您好，请拨13800138000找我"})
        await stand.pass_ms(1_000)
        assert "您好，请拨13800138000找我" == shown(wechat)[-1].text
        assert [] == templates(web)

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


def test_a_root_takes_so_many_and_no_more() -> None:
    """A customer of more than 20 conversations is none: the link comes back, and the conversation talks (R-003-05)."""

    async def body(stand: Stand) -> None:
        people = [await stand.person(f"w-{number}", channel="wechat") for number in range(21)]
        for person in people:
            await link(person, ROOT)
        assert [ROOT] * 20 + [None] == [root_of(person) for person in people]
        assert "20 conversations" in why(people[-1], "identity.refused")

    whole(body)


def test_a_follow_up_shows_where_the_question_was() -> None:
    """A forwarded customer is reminded in their channel, and never of what ended with the link (R-002-32, R-003-05)."""

    async def body(stand: Stand) -> None:
        wechat, web = await both(stand)
        await link(wechat, ROOT)
        await wechat.say("我要退款，衣服太大了")
        await stand.pass_ms(3 * MINUTE)
        assert ["refund.ask_order_id", "delivery.follow_up"] == templates(wechat)
        assert [] == templates(web)
        await link(wechat, wechat.conversation, name="l-2")
        await wechat.say("我要退款，衣服太大了")
        await link(wechat, ROOT, name="l-3")
        await stand.pass_ms(3 * MINUTE)
        assert ["refund.ask_order_id", "linked.ended"] == templates(wechat)[2:]

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
