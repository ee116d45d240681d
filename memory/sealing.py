"""Sealing: a sensitive value under AES-256-GCM with its owner's key (promise 9); no key, no value.

An owner is a conversation id, or `topic:<name>` for dead letters. Keys are random, wrapped by a master
key, and destroyed to forget: what was sealed under a destroyed key is gone from every log and backup.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memory.master_keys import KEY_BYTES, NONCE_BYTES, SealError
from schemas.errors import InterlockError
from schemas.events import Seal


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold: nothing of the owner may be destroyed. `at` in milliseconds."""

    reason: str
    by: str
    at: int


class HeldError(InterlockError):
    """A legal hold forbids it."""

    def __init__(self, owner: str, hold: Hold) -> None:
        super().__init__(
            f"{owner} is under a legal hold since {hold.at} by {hold.by} ({hold.reason}); nothing was done"
        )


class KeyStore(Protocol):
    """Where the owners' keys are."""

    def key_for(self, owner: str) -> tuple[str, bytes]:
        """The owner's key id and 32-byte key; made, and durable, when there is none."""
        ...

    def find(self, key_id: str) -> bytes | None:
        """The key, or None when it was destroyed or is not of this store."""
        ...

    def owner_of(self, key_id: str) -> str | None:
        """Whose key it is; None when it was destroyed."""
        ...

    def destroy(self, owner: str) -> bool:
        """Forget the owner: its key is gone for every process that uses the store. A later key is another one.

        Whether there was one. Raises HeldError under a legal hold.
        """
        ...

    def forget(self, owner: str, at: int) -> bool:
        """`destroy`, remembered with its time (milliseconds), so that nobody brings back what came before it."""
        ...

    def forgotten(self, owner: str) -> int | None:
        """When the owner was forgotten last."""
        ...

    def hold(self, owner: str, hold: Hold | None) -> None:
        """Put the owner under a legal hold, or (None) end it."""
        ...

    def held(self, owner: str) -> Hold | None:
        """The owner's legal hold, if there is one."""
        ...

    def count(self) -> int:
        """How many keys there are."""
        ...


def seal(keys: KeyStore, owner: str, plaintext: bytes, *, nonce: bytes | None = None,
         context: bytes | None = None) -> Seal:  # fmt: skip
    """Seal under the owner's key. The nonce is random unless given, or derived from `context` and the plaintext.

    With a context the same value gives the same seal at every replay (promise 5), and another value another nonce.
    """
    # The owner is the associated data: a seal that is copied to another conversation does not open there.
    key_id, key = keys.key_for(owner)
    if context is not None:
        nonce = derived_nonce(key, context + b"\0" + plaintext)
    nonce = nonce or os.urandom(NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, plaintext, owner.encode())
    return Seal(key_id=key_id, nonce=base64.b64encode(nonce).decode(), sealed=base64.b64encode(sealed).decode())


def open_seal(keys: KeyStore, sealed: Seal, owner: str) -> bytes | None:
    """The plaintext, or None when the key was destroyed. Raises SealError for an altered seal or another owner."""
    key = keys.find(sealed.key_id)
    if key is None:
        return None
    try:
        nonce, body = base64.b64decode(sealed.nonce, validate=True), base64.b64decode(sealed.sealed, validate=True)
        return AESGCM(key).decrypt(nonce, body, owner.encode())
    except (InvalidTag, ValueError) as error:
        message = f"seal of key {sealed.key_id} can't be opened for {owner}: it was altered or is another owner's"
        raise SealError(message) from error


def derived_nonce(key: bytes, context: bytes) -> bytes:
    """A nonce for a deterministic seal. `context` must differ whenever the plaintext does: put the plaintext in it."""
    # A key of its own for nonces: the sealing key itself is never an HMAC key.
    nonce_key = hmac.digest(key, b"interlock nonce v1", hashlib.sha256)
    return hmac.digest(nonce_key, context, hashlib.sha256)[:NONCE_BYTES]


class MemoryKeyStore:
    """Keys of one process, for chat, scenarios and tests; they end with it."""

    def __init__(self) -> None:
        self._by_owner: dict[str, tuple[str, bytes]] = {}
        self._by_id: dict[str, bytes] = {}
        self._holds: dict[str, Hold] = {}
        self._forgotten: dict[str, int] = {}

    def key_for(self, owner: str) -> tuple[str, bytes]:
        """See KeyStore."""
        if owner not in self._by_owner:
            key_id, key = new_key()
            self._by_owner[owner], self._by_id[key_id] = (key_id, key), key
        return self._by_owner[owner]

    def find(self, key_id: str) -> bytes | None:
        """See KeyStore."""
        return self._by_id.get(key_id)

    def owner_of(self, key_id: str) -> str | None:
        """See KeyStore."""
        return next((owner for owner, (one, _) in self._by_owner.items() if one == key_id), None)

    def destroy(self, owner: str) -> bool:
        """See KeyStore."""
        if owner in self._holds:
            raise HeldError(owner, self._holds[owner])
        entry = self._by_owner.pop(owner, None)
        if entry:
            del self._by_id[entry[0]]
        return entry is not None

    def forget(self, owner: str, at: int) -> bool:
        """See KeyStore."""
        gone = self.destroy(owner)
        self._forgotten[owner] = at
        return gone

    def forgotten(self, owner: str) -> int | None:
        """See KeyStore."""
        return self._forgotten.get(owner)

    def hold(self, owner: str, hold: Hold | None) -> None:
        """See KeyStore."""
        if hold is None:
            self._holds.pop(owner, None)
        else:
            self._holds[owner] = hold

    def held(self, owner: str) -> Hold | None:
        """See KeyStore."""
        return self._holds.get(owner)

    def count(self) -> int:
        """See KeyStore."""
        return len(self._by_owner)


def new_key() -> tuple[str, bytes]:
    """A random key id and key."""
    return f"k-{os.urandom(12).hex()}", os.urandom(KEY_BYTES)
