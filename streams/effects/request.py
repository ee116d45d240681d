"""From a declared call to its HTTP request; the only place where sealed arguments are opened (promise 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from agents.tools.spec import ToolSpec
from schemas.events import Seal
from schemas.tools import ToolCall, ToolError
from streams.effects.answers import Answer

Opener = Callable[[Seal, str], bytes | None]
MASK = "*"
MAX_ANSWER = 256 * 1024


class NotSentError(Exception):
    """The call can't be made at all; nothing was sent."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request, the same at each attempt: the idempotency key is in its headers (H07)."""

    method: str
    url: str
    params: Mapping[str, str]
    json: Mapping[str, Any] | None
    headers: Mapping[str, str]


def build(spec: ToolSpec, call: ToolCall, base_url: str, conversation: str, opener: Opener,
          token: str | None = None) -> HttpCall:  # fmt: skip
    """The request. Raises NotSentError when a sealed argument can't be opened or a token is not there."""
    args = clear_arguments(call, conversation, opener)
    return request_of(spec, args, base_url, token=token, key=call.idempotency_key)


def request_of(spec: ToolSpec, args: Mapping[str, Any], base_url: str, *, token: str | None = None,
               key: str = "") -> HttpCall:  # fmt: skip
    """The request for clear arguments. Raises NotSentError when a token is not there."""
    headers = {}
    if spec.idempotency == "key":
        headers["Idempotency-Key"] = key
    if spec.auth.kind == "bearer":
        if not token:
            message = f"setting {spec.auth.token_setting} holds no token for {spec.name}"
            raise NotSentError(ToolError(code="no_credentials", message=message))
        headers["Authorization"] = f"Bearer {token}"
    # quoted whole: an argument with a slash must not lead to another path
    path = spec.path.format(**{name: quote(str(args.get(name, "")), safe="") for name in spec.path_fields})
    body = {field: args[name] for field, name in spec.body.items() if name in args}
    return HttpCall(
        method=spec.method, url=base_url.rstrip("/") + path,
        params={field: str(args[name]) for field, name in spec.query.items() if name in args},
        json=body if spec.method == "POST" else None, headers=headers,
    )  # fmt: skip


async def exchange(client: httpx.AsyncClient, http: HttpCall) -> Answer:
    """Send it and read the answer, up to MAX_ANSWER; the caller bounds the time. Raises what `faults.BROKEN` names."""
    body = b""
    async with client.stream(http.method, http.url, params=dict(http.params) or None, json=http.json,
                             headers=dict(http.headers), timeout=None) as response:  # fmt: skip
        async for chunk in response.aiter_bytes():
            body += chunk
            # an empty body fails the output schema; half a body might pass it
            if len(body) > MAX_ANSWER:
                return Answer(response.status_code, b"")
        return Answer(response.status_code, body, response.headers.get("Idempotency-Replayed") == "true")


def _is_of(clear: str, shown: str) -> bool:
    """Whether the masked value is this one: a seal of an earlier message must not replace what was confirmed since."""
    return len(clear) == len(shown) and all(mask in (char, MASK) for char, mask in zip(clear, shown, strict=True))


def clear_arguments(call: ToolCall, conversation: str, opener: Opener) -> dict[str, Any]:
    """The arguments with the sealed ones opened. Raises NotSentError when a masked one has no clear value."""
    args = dict(call.args)
    for name in call.args_sensitive:
        sealed = call.seals.get(name, call.seal)
        opened = None if sealed is None or name not in args else opener(sealed, conversation)
        clear = {} if opened is None else orjson.loads(opened)
        if name in clear and _is_of(clear[name], str(args[name])):
            args[name] = clear[name]
    for name in call.args_sensitive:
        # a masked value would be taken for the real one: an address, a phone number
        if MASK in str(args.get(name, "")):
            message = f"{name} is masked and its clear value can't be opened: its key is gone"
            raise NotSentError(ToolError(code="seal_lost", message=message))
    return args
