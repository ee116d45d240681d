"""WeChat's own side, as its manual describes it: pushes signed and encrypted by another implementation, and its API."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from wechatpy.crypto import WeChatCrypto
from wechatpy.utils import WeChatSigner

from streams.channels.port import Push
from streams.serving import bind

SHOP, APP_ID, TOKEN, SECRET = "demo", "wx0123456789abcdef", "a-token-of-the-test", "a-secret-of-the-test"
AES_KEY = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
FOLLOWER = "o6_bmjrPTlm6_2sgVt7hMZOPfL2M"
NOW = 1_790_000_000_000
SECOND = NOW // 1000


def options(*, aes: bool = False, **account: Any) -> dict[str, Any]:
    """The channel's settings."""
    key = {"aes_key": AES_KEY} if aes else {}
    return {"accounts": {SHOP: {"app_id": APP_ID, "token": TOKEN, "app_secret": SECRET, **key, **account}}}


def signature(*parts: str) -> str:
    """By wechatpy."""
    signer = WeChatSigner()
    signer.add_data(*parts)
    return str(signer.signature)


def fields(kind: str, **more: str | int) -> dict[str, str | int]:
    """The fields of a message."""
    return {"ToUserName": "gh_7f083739789a", "FromUserName": FOLLOWER, "CreateTime": SECOND, "MsgType": kind, **more}


def xml(values: dict[str, str | int]) -> bytes:
    """The XML that WeChat makes of them: numbers bare, texts as CDATA."""
    lines = [f"<{name}>{value if isinstance(value, int) else _cdata(value)}</{name}>" for name, value in values.items()]
    return f"<xml>{''.join(lines)}</xml>".encode()


def _cdata(value: str) -> str:
    return escape(value) if "]]>" in value else f"<![CDATA[{value}]]>"


def query(second: int = SECOND, nonce: str = "1320562132", token: str = TOKEN, **more: str) -> dict[str, str]:
    """The signed query of a push."""
    stamp = str(second)
    return {"signature": signature(token, stamp, nonce), "timestamp": stamp, "nonce": nonce, **more}


def push(values: dict[str, str | int] | bytes, second: int = SECOND, nonce: str = "1320562132") -> Push:
    """A push in plain mode."""
    body = values if isinstance(values, bytes) else xml(values)
    return Push(NOW, body, query(second, nonce), {"shop": SHOP})


def encrypted(values: dict[str, str | int] | bytes, app_id: str = APP_ID, key: str = AES_KEY) -> Push:
    """A push in AES mode, encrypted and signed by wechatpy."""
    body = values if isinstance(values, bytes) else xml(values)
    stamp, nonce = str(SECOND), "1320562132"
    sealed = WeChatCrypto(TOKEN, key, app_id).encrypt_message(body, nonce, stamp)
    claimed = sealed.partition("<MsgSignature><![CDATA[")[2].partition("]]")[0]
    return Push(NOW, sealed.encode(), query(msg_signature=claimed), {"shop": SHOP})


class Api:
    """WeChat's API: gives tokens, takes messages, answers with the error codes that a test sets."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.tokens = 0
        self.valid = ""
        self.codes: list[int | Response] = []  # for the next sends; then 0
        self.token_answers: list[Response] = []

    def app(self) -> Starlette:
        """The endpoints."""
        return Starlette(routes=[
            Route("/cgi-bin/stable_token", self._token, methods=["POST"]),
            Route("/cgi-bin/message/custom/send", self._send, methods=["POST"]),
            Route("/cgi-bin/message/template/send", self._send, methods=["POST"]),
        ])  # fmt: skip

    async def _token(self, request: Request) -> Response:
        asked = await request.json()
        if self.token_answers:
            return self.token_answers.pop(0)
        if (asked["appid"], asked["secret"]) != (APP_ID, SECRET):
            return JSONResponse({"errcode": 40125, "errmsg": "invalid appsecret"})
        if asked["force_refresh"] or not self.valid:
            self.tokens += 1
            self.valid = f"token-{self.tokens}"
        return JSONResponse({"access_token": self.valid, "expires_in": 7200})

    async def _send(self, request: Request) -> Response:
        if request.query_params.get("access_token") != self.valid:
            return JSONResponse({"errcode": 40001, "errmsg": "invalid credential, access_token is invalid"})
        code = self.codes.pop(0) if self.codes else 0
        if isinstance(code, Response):
            return code
        if code:
            return JSONResponse({"errcode": code, "errmsg": f"error {code} hint: [abc]"})
        self.raw.append(await request.body())
        self.sent.append(await request.json())
        number = {"msgid": 200228332 + len(self.sent)} if "template" in request.url.path else {}
        return JSONResponse({"errcode": 0, "errmsg": "ok", **number})


@contextlib.contextmanager
def served(api: Api) -> Iterator[str]:
    """The API on a real socket; its base URL."""
    listener: socket.socket = bind("127.0.0.1", 0, "")
    server = uvicorn.Server(uvicorn.Config(api.app(), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(5)
