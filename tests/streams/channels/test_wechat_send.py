"""Messages out to WeChat's API on a real socket: tokens, error codes, and nothing sent twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, Response

from schemas.delivery import OutboundMessage, Receipt
from streams.channels.wechat.account import WeChatSettings
from streams.channels.wechat.send import WeChatSender
from streams.effects.send import SendHandler
from streams.runtime.ports import Effect
from tests.streams.channels import wechat_side as side
from tests.streams.gateway.local import FixedClock

CONVERSATION = f"{side.SHOP}/wechat/{side.FOLLOWER}"


class Stand:
    """The send handler with a WeChat account on the served API."""

    def __init__(self, api: side.Api, url: str, client: httpx.AsyncClient, **account: Any) -> None:
        self.api, self.clock = api, FixedClock()
        settings = WeChatSettings.model_validate(side.options(**{"base_url": url, **account}))
        sender = WeChatSender(settings, client, self.clock)
        self.handler = SendHandler(client, "http://127.0.0.1:1", self.clock, {"wechat": sender})

    async def send(self, conversation: str = CONVERSATION, **changes: Any) -> Receipt:
        """The receipt of one declared send."""
        return await self._run(self.handler.run, conversation, **changes)

    async def resolve(self) -> Receipt:
        """What a successor makes of a send whose worker ended."""
        return await self._run(self.handler.resolve, CONVERSATION)

    async def _run(self, run: Callable[[Effect], Any], conversation: str, **changes: Any) -> Receipt:
        values = {"message_id": "m-1", "session_id": "s-1", "kind": "reply", "template_id": "t.a", "language": "zh",
                  "text": "您的订单 OD100001 已退款", **changes}  # fmt: skip
        request = OutboundMessage(**values).model_dump(mode="json")
        now = self.clock.now
        effect = Effect(conversation, "m-1:1", "send", "m-1", now, now + 10_000, 2_000, request)
        (fact,) = await run(effect)
        assert isinstance(fact.value, Receipt)
        return fact.value


def played(body: Callable[[Stand], Coroutine[Any, Any, None]], **account: Any) -> None:
    """Run a test against the served API."""

    async def main() -> None:
        async with httpx.AsyncClient() as client:
            await body(Stand(api, url, client, **account))

    api = side.Api()
    with side.served(api) as url:
        asyncio.run(main())


def test_a_reply_is_a_customer_service_message() -> None:
    """The follower gets the text with its choices, as UTF-8 and not as escapes; the receipt says `sent`."""

    async def body(stand: Stand) -> None:
        choices = ({"number": 1, "label": "继续"}, {"number": 2, "label": "转人工"})
        receipt = await stand.send(text="还要继续吗?\n1. 继续", choices=choices)
        assert ("sent", "", None) == (receipt.state, receipt.reason, receipt.vendor_id)
        assert {"touser": side.FOLLOWER, "msgtype": "text",
                "text": {"content": "还要继续吗?\n1. 继续\n2. 转人工"}} == stand.api.sent[0]  # fmt: skip
        assert "转人工".encode() in stand.api.raw[0]

    played(body)


def test_a_configured_template_is_a_template_message() -> None:
    """A template of the account carries the parameters, and its receipt the name that WeChat's report will use."""

    async def body(stand: Stand) -> None:
        receipt = await stand.send(template_id="refund.done", params={"order_id": "OD100001"})
        assert ("sent", "wechat:200228333") == (receipt.state, receipt.vendor_id)
        assert {"order_id": {"value": "OD100001"}} == stand.api.sent[0]["data"]
        assert "tpl-7" == stand.api.sent[0]["template_id"]

    played(body, templates={"refund.done": "tpl-7"})


@pytest.mark.parametrize("code", [45015, 45047, 40003, 43004, 48001])
def test_h13_an_error_inside_a_200_is_a_failure(code: int) -> None:
    """A closed window, too many messages and the like: failed with the reason, asked once, not again (case H13)."""

    async def body(stand: Stand) -> None:
        stand.api.codes = [code]
        receipt = await stand.send()
        assert ("failed", False) == (receipt.state, receipt.retryable)
        assert receipt.reason.startswith(f"errcode {code}: error {code}")
        assert [] == stand.api.codes
        assert [] == stand.api.sent

    played(body)


@pytest.mark.parametrize("code", [40001, 40014, 42001])
def test_a_token_that_ended_is_renewed_once(code: int) -> None:
    """A refused token is asked for anew and the message sent; refused again, the send fails with WeChat's words."""

    async def body(stand: Stand) -> None:
        stand.api.codes = [code]
        assert "sent" == (await stand.send()).state
        assert 2 == stand.api.tokens
        stand.api.codes = [code, code]
        assert f"errcode {code}" == (await stand.send()).reason[:13]
        assert 1 == len(stand.api.sent)

    played(body)


def test_many_sends_share_a_token() -> None:
    """Sends at the same time ask for one token; it is asked for again shortly before its end."""

    async def body(stand: Stand) -> None:
        await asyncio.gather(*(stand.send() for _ in range(20)))
        assert (1, 20) == (stand.api.tokens, len(stand.api.sent))
        stand.api.valid, stand.clock.now = "", side.NOW + 6_899_000
        assert "sent" == (await stand.send()).state
        assert 2 == stand.api.tokens

    played(body)


def test_a_busy_service_is_asked_again() -> None:
    """WeChat says that it is busy: nothing was sent, so it is tried again at once, and then later by delivery."""

    async def body(stand: Stand) -> None:
        stand.api.codes = [-1]
        assert "sent" == (await stand.send()).state
        stand.api.codes = [-1, -1, -1]
        receipt = await stand.send()
        assert ("failed", True) == (receipt.state, receipt.retryable)
        assert 1 == len(stand.api.sent)

    played(body)


@pytest.mark.parametrize("answer", [
    Response("bad gateway", 502), Response("{", 200), JSONResponse([1]), JSONResponse({"errcode": "0"}),
    JSONResponse({}), Response(status_code=204),
])  # fmt: skip
def test_an_answer_that_says_nothing_is_no_success(answer: Response) -> None:
    """Without WeChat's own word nothing is known: no success, and no second message (promise 6)."""

    async def body(stand: Stand) -> None:
        stand.api.codes = [answer, 0]
        receipt = await stand.send()
        assert ("failed", False, "outcome unknown") == (receipt.state, receipt.retryable, receipt.reason[:15])
        assert [] == stand.api.sent

    played(body)


@pytest.mark.parametrize("answer", [
    Response("busy", 503), JSONResponse({"errcode": 40125, "errmsg": "invalid appsecret"}),
    JSONResponse({"access_token": 5, "expires_in": 7200}), JSONResponse({"access_token": "x"}),
])  # fmt: skip
def test_without_a_token_nothing_was_sent(answer: Response) -> None:
    """No token: failed with the reason, and tried later only when the fault may pass."""

    async def body(stand: Stand) -> None:
        stand.api.token_answers = [answer] * 3
        receipt = await stand.send()
        assert ("failed", "no access token") == (receipt.state, receipt.reason[:15])
        assert (answer.status_code == 503) == receipt.retryable

    played(body)


def test_what_has_no_known_outcome_is_not_sent_twice() -> None:
    """A successor that finds a send under way fails it for a person: WeChat would show a repeat twice (promise 6)."""

    async def body(stand: Stand) -> None:
        receipt = await stand.resolve()
        assert ("failed", False) == (receipt.state, receipt.retryable)
        assert "a repeat twice" in receipt.reason
        assert [] == stand.api.sent

    played(body)


def test_a_service_that_is_not_there_is_tried_later() -> None:
    """Nothing listens: the request never left, so delivery may try again."""

    async def body(stand: Stand) -> None:
        receipt = await stand.send()
        assert ("failed", True) == (receipt.state, receipt.retryable)

    played(body, base_url="http://127.0.0.1:1")


def test_a_shop_without_an_account_says_what_to_set() -> None:
    """A message for a shop that has no account fails and names the setting."""

    async def body(stand: Stand) -> None:
        assert "INTERLOCK_CHANNELS" in (await stand.send("other/wechat/u-1")).reason
        assert "INTERLOCK_CHANNELS" in (await stand.send()).reason

    played(body, app_secret=None)


def test_the_secret_is_in_no_address() -> None:
    """The account's secret travels in the body, and is not shown when the settings are printed."""
    shown = repr(WeChatSettings.model_validate(side.options(aes=True)))

    assert json.dumps(side.SECRET) not in shown.replace("'", '"')
    assert side.TOKEN not in shown
    assert side.AES_KEY not in shown
