"""The master key that wraps all others: from the environment or a file, exchanged without losing one; a KMS fits too.

Both places may hold several keys, the newest first: it wraps, and any of them unwraps. So a rotation has no moment
in which a key can't be read, whatever stops it half-way.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from schemas.errors import InterlockError

KEY_BYTES = 32
NONCE_BYTES = 12
MASTER_KEY_VARIABLE = "INTERLOCK_MASTER_KEY"


class SealError(InterlockError):
    """A seal or key that is there but can't be right: altered, of another owner, or under another master key."""


class Wrapper(Protocol):
    """What wraps the owners' keys: master keys of our own, or a key management service that never gives its key."""

    def wrap(self, key_id: str, key: bytes) -> bytes:
        """The key as it is stored; only `unwrap` with the same id gives it back."""
        ...

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """The key. Raises SealError when it was wrapped by a master key that is not at hand."""
        ...

    def reload(self) -> None:
        """The master key was exchanged: look again."""
        ...

    def is_current(self, key_id: str, wrapped: bytes) -> bool:
        """Whether the newest master key wrapped it."""
        ...


class MasterKeys:
    """A Wrapper on AES-256-GCM; `source` reads the keys, the newest first."""

    def __init__(self, source: Callable[[], Sequence[bytes]]) -> None:
        self._source = source
        self._ciphers: list[AESGCM] = []
        self.reload()

    def reload(self) -> None:
        """See Wrapper."""
        self._ciphers = [AESGCM(key) for key in self._source()]

    def wrap(self, key_id: str, key: bytes) -> bytes:
        """See Wrapper."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._ciphers[0].encrypt(nonce, key, key_id.encode())

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """See Wrapper."""
        for cipher in self._ciphers:
            key = _opened(cipher, key_id, wrapped)
            if key is not None:
                return key
        message = f"key {key_id} was wrapped by another master key; give the one it was made with"
        raise SealError(message)

    def is_current(self, key_id: str, wrapped: bytes) -> bool:
        """See Wrapper."""
        return _opened(self._ciphers[0], key_id, wrapped) is not None


def _opened(cipher: AESGCM, key_id: str, wrapped: bytes) -> bytes | None:
    try:
        return cipher.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], key_id.encode())
    except InvalidTag:
        return None


def master_keys(file: Path) -> MasterKeys:
    """The master keys of the environment, else of the file, which is made when absent. Raises SealError."""
    return MasterKeys(lambda: load_master_keys(file))


def load_master_keys(file: Path) -> tuple[bytes, ...]:
    """The keys, the newest first: INTERLOCK_MASTER_KEY split by commas, else the file's lines (made, mode 0600).

    Each is 32 bytes as base64. Raises SealError that names the source when one is not.
    """
    given = os.environ.get(MASTER_KEY_VARIABLE)
    if given:
        return tuple(_decode(one, MASTER_KEY_VARIABLE) for one in given.split(","))
    try:
        return _read(file)
    except FileNotFoundError:
        pass
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = _beside(file, [os.urandom(KEY_BYTES)])
    try:
        os.link(fresh, file)  # whole or not at all; of two processes the first wins, and both read its key
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return _read(file)


def load_master_key(file: Path) -> bytes:
    """The newest of `load_master_keys`."""
    return load_master_keys(file)[0]


def add_master_key(file: Path) -> None:
    """Put a new key in front of the file's; the old ones still unwrap. Raises SealError when the environment rules."""
    if os.environ.get(MASTER_KEY_VARIABLE):
        message = (f"the master key is in {MASTER_KEY_VARIABLE}: set it to the new key, a comma and the old one where "
                   "every process is started, then run this again")  # fmt: skip
        raise SealError(message)
    _beside(file, [os.urandom(KEY_BYTES), *load_master_keys(file)]).replace(file)


def drop_old_master_keys(file: Path) -> int:
    """Leave only the newest key in the file, overwriting the others; how many went."""
    found = _read(file)
    _beside(file, found[:1]).replace(file)
    return len(found) - 1


def _beside(file: Path, keys: Sequence[bytes]) -> Path:
    fresh = file.with_name(f".{file.name}.{os.urandom(8).hex()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.writelines(base64.b64encode(key) + b"\n" for key in keys)
        stream.flush()
        os.fsync(stream.fileno())
    return fresh


def _read(file: Path) -> tuple[bytes, ...]:
    try:
        lines = file.read_text("ascii").split()
    except UnicodeDecodeError as error:
        raise SealError(_message(str(file))) from error
    if not lines:
        raise SealError(_message(str(file)))
    return tuple(_decode(line, str(file)) for line in lines)


def _decode(text: str, source: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError as error:
        raise SealError(_message(source)) from error
    if len(key) != KEY_BYTES:
        raise SealError(_message(source))
    return key


def _message(source: str) -> str:
    return f"{source}: a master key is 32 bytes as base64, such as `openssl rand -base64 32` prints"
