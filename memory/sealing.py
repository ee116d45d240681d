"""Sealing: a sensitive value under AES-256-GCM with its owner's key (promise 9); no key, no value.

An owner is a conversation id, or `topic:<name>` for dead letters. Keys are random, wrapped by a master
key, and destroyed to forget: what was sealed under a destroyed key is gone from every log and backup.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import sqlite3
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from schemas.events import Seal

KEY_BYTES = 32
NONCE_BYTES = 12
MASTER_KEY_VARIABLE = "INTERLOCK_MASTER_KEY"
_CACHED = 10_000  # keys held in memory a process: 100 bytes each


class SealError(Exception):
    """A seal or key that is there but can't be right: altered, of another owner, or under another master key."""


class KeyStore(Protocol):
    """Where the owners' keys are."""

    def key_for(self, owner: str) -> tuple[str, bytes]:
        """The owner's key id and 32-byte key; made, and durable, when there is none."""
        ...

    def find(self, key_id: str) -> bytes | None:
        """The key, or None when it was destroyed or is not of this store."""
        ...

    def destroy(self, owner: str) -> None:
        """Forget the owner: its key is gone for every process that uses the store. A later key is another one."""
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

    def key_for(self, owner: str) -> tuple[str, bytes]:
        """See KeyStore."""
        if owner not in self._by_owner:
            key_id, key = _new_key()
            self._by_owner[owner], self._by_id[key_id] = (key_id, key), key
        return self._by_owner[owner]

    def find(self, key_id: str) -> bytes | None:
        """See KeyStore."""
        return self._by_id.get(key_id)

    def destroy(self, owner: str) -> None:
        """See KeyStore."""
        entry = self._by_owner.pop(owner, None)
        if entry:
            del self._by_id[entry[0]]


def _new_key() -> tuple[str, bytes]:
    return f"k-{os.urandom(12).hex()}", os.urandom(KEY_BYTES)


_TABLES = """
CREATE TABLE IF NOT EXISTS keys (owner TEXT PRIMARY KEY, key_id TEXT NOT NULL UNIQUE, wrapped BLOB NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epoch (id INTEGER PRIMARY KEY CHECK (id = 1), destroyed INTEGER NOT NULL);
INSERT OR IGNORE INTO epoch VALUES (1, 0);
"""


class FileKeyStore:
    """Keys in one SQLite file that gateway, workers and CLI share; safe to use from several threads.

    A process caches keys, and asks for the count of destroyed keys at each use (a read of one row, a few
    microseconds): when it moved, the cache is thrown away, so a destroyed key is never used again by anyone.
    """

    def __init__(self, path: Path, master_key: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.close(descriptor)
        self._path = path
        self._master = AESGCM(master_key)
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._ids: dict[str, str] = {}
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        # FULL: a key is durable before anything is sealed under it; a lost key is a lost message.
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;")
        self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        self._epoch = self._destroyed()

    def key_for(self, owner: str) -> tuple[str, bytes]:
        """See KeyStore. Two processes that ask for a new owner at the same moment get the same key."""
        with self._lock:
            self._refresh()
            cached = self._cache.get(owner)
            if cached is not None:
                self._cache.move_to_end(owner)
                return cached
            row = self._row("owner", owner)
            if row is None:
                key_id, key = _new_key()
                values = (owner, key_id, self._wrap(key_id, key))
                self._db.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", values)
                row = self._row("owner", owner)
            if row is None:
                message = f"{self._path}: the key of {owner} was destroyed while it was made"
                raise SealError(message)
            return self._keep(*row)

    def find(self, key_id: str) -> bytes | None:
        """See KeyStore."""
        with self._lock:
            self._refresh()
            owner = self._ids.get(key_id)
            if owner is not None:
                return self._cache[owner][1]
            row = self._row("key_id", key_id)
            return None if row is None else self._keep(*row)[1]

    def destroy(self, owner: str) -> None:
        """See KeyStore. The page is overwritten and the write-ahead log emptied, so the bytes are gone from disk."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM keys WHERE owner = ?", (owner,))
            self._db.execute("UPDATE epoch SET destroyed = destroyed + 1")
            self._db.execute("COMMIT")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._refresh()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _destroyed(self) -> int:
        return int(self._db.execute("SELECT destroyed FROM epoch").fetchone()[0])

    def _refresh(self) -> None:
        # One small read per use, so that a key that another process destroyed is gone here, too.
        epoch = self._destroyed()
        if epoch != self._epoch:
            self._cache.clear()
            self._ids.clear()
            self._epoch = epoch

    def _row(self, column: str, value: str) -> tuple[str, str, bytes] | None:
        sql = f"SELECT owner, key_id, wrapped FROM keys WHERE {column} = ?"  # noqa: S608 (one of our two column names)
        row: tuple[str, str, bytes] | None = self._db.execute(sql, (value,)).fetchone()
        return row

    def _keep(self, owner: str, key_id: str, wrapped: bytes) -> tuple[str, bytes]:
        self._cache[owner] = (key_id, self._unwrap(key_id, wrapped))
        self._ids[key_id] = owner
        while len(self._cache) > _CACHED:
            _, (old, _key) = self._cache.popitem(last=False)
            del self._ids[old]
        return self._cache[owner]

    def _wrap(self, key_id: str, key: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._master.encrypt(nonce, key, key_id.encode())

    def _unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        try:
            return self._master.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], key_id.encode())
        except InvalidTag as error:
            message = f"{self._path}: key {key_id} was wrapped by another master key; give the one it was made with"
            raise SealError(message) from error


def load_master_key(file: Path) -> bytes:
    """The master key: from INTERLOCK_MASTER_KEY if set, else from the file, made (mode 0600) when absent.

    Both hold 32 bytes as base64. Raises SealError that names the source when they do not.
    """
    given = os.environ.get(MASTER_KEY_VARIABLE)
    if given:
        return _decode_master(given, MASTER_KEY_VARIABLE)
    try:
        return _decode_master(file.read_text("ascii"), str(file))
    except FileNotFoundError:
        pass
    except UnicodeDecodeError as error:
        raise SealError(_master_message(str(file))) from error
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.{os.urandom(8).hex()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(base64.b64encode(os.urandom(KEY_BYTES)) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(fresh, file)  # whole or not at all; of two processes the first wins, and both read its key
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return _decode_master(file.read_text("ascii"), str(file))


def _decode_master(text: str, source: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError as error:
        raise SealError(_master_message(source)) from error
    if len(key) != KEY_BYTES:
        raise SealError(_master_message(source))
    return key


def _master_message(source: str) -> str:
    return f"{source}: a master key is 32 bytes as base64, such as `openssl rand -base64 32` prints"


def open_key_store(data_dir: Path, master_key_file: Path | None = None) -> FileKeyStore:
    """The key store that every process of one installation shares: `keys.sqlite` under data_dir."""
    return FileKeyStore(data_dir / "keys.sqlite", load_master_key(master_key_file or data_dir / "master.key"))
