"""What is open when a link comes: refunds, reviews, calls that run, people, reminders and resends."""

from __future__ import annotations

import asyncio

import pytest

from streams.scenario.format import Fault
from tests.promises.stand import Person, Stand, whole
from tests.streams.linking import OWNER, ROOT, WISH, both, link, root_of, rules, shown, templates

MINUTE = 60_000


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


@pytest.mark.parametrize(("kind", "times"), [("delay", 1), ("lost_response", 9), ("error", 1)])
@pytest.mark.parametrize("restarts", [0, 1])
def test_a_call_that_runs_goes_on_to_its_outcome(kind: str, times: int, restarts: int) -> None:
    """A refund under way when the link comes is not cancelled blindly: its customer gets the outcome (R-003-05)."""

    async def body(stand: Stand) -> None:
        web, app = await stand.person(OWNER), await stand.person("a-1", channel="app")
        fault = {"path_prefix": "/refunds", "kind": kind, "delay_ms": 1_500, "times": times}
        await stand.world.fault(Fault.model_validate(fault))
        await web.say(WISH)
        await web.write("确认")
        await _calling(web)
        await link(web, app.conversation, ms=0)
        await asyncio.sleep(0.05)
        assert (app.conversation, ["refund"]) == (root_of(web), [one["flow"] for one in web.state["planning"]["flows"]])
        for _ in range(restarts):
            await stand.lock.restart()
        await web.say("到账了吗", ms=30_000)
        assert ["refund.success"] == [one for one in templates(web) if one.startswith(("refund.success", "linked"))]
        assert (1, 1) == (len(await web.ledger()), len(app.values("messages.normalized")))

    whole(body)


async def _calling(person: Person) -> None:
    """Until a call of the person's conversation runs."""
    for _ in range(400):
        if any(one["kind"] == "tool" for one in person.state["pending"].values()):
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


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


def test_a_resend_goes_where_the_message_was_shown() -> None:
    """Not displayed in 30 s: again in the linked channel, under the same id, once only (R-002-31, R-003-05)."""

    async def body(stand: Stand) -> None:
        web = await stand.person(OWNER)
        app = await stand.person("a-1", channel="app", receipts="delivered")
        await link(app, ROOT)
        await app.say("你好")
        await stand.pass_ms(40_000)
        sent = web.values("actions.outbound")
        assert [("reply", 1), ("resend", 2)] == [(one["kind"], one["attempt"]) for one in sent]
        assert {app.conversation} == {one["to"] for one in sent}
        assert [(sent[0]["message_id"], 2)] == [(one.message_id, one.attempt) for one in shown(app)]
        assert [] == templates(web)

    whole(body)


def test_a_person_who_came_after_the_link_stays() -> None:
    """Who takes the old conversation over later keeps it; the same link again changes nothing (X9, R-003-05)."""

    async def body(stand: Stand) -> None:
        web, app = await stand.person(OWNER, approver="none"), await stand.person("a-1", channel="app")
        await link(web, app.conversation)
        await stand.world.decide(web.conversation, {"kind": "takeover"})
        await link(web, app.conversation, name="l-2")
        assert "identity.repeat" in rules(web)
        assert "human" == web.state["planning"]["owner"]

    whole(body)
