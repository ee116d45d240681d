"""WeChat official accounts: pushes in, in plain and in AES mode; customer-service messages out.

Its crypto stands on `cryptography` and `defusedxml`. wechatpy, tried first, accepts a DOCTYPE, does not check the
padding and fails on broken input with five kinds of errors; the tests use it as the other end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from streams.channels.port import Channel, Door
from streams.channels.wechat.account import WeChatSettings
from streams.channels.wechat.door import Doorkeeper
from streams.channels.wechat.messages import NAME
from streams.channels.wechat.send import WeChatSender
from streams.runtime.ports import Clock

MAX_BYTES = 65_536  # a customer's text has at most 2 KiB; encrypted and with its fields, far below this


def channel(options: Mapping[str, Any]) -> Channel:
    """The adapter; `options` are `{"accounts": {shop: {...}}}`. Raises pydantic's ValidationError."""
    settings = WeChatSettings.model_validate(options)
    keeper = Doorkeeper(settings)

    def sender(client: httpx.AsyncClient, clock: Clock) -> WeChatSender:
        return WeChatSender(settings, client, clock)

    doors = (Door("GET", "/{shop}", keeper.handshake, signed=True),
             Door("POST", "/{shop}", keeper.push, MAX_BYTES, signed=True))  # fmt: skip
    return Channel(NAME, doors, sender, blind=True)
