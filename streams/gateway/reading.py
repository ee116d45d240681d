"""Request bodies to checked models. What is refused is answered with code, words and the field's name."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from schemas import codec
from schemas.base import KeyPart, Model, conversation_id
from schemas.errors import BadRecordError
from schemas.events import RawEvent
from schemas.people import HumanDecision

MAX_BODY = 4 * 1024 * 1024
MAX_BATCH = 500
# no JSON at all is 400; JSON that is no event is 422
_UNREADABLE = frozenset({"empty", "too_deep", "not_utf8", "not_json", "repeated_key", "number_range"})
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}

M = TypeVar("M", bound=Model)


class RefusedError(Exception):
    """An answer other than 202: status, code, words and, where there is one, the field."""

    def __init__(self, status: int, code: str, message: str, field: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field


class _Parts(Model):
    shop: KeyPart
    channel: KeyPart
    sender: KeyPart


def answer(error: RefusedError) -> Response:
    """`{"error": {"code", "message", "field"?}}`."""
    return JSONResponse({"error": words(error)}, error.status, _HEADERS.get(error.status))


def words(error: RefusedError) -> dict[str, str]:
    """The error as JSON: code, message and, where there is one, field."""
    return {"code": error.code, "message": error.message, **({"field": error.field} if error.field else {})}


async def read_body(request: Request) -> bytes:
    """The body. Raises RefusedError when it is too large or was cut off."""
    body = b""
    try:
        # piece by piece: a body that names no length must not fill the memory first
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise RefusedError(413, "too_large", f"a body has at most {MAX_BODY} bytes")
    except ClientDisconnect:
        raise RefusedError(400, "cut", "the body was cut off") from None
    return body


async def read_json(request: Request) -> Any:
    """The body as plain data, ids that came as integers as exact text (B05). Raises RefusedError."""
    body = await read_body(request)
    try:
        return codec.exact_ids(codec.parse(body, max_bytes=MAX_BODY, long_integers=True))
    except BadRecordError as error:
        raise refused(error) from None


def read_events(data: Any) -> list[RawEvent]:
    """One event or a batch; nothing of a batch is taken when one of it is wrong. Raises RefusedError."""
    if not isinstance(data, list):
        return [read_model(RawEvent, data)]
    if not 1 <= len(data) <= MAX_BATCH:
        raise RefusedError(422, "wrong_value", f"a batch has 1 to {MAX_BATCH} events, this one {len(data)}")
    return [read_model(RawEvent, one, f"[{index}]") for index, one in enumerate(data)]


def read_addressed(model: type[M], data: Any, **defaults: Any) -> tuple[str, M]:
    """`{"conversation": …, fields of the model…}`: the conversation and the model. Raises RefusedError."""
    if not isinstance(data, dict):
        raise RefusedError(422, "wrong_type", "expected an object")
    fields = dict(data)
    conversation = fields.pop("conversation", None)
    return read_conversation(conversation), read_model(model, {**defaults, **fields})


_NEEDED = {"approve": ("request_id", "call_hash"), "refuse": ("request_id",), "reply": ("text",), "memory": ("memory",)}


def check_decision(decision: HumanDecision) -> None:
    """What its kind needs is there: without it nothing could come of the decision. Raises RefusedError."""
    for name in _NEEDED.get(decision.kind, ()):
        if not getattr(decision, name):
            message = f"missing: `{decision.kind}` needs it"
            raise RefusedError(422, "missing_field", message, name)


def read_conversation(value: Any) -> str:
    """A conversation id. Raises RefusedError."""
    parts = value.split("/") if isinstance(value, str) else []
    if len(parts) != 3:
        raise RefusedError(422, "wrong_value", "expected shop/channel/sender", "conversation")
    return _conversation(dict(zip(("shop", "channel", "sender"), parts, strict=True)), "conversation")


def query_conversation(request: Request) -> str:
    """The conversation of `?shop=&channel=&sender=`. Raises RefusedError."""
    return _conversation({name: request.query_params.get(name, "") for name in ("shop", "channel", "sender")}, "")


def read_model(model: type[M], data: Any, where: str = "") -> M:
    """A model from plain data, as strictly as from a topic. Raises RefusedError."""
    try:
        return codec.validate(model, data)
    except BadRecordError as error:
        raise refused(error, where) from None


def _conversation(parts: dict[str, str], field: str) -> str:
    try:
        found = _Parts(**parts)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise RefusedError(422, "wrong_value", first["msg"], field or str(first["loc"][0])) from None
    return conversation_id(found.shop, found.channel, found.sender)


def refused(error: BadRecordError, where: str = "") -> RefusedError:
    """Why a body is refused; `where` is put before the field."""
    status = 413 if error.code == "too_large" else 400 if error.code in _UNREADABLE else 422
    return RefusedError(status, error.code, error.reason, ".".join(part for part in (where, error.field) if part))
