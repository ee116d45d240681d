"""What every contract shares: the strict frozen model, and the value types that all topics use.

A writer builds the model (unknown fields are refused); a reader goes through `schemas.codec`,
which keeps the fields of a newer minor version aside.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

MAX_TEXT_CHARS = 20_000
MAX_ID_CHARS = 256
MAX_CONVERSATION_CHARS = 194  # three key parts: an id that begins with a conversation still fits into Id
MAX_MILLIS = 253_402_300_799_999  # the last millisecond of year 9999
MIN_MILLIS = 946_684_800_000  # year 2000: a smaller number is seconds, or an unset clock (case D15)


class Model(BaseModel):
    """A value on a topic: frozen, strict (no coercion of "50" or true to a number), closed."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)


def _part(value: str) -> str:
    if "/" in value or value.startswith("~") or value != value.strip() or not value.isprintable():
        message = "must have no '/', no leading '~', no outer space, no control and no invisible character"
        raise ValueError(message)
    return value


Id = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS, pattern=r"^[^\x00-\x1f\x7f]+$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9_.:-]*$")]
KeyPart = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_part)]
ConversationId = Annotated[
    str, StringConstraints(max_length=MAX_CONVERSATION_CHARS, pattern=r"^[^/~][^/]*/[^/]+/[^/]+$")
]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]
Millis = Annotated[int, Field(ge=MIN_MILLIS, le=MAX_MILLIS, description="UTC, milliseconds since 1970")]
Duration = Annotated[int, Field(ge=0, le=366 * 86_400_000, description="milliseconds")]
Fen = Annotated[int, Field(ge=0, le=100_000_000_00, description="money in integer fen (1/100 CNY)")]
Share = Annotated[float, Field(ge=0, le=1)]
Json = Any  # a JSON value: None, bool, int, float, str, list, dict
Language = Annotated[str, Field(pattern="^(zh|en|mixed)$")]

_DECIMAL = re.compile(r"\d{1,9}(\.\d{1,2})?")


def conversation_id(shop: str, channel: str, sender: str) -> str:
    """The one key of everything about a conversation (promise 1): `shop/channel/sender`."""
    return f"{shop}/{channel}/{sender}"


def readable(text: str) -> str:
    """The text without NUL, which no store takes (case B17); all else stays, zero-width characters too."""
    return text.replace("\0", "")


def fen(text: str) -> int:
    """Exact decimal yuan text ("50", "50.5", "50.00") as integer fen.

    Raises ValueError for anything else ("1e3", "inf", "1_000", a third decimal): money is exact.
    """
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text) or not text.isascii():
        message = f"{text!r} is not an exact amount in yuan, such as 50 or 50.00"
        raise ValueError(message)
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int((part + "00")[:2])


def yuan(amount: int) -> str:
    """Integer fen as decimal yuan text: 5000 is "50.00"."""
    return f"{amount // 100}.{amount % 100:02d}"
