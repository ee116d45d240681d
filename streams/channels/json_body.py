"""Bodies of the channels that push JSON: one object or a list, ids that came as integers as exact text (B05)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from schemas import codec
from schemas.errors import BadRecordError
from schemas.events import RawEvent
from streams.channels.port import Reply
from streams.gateway.reading import RefusedError


def items(body: bytes, most: int) -> list[tuple[Any, str]]:
    """The items of a body, each with its place (`""` for a single one). Raises RefusedError."""
    try:
        data = codec.exact_ids(codec.parse(body, long_integers=True))
    except BadRecordError as error:
        raise RefusedError(400, error.code, error.reason, error.field or "body") from None
    found = [(one, f"[{index}]") for index, one in enumerate(data)] if isinstance(data, list) else [(data, "")]
    if not 1 <= len(found) <= most:
        raise RefusedError(422, "wrong_value", f"a list has 1 to {most} items, this one {len(found)}", "body")
    for one, where in found:
        if not isinstance(one, dict):
            raise RefusedError(422, "wrong_type", "expected an object", where or "body")
    return found


def accepted(events: Sequence[RawEvent]) -> Reply:
    """202 with the producer's ids that were taken."""
    return Reply(orjson.dumps({"accepted": [event.id for event in events]}), 202, "application/json")
