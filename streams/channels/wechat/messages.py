"""The kinds of WeChat's messages and events, as events of ours. What has no kind here is kept as unsupported (B07)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from schemas.base import conversation_id
from schemas.delivery import Receipt
from schemas.events import RawEvent
from streams.channels.times import millis_of
from streams.gateway.reading import RefusedError, read_model

NAME = "wechat"
Fields = Mapping[str, str]

_HTTP = re.compile(r"https?://[^\x00-\x20\x7f]{1,240}")
_MAX_NAME = 60


def vendor_id(number: str) -> str:
    """What a template message is called by WeChat, in our receipts."""
    return f"{NAME}:{number}"


def read_fields(fields: Fields, shop: str) -> tuple[tuple[RawEvent, ...], tuple[tuple[str, Receipt], ...]]:
    """The event or the receipt that a push is. Raises RefusedError, which names the field."""
    kind, sender, at = _needed(fields, "MsgType").lower(), _needed(fields, "FromUserName"), _time(fields)
    event = fields.get("Event", "")
    if kind == "event" and event.upper() == "TEMPLATESENDJOBFINISH":
        return (), ((conversation_id(shop, NAME, sender), _receipt(fields, at)),)
    reader = _MESSAGES.get(kind)
    number = fields.get("MsgId") or (f"{event.lower() or kind}-{at}" if kind == "event" else _needed(fields, "MsgId"))
    if reader is None:
        body: dict[str, Any] = {"kind": "unsupported", "type": _name(kind, event)}
    else:
        body = {"kind": "message", "message_id": f"wx-{number}", **reader(fields)}
    data = {"id": f"wx-{number}", "shop": shop, "channel": NAME, "sender": sender, "occurred_at": at, "body": body}
    return (read_model(RawEvent, data),), ()


def _receipt(fields: Fields, at: int) -> Receipt:
    """What became of a template message: `success`, or `failed:` and why."""
    number, status = _needed(fields, "MsgID"), _needed(fields, "Status").strip()
    sent = status.lower() == "success"
    return read_model(Receipt, {
        "receipt_id": f"wx-{number}-{'delivered' if sent else 'failed'}", "message_id": vendor_id(number),
        "state": "delivered" if sent else "failed", "occurred_at": at,
        "reason": "" if sent else status[:500],
    })  # fmt: skip


def _text(fields: Fields) -> dict[str, Any]:
    return {"text": _needed(fields, "Content", empty=True)}


def _voice(fields: Fields) -> dict[str, Any]:
    # no transcript is there while WeChat's recognition is off or heard nothing: the customer is asked again (B09)
    return _with("voice", _ref(fields, "MediaId"), fields.get("Recognition", ""))


def _image(fields: Fields) -> dict[str, Any]:
    return _with("image", _ref(fields, "MediaId", "PicUrl"))


def _video(fields: Fields) -> dict[str, Any]:
    return _with("video", _ref(fields, "MediaId"))


def _link(fields: Fields) -> dict[str, Any]:
    lines = (fields.get("Title", ""), fields.get("Description", ""), fields.get("Url", ""))
    return _with("link", _ref(fields, "Url"), "\n".join(filter(None, lines)))


def _location(fields: Fields) -> dict[str, Any]:
    place = f"geo:{_needed(fields, 'Location_X')},{_needed(fields, 'Location_Y')}"
    return _with("location", _short(place), fields.get("Label", ""))


def _mini_program(fields: Fields) -> dict[str, Any]:
    page = f"{fields.get('AppId', '')}/{fields.get('PagePath', '')}"
    lines = (fields.get("Title", ""), fields.get("PagePath", ""))
    return _with("link", _short(f"miniprogram:{page}"), "\n".join(filter(None, lines)))


_MESSAGES: Mapping[str, Callable[[Fields], dict[str, Any]]] = {
    "text": _text, "voice": _voice, "image": _image, "video": _video, "shortvideo": _video, "link": _link,
    "location": _location, "miniprogrampage": _mini_program,
}  # fmt: skip


def _with(kind: str, ref: str, text: str = "") -> dict[str, Any]:
    return {"text": "", "attachments": [{"kind": kind, "ref": ref, "text": text}]}


def _ref(fields: Fields, *names: str) -> str:
    """The media id, or the address where it is an ordinary one; else something that names it and leads nowhere."""
    for name in names:
        value = fields.get(name, "")
        if value and (not name.endswith("Url") or _HTTP.fullmatch(value)):
            return _short(value)
    return _short("\n".join(fields.get(name, "") for name in (*names, "MsgId")))


def _short(text: str) -> str:
    if 0 < len(text) <= 256 and text.isprintable():
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _name(kind: str, event: str) -> str:
    text = f"event.{event}" if kind == "event" else kind
    return re.sub(r"[^a-z0-9_.:-]", "_", text.lower())[:_MAX_NAME] or "unknown"


def _needed(fields: Fields, name: str, *, empty: bool = False) -> str:
    found = fields.get(name)
    if found is None or not (found or empty):
        raise RefusedError(422, "missing_field", "missing", name)
    return found


def _time(fields: Fields) -> int:
    """CreateTime counts seconds; another unit is recognized by its size, what fits none is refused (D15)."""
    text = _needed(fields, "CreateTime")
    found = millis_of(int(text)) if text.isdecimal() and len(text) <= 20 else None
    if found is None:
        raise RefusedError(422, "wrong_time", "expected seconds since 1970", "CreateTime")
    return found
