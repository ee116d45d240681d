"""Opening what is sealed: one event, one record, or the newest value of a field; the register hears of it first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from memory.sealing import KeyStore
from schemas.base import MAX_TEXT_CHARS
from schemas.errors import InterlockError
from schemas.system import SystemEvent
from streams.privacy.records import Opened, event_record, opened, records_of, state_of
from streams.privacy.rights import may_open
from streams.reader import LogSource
from streams.runtime.ports import Outgoing

MAX_REASON = 500
Publish = Callable[[Sequence[Outgoing]], object]
"""Returns once the broker has the records; raises otherwise, and then nothing is shown."""


class NothingSealedError(InterlockError):
    """There is no such seal, or its key was destroyed."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be opened: an event or message id, a record `topic:partition:offset`, fields; empty: everything."""

    conversation: str
    by: str
    reason: str
    event: str = ""
    at: str = ""
    fields: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """In words for the register."""
        return f"record {self.at}" if self.at else f"event {self.event}" if self.event else "conversation"


def unseal(
    source: LogSource, keys: KeyStore, roles: Mapping[str, Sequence[str]], request: Request, publish: Publish,
    event_id: str, now_ms: int, partitions: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """What was sealed, oldest first. Raises NotAllowedError, NotFoundError, NothingSealedError, ValueError."""
    if not request.reason.strip() or len(request.reason) > min(MAX_REASON, MAX_TEXT_CHARS):
        message = f"a reason is needed, of at most {MAX_REASON} characters"
        raise ValueError(message)
    state = state_of(source, request.conversation)
    right = may_open(roles, request.by, request.fields, state)
    found = [one for one in opened(records_of(source, [request.conversation]), keys) if _wanted(one, request)]
    shown = _fields(found, request.fields) if request.fields else [_shown(one) for one in found]
    if not shown:
        message = f"{request.conversation}: nothing of {request.what} is sealed, or its key was destroyed"
        raise NothingSealedError(message)
    event = SystemEvent(
        event_id=event_id, kind="unsealed", subject=request.conversation, by=request.by, at=now_ms,
        data={"reason": request.reason, "right": right, "what": request.what, "fields": list(request.fields),
              "count": len(shown)},
    )  # fmt: skip
    publish([event_record(event, request.conversation, partitions)])  # what is not in the register is not shown
    return shown


def _wanted(one: Opened, request: Request) -> bool:
    if request.at:
        return one.where == request.at
    if one.record.topic in ("state.diffs", "state.updates"):
        return False  # copies of what stands on the topics themselves
    return not request.event or request.event in _ids(one.record.value)


def _ids(value: bytes | None) -> set[str]:
    parsed = orjson.loads(value or b"{}")
    body, ref = parsed.get("body") or {}, parsed.get("ref") or {}
    names = (parsed, body, ref)
    return {
        str(part[name]) for part in names for name in ("id", "event_id", "message_id", "decision_id") if name in part
    }


def _shown(one: Opened) -> dict[str, Any]:
    return {"where": one.where, "time": one.record.time, "seal": "/".join(one.path), "clear": one.clear}


def _fields(found: Sequence[Opened], fields: Sequence[str]) -> list[dict[str, Any]]:
    """The newest clear value of each field."""
    newest: dict[str, dict[str, Any]] = {}
    for one in sorted(found, key=lambda one: (one.record.time, one.record.offset)):
        for field in fields:
            if isinstance(one.clear, dict) and field in one.clear:
                newest[field] = {"where": one.where, "time": one.record.time, "field": field, "clear": one.clear[field]}
    return list(newest.values())
