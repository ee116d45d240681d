"""Customer-service and template messages out: an error inside a 200 is an error (H13), and nothing is sent twice."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from streams.channels.port import Outcome
from streams.channels.wechat.account import Account, WeChatSettings
from streams.channels.wechat.messages import vendor_id
from streams.effects.faults import BROKEN
from streams.runtime.ports import Clock, Effect

EXPIRED = frozenset({40001, 40014, 42001})  # the token is wrong, forged or over: get another one
PASSING = frozenset({-1, 45011})  # WeChat is busy; too many calls this minute. Nothing was sent
EARLY_MS = 300_000  # a token is given up so long before its end: WeChat's clock and ours differ
_JSON = {"content-type": "application/json; charset=utf-8"}


class TokenError(Exception):
    """There is no access token, so nothing can have been sent; `passing` as in Outcome."""

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


class Token:
    """One account's access token. The stable one: several workers that ask get the same, and end none of another."""

    def __init__(self, account: Account, client: httpx.AsyncClient, clock: Clock) -> None:
        self._account, self._client, self._clock = account, client, clock
        self._lock = asyncio.Lock()
        self._value, self._until = "", 0

    async def get(self, seconds: float, refused: str = "") -> str:
        """The token, asked for again when it is over or is the one that was refused. Raises TokenError."""
        async with self._lock:
            if not self._value or self._value == refused or self._clock.now_ms() >= self._until:
                await self._fetch(seconds, force=False)
                if self._value == refused:
                    await self._fetch(seconds, force=True)
            return self._value

    async def _fetch(self, seconds: float, *, force: bool) -> None:
        body = {"grant_type": "client_credential", "appid": self._account.app_id,
                "secret": self._account.app_secret, "force_refresh": force}  # fmt: skip
        url = f"{self._account.base_url.rstrip('/')}/cgi-bin/stable_token"
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.post(url, content=orjson.dumps(body), headers=_JSON, timeout=None)
        except (TimeoutError, *BROKEN) as error:
            message = f"no access token: {type(error).__name__}"
            raise TokenError(message, passing=True) from None
        told = _object(answer)
        value, lasts = told.get("access_token"), told.get("expires_in")
        if not isinstance(value, str) or not value or type(lasts) is not int:
            message = f"no access token: {_words(told, answer.status_code)}"
            raise TokenError(message, passing=answer.status_code >= 500 or told.get("errcode") in PASSING)
        self._value, self._until = value, self._clock.now_ms() + max(lasts * 1000 - EARLY_MS, 0)


class WeChatSender:
    """See Sender. WeChat shows a repeat twice, so what has no known outcome is not repeated."""

    repeatable = False

    def __init__(self, settings: WeChatSettings, client: httpx.AsyncClient, clock: Clock) -> None:
        self._accounts = settings.accounts
        self._client = client
        self._tokens = {shop: Token(account, client, clock) for shop, account in self._accounts.items()}

    async def post(self, effect: Effect) -> Outcome:
        """See Sender."""
        shop, _, follower = effect.conversation.split("/")
        account = self._accounts.get(shop)
        if account is None or account.app_secret is None:
            return Outcome(f"no WeChat account of {shop} with an app_secret: set it in INTERLOCK_CHANNELS")
        path, payload = _message(account, follower, effect.request)
        refused = ""
        while True:
            try:
                token = await self._tokens[shop].get(effect.timeout_ms / 2000, refused)
            except TokenError as error:
                return Outcome(str(error), passing=error.passing)
            answer = await self._client.post(f"{account.base_url.rstrip('/')}{path}", params={"access_token": token},
                                             content=payload, headers=_JSON, timeout=None)  # fmt: skip
            if refused or _object(answer).get("errcode") not in EXPIRED:
                return _judge(answer)
            refused = token


def _message(account: Account, follower: str, request: Mapping[str, Any]) -> tuple[str, bytes]:
    """Where it is posted, and what. As UTF-8: WeChat shows an escaped character as its escape."""
    template = account.templates.get(request["template_id"])
    if template is not None:
        data = {name: {"value": str(value)} for name, value in request["params"].items()}
        body: dict[str, Any] = {"touser": follower, "template_id": template, "data": data,
                                "client_msg_id": _digest(request["message_id"])}  # fmt: skip
        return "/cgi-bin/message/template/send", orjson.dumps(body)
    body = {"touser": follower, "msgtype": "text", "text": {"content": _shown(request)}}
    return "/cgi-bin/message/custom/send", orjson.dumps(body)


def _digest(message_id: str) -> str:
    """WeChat sends a template message with the same id once in ten minutes; it takes 32 characters."""
    return hashlib.sha256(message_id.encode()).hexdigest()[:32]


def _shown(request: Mapping[str, Any]) -> str:
    """The text and its choices; a text that lists them itself is not given them again."""
    lines = [f"{choice['number']}. {choice['label']}" for choice in request["choices"]]
    return "\n".join([request["text"], *(line for line in lines if line not in request["text"])])


def _judge(answer: httpx.Response) -> Outcome:
    told = _object(answer)
    code = told.get("errcode")
    if answer.status_code == 200 and code == 0:
        number = told.get("msgid")
        return Outcome(vendor_id=vendor_id(str(number)) if type(number) is int else None)
    if type(code) is int and code != 0:
        return Outcome(_words(told, answer.status_code), passing=code in PASSING)
    # no word of WeChat's own: after a 5xx nobody knows, unless the service says that it did nothing
    return Outcome(f"outcome unknown: answered {answer.status_code}", passing=answer.status_code in (429, 503))


def _words(told: Mapping[str, Any], status: int) -> str:
    if "errcode" in told:
        return f"errcode {told['errcode']}: {str(told.get('errmsg', ''))[:300]}"
    return f"answered {status}"


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
