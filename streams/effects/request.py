"""From a declared call to its HTTP request; the only place where sealed arguments are opened (promise 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from agents.tools.spec import ToolSpec
from schemas.events import Seal
from schemas.tools import ToolCall, ToolError

Opener = Callable[[Seal, str], bytes | None]
MASK = "*"


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
    headers = {}
    if spec.idempotency == "key":
        headers["Idempotency-Key"] = call.idempotency_key
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


def _is_of(clear: str, shown: str) -> bool:
    """Whether the masked value is this one: a seal of an earlier message must not replace what was confirmed since."""
    return len(clear) == len(shown) and all(mask in (char, MASK) for char, mask in zip(clear, shown, strict=True))


def clear_arguments(call: ToolCall, conversation: str, opener: Opener) -> dict[str, Any]:
    """The arguments with the sealed ones opened. Raises NotSentError when a masked one has no clear value."""
    args = dict(call.args)
    if call.args_sensitive and call.seal is not None:
        opened = opener(call.seal, conversation)
        clear = {} if opened is None else orjson.loads(opened)
        args.update({name: clear[name] for name in call.args_sensitive
                     if name in clear and name in args and _is_of(clear[name], str(args[name]))})  # fmt: skip
    for name in call.args_sensitive:
        # a masked value would be taken for the real one: an address, a phone number
        if MASK in str(args.get(name, "")):
            message = f"{name} is masked and its clear value can't be opened: its key is gone"
            raise NotSentError(ToolError(code="seal_lost", message=message))
    return args
