"""The settings of WeChat: one official account a shop."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from schemas.base import KeyPart

_AES_KEY = r"^[A-Za-z0-9+/]{43}$"  # 32 bytes in base64, its padding left out
Secret = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class Account(BaseModel):
    """An official account, as its console shows it. With `aes_key`, only encrypted pushes are taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    app_id: Secret
    token: Secret = Field(repr=False, description="the token of the server settings: it signs the pushes")
    app_secret: Secret | None = Field(default=None, repr=False, description="needed to send")
    aes_key: str | None = Field(default=None, pattern=_AES_KEY, repr=False)
    base_url: str = Field(default="https://api.weixin.qq.com", pattern=r"^https?://[^\s/]+/?$")
    templates: dict[str, str] = Field(
        default={}, description="our template to the account's: sent as a template message, which has receipts"
    )


class WeChatSettings(BaseModel):
    """`INTERLOCK_CHANNELS={"wechat": {...}}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    accounts: dict[KeyPart, Account] = {}
    replay_seconds: int = Field(default=300, ge=1, description="a push is signed at most so long ago, or ahead")
