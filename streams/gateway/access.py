"""Producer keys: who may publish, decide and deliver over HTTP (decision 0014).

A browser can hold no secret, so what a customer does on a channel without an adapter needs no key. All else does, once
INTERLOCK_PRODUCER_KEY_FILE names a file of keys; without one everybody who reaches the port may do everything, and so
the gateway listens on loopback only.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schemas import codec
from schemas.base import Model
from schemas.errors import BadRecordError, InterlockError
from schemas.events import RawEvent
from streams.gateway.reading import RefusedError

SETTING, OWN_SETTING = "INTERLOCK_PRODUCER_KEY_FILE", "INTERLOCK_GATEWAY_KEY"
OWN_KINDS = frozenset({"message", "recall", "edit", "heartbeat", "presence", "rating"})  # what a browser sends
MIN_KEY = 32  # characters: 128 bits even where they are hexadecimal
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,30}")  # shorter than a key: a key in the wrong place is never shown
_SCHEME = "bearer "
_HOST = re.compile(r"https?://(\[[0-9a-f:.]+\]|[^:/\[\]]+)(?::[0-9]+)?")
_OPEN = "whoever reaches the gateway may link customers, decide reviews and speak as anybody"

Right = Literal["publish", "decide", "deliver"]
Secret = Annotated[str, StringConstraints(min_length=MIN_KEY, max_length=256, pattern=r"^[\x21-\x7e]+$")]

log = logging.getLogger(__name__)


class KeyFileError(InterlockError):
    """The file of keys can't be used; its name, the holder and the field are in the text, never a key."""


class ExposedError(InterlockError):
    """The gateway would let everybody in: it has no keys, and listens where others can reach it."""


class KeyRefusedError(RefusedError):
    """No key, one that nobody holds or that may not do this, or a foreign page; counted as a security refusal."""

    kind = "key"

    def __init__(self, status: int, code: str, message: str, field: str = "authorization") -> None:
        super().__init__(status, code, message, field)


class Holder(Model):
    """Whose keys these are (all of them count, so that one can be exchanged) and what they may do."""

    keys: Annotated[tuple[Secret, ...], Field(min_length=1, max_length=8)]
    may: Annotated[tuple[Right, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Known:
    """A key as it is held in memory: its hash, so that no slip of ours can show it."""

    digest: bytes
    name: str
    may: frozenset[str]


def read_keys(file: Path) -> tuple[Known, ...]:
    """The keys of `{"name": {"keys": [...], "may": [...]}}`. Raises KeyFileError."""
    try:
        holders = codec.parse(file.read_bytes())
        if not isinstance(holders, dict) or not holders:
            raise _wrong(file, "expected an object with a name for each holder of keys")
        found = [known for place, item in enumerate(holders.items(), 1) for known in _held(file, place, *item)]
    except OSError as error:
        raise _wrong(file, str(error.strerror)) from None
    except BadRecordError as error:
        # a name that is there twice stands in the reason: it may be a key in the wrong place
        raise _wrong(file, "a name is there twice" if error.code == "repeated_key" else error.reason) from None
    names = dict[bytes, str]()
    for one in found:
        if one.digest in names:
            raise _wrong(file, f"{names[one.digest]} and {one.name} have the same key: give each its own")
        names[one.digest] = one.name
    return tuple(found)


def _held(file: Path, place: int, name: str, value: object) -> list[Known]:
    if not _NAME.fullmatch(name):
        raise _wrong(file, f"the name in place {place} is none: a-z, 0-9, _, . and -, at most 31 characters")
    if not isinstance(value, dict) or value.keys() != Holder.model_fields.keys():  # unknown ones are not repeated here
        raise _wrong(file, f'{name}: expected {{"keys": [...], "may": [...]}}')
    try:
        holder = codec.validate(Holder, value)
    except BadRecordError as error:
        raise _wrong(file, f"{name}.{error.field}: {error.reason}") from None
    return [Known(hashlib.sha256(key.encode()).digest(), name, frozenset(holder.may)) for key in holder.keys]


def _wrong(file: Path, reason: str) -> KeyFileError:
    return KeyFileError(f"{SETTING} {file}: {reason}")


class Access:
    """Judges requests by the keys of the file, which is read again when it has changed.

    `adapters` are the channels that have doors of their own: their customers do not come as browsers.
    """

    def __init__(self, file: Path | None, adapters: Collection[str] = ()) -> None:
        """Raises KeyFileError for a file that can't be used. One that can't later leaves the keys as they are."""
        self._file, self._adapters = file, frozenset(adapters)
        self._stamp = None if file is None else _stamp(file)
        self._keys = () if file is None else read_keys(file)

    def need(self, headers: Mapping[str, str], right: Right, what: str) -> None:
        """Refuse unless the request's key may do this. Raises KeyRefusedError; `what` is named in its words."""
        if self._file is None:
            _check_origin(headers.get("origin"), what)
            return
        self._refresh(self._file)
        shown = headers.get("authorization", "")
        if shown[: len(_SCHEME)].lower() != _SCHEME:
            message = (f"{what} needs a producer key that may {right}: `Authorization: Bearer <key>`;"
                       f" Interlock's own commands and workers take theirs from {OWN_SETTING}")  # fmt: skip
            raise KeyRefusedError(401, "key_missing", message)
        known = self._find(shown[len(_SCHEME) :].strip())
        if known is None:
            raise KeyRefusedError(401, "key_unknown", f"{what} needs a producer key, and nobody holds this one")
        if right not in known.may:
            raise KeyRefusedError(403, "key_may_not", f"{what} needs a key that may {right}: {known.name}'s may not")

    def one_customer(self, headers: Mapping[str, str], events: Collection[RawEvent]) -> None:
        """A browser's events are its customer's own; what else is among them needs a key. Raises KeyRefusedError."""
        for event in events:
            if event.body.kind not in OWN_KINDS:
                self.need(headers, "publish", f"body.kind {event.body.kind}")
            if event.channel in self._adapters:
                self.need(headers, "publish", f"an event of {event.channel}, which has an adapter,")
        if len({event.conversation for event in events}) > 1:
            self.need(headers, "publish", "a batch of several customers")

    def _find(self, key: str) -> Known | None:
        digest, found = hashlib.sha256(key.encode()).digest(), None
        for known in self._keys:  # all of them, each in constant time: how long it takes says nothing about a key
            if compare_digest(digest, known.digest):
                found = known
        return found

    def _refresh(self, file: Path) -> None:
        stamp = _stamp(file)
        if stamp == self._stamp:
            return
        self._stamp = stamp  # also of a file that can't be used: that is said once, not at every request
        try:
            self._keys = read_keys(file)
        except KeyFileError as error:
            log.error("the keys stay as they were: %s", error)  # noqa: TRY400 (a traceback would say no more)
        else:
            log.info("producer keys of %s", ", ".join(dict.fromkeys(one.name for one in self._keys)))


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Changes with the file; an orchestrator that exchanges a link changes the inode."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def check_exposure(file: Path | None, address: str) -> None:
    """Without keys, loopback is the only protection: warn there. Raises ExposedError for any other address.

    A file that can't be used is a KeyFileError here, before the gateway says that it answers.
    """
    if file is not None:
        read_keys(file)
        return
    if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        message = (f"{address} can be reached from elsewhere, and there are no producer keys: {_OPEN}."
                   f" Set {SETTING}, or INTERLOCK_HOST=127.0.0.1")  # fmt: skip
        raise ExposedError(message)
    log.warning("no producer keys: %s. A proxy must let nobody else in; %s names a file of keys", _OPEN, SETTING)


def _check_origin(origin: str | None, what: str) -> None:
    """Loopback keeps no page of the web out: a browser on this machine posts for it. Raises KeyRefusedError.

    A service names no origin, and a page cannot leave its own out; a name that was made to point here is its own still.
    """
    if origin is None:
        return
    host = _HOST.fullmatch(origin)
    if host is None or not _is_here(host[1].strip("[]")):
        message = f"{what} is not taken from a page of another machine while the gateway has no keys"
        raise KeyRefusedError(403, "foreign_page", message, "origin")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bearer(key: str) -> dict[str, str]:
    """The header that shows a key; none without one."""
    return {"authorization": f"Bearer {key}"} if key else {}
