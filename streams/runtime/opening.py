"""Opening an input's seal in memory, for the rows that may (promise 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memory.master_keys import SealError
from memory.sealing import KeyStore, open_seal
from schemas import codec
from schemas.errors import BadRecordError
from schemas.events import ChannelEvent
from schemas.step import Input


def opener(keys: KeyStore) -> Callable[[Input], Any]:
    """The clear JSON of an input's seal; None without one, or once its key was destroyed.

    It raises BadRecordError for a seal that was altered or is another conversation's, and for an event whose
    seal holds something else than a body of the event's kind.
    """

    def opened(cause: Input) -> Any:
        sealed = getattr(cause.value, "seal", None)
        if sealed is None:
            return None
        try:
            clear = open_seal(keys, sealed, _owner(cause))
            # a destroyed key is no error: the customer was forgotten, and the masked text is what is left
            return None if clear is None else _checked(cause.value, codec.parse(clear))
        except (SealError, BadRecordError) as error:
            reason = "can't be opened for this conversation" if isinstance(error, SealError) else error.reason
            raise BadRecordError(reason, code="bad_seal", topic=cause.topic, field="seal") from error

    return opened


def _owner(cause: Input) -> str:
    """Whose key it is under: a forwarded event keeps the seal that it got where it was written (R-003-05)."""
    way = getattr(cause.value, "forwarded", None)
    return cause.key if way is None else str(way.conversation)


def _checked(value: Any, clear: Any) -> Any:
    """The clear body, once it is known to be one."""
    # a foreign producer may have sealed anything; steps must only ever see a body of this kind
    if isinstance(value, ChannelEvent):
        codec.validate(type(value.body), clear)
    return clear
