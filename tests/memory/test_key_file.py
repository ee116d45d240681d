"""The key file: rotation of the master key, legal holds, and what is left on disk of a destroyed key."""

from __future__ import annotations

import base64
import sqlite3
from pathlib import Path

import pytest

from memory.key_file import FileKeyStore, open_key_store
from memory.master_keys import MasterKeys, SealError, add_master_key, drop_old_master_keys, load_master_keys
from memory.sealing import HeldError, Hold, KeyStore, MemoryKeyStore, open_seal, seal

OWNER = "demo/web/u-1"


def test_a_rotation_keeps_every_key_while_others_use_them(tmp_path: Path) -> None:
    """After a new master key every seal still opens, in processes that run on, too; the old master opens none."""
    running, command = open_key_store(tmp_path), open_key_store(tmp_path)
    sealed = seal(running, OWNER, b"clear")
    before = load_master_keys(tmp_path / "master.key")
    add_master_key(tmp_path / "master.key")
    assert (1, 0) == (command.wrap_anew(), command.old())
    assert 1 == drop_old_master_keys(tmp_path / "master.key")

    late = seal(running, "demo/web/u-2", b"later")
    fresh = open_key_store(tmp_path)
    assert [b"clear", b"later"] == [open_seal(fresh, sealed, OWNER), open_seal(fresh, late, "demo/web/u-2")]
    with pytest.raises(SealError, match="another master key"):
        FileKeyStore(tmp_path / "keys.sqlite", before[0]).key_for(OWNER)


def test_a_rotation_that_was_stopped_is_finished_later(tmp_path: Path) -> None:
    """Between its steps both master keys are in the file, so nothing is lost whenever it stops."""
    store = open_key_store(tmp_path)
    sealed = seal(store, OWNER, b"clear")
    add_master_key(tmp_path / "master.key")
    add_master_key(tmp_path / "master.key")
    other = open_key_store(tmp_path)
    assert (b"clear", 1) == (open_seal(other, sealed, OWNER), other.old())
    assert (1, 2) == (other.wrap_anew(), drop_old_master_keys(tmp_path / "master.key"))
    assert b"clear" == open_seal(open_key_store(tmp_path), sealed, OWNER)


def test_the_environment_holds_new_and_old_master_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INTERLOCK_MASTER_KEY=new,old wraps by the new one and unwraps by both; a file is then not changed."""
    old, new = b"o" * 32, b"n" * 32
    sealed = seal(FileKeyStore(tmp_path / "keys.sqlite", old), OWNER, b"clear")
    monkeypatch.setenv("INTERLOCK_MASTER_KEY", ",".join(base64.b64encode(key).decode() for key in (new, old)))
    store = open_key_store(tmp_path)
    assert (b"clear", 1) == (open_seal(store, sealed, OWNER), store.wrap_anew())
    assert b"clear" == open_seal(FileKeyStore(tmp_path / "keys.sqlite", new), sealed, OWNER)
    with pytest.raises(SealError, match="set it to the new key"):
        add_master_key(tmp_path / "master.key")


def test_another_wrapper_takes_the_place_of_master_keys(tmp_path: Path) -> None:
    """A key management service is a Wrapper: the file holds only what it gave back (promise 9)."""

    class Service(MasterKeys):
        calls = 0

        def wrap(self, key_id: str, key: bytes) -> bytes:
            Service.calls += 1
            return b"kms:" + super().wrap(key_id, key)

        def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
            return super().unwrap(key_id, wrapped.removeprefix(b"kms:"))

    store = FileKeyStore(tmp_path / "keys.sqlite", Service(lambda: (b"k" * 32,)))
    assert b"clear" == open_seal(store, seal(store, OWNER, b"clear"), OWNER)
    assert 1 == Service.calls


def test_nothing_of_a_destroyed_key_is_left_on_disk(tmp_path: Path) -> None:
    """The wrapped bytes are in no file any more, so also the master key brings nothing back (promise 9)."""
    store = open_key_store(tmp_path)
    store.key_for("demo/web/other")
    store.key_for(OWNER)
    (wrapped,) = store._db.execute("SELECT wrapped FROM keys WHERE owner = ?", (OWNER,)).fetchone()
    files = list(tmp_path.glob("keys.sqlite*"))
    assert any(wrapped in file.read_bytes() for file in files)

    assert store.destroy(OWNER)
    assert not any(wrapped in file.read_bytes() for file in files)
    assert not store.destroy(OWNER)


@pytest.fixture(params=["memory", "file"])
def keys(request: pytest.FixtureRequest, tmp_path: Path) -> KeyStore:
    """Both key stores."""
    return MemoryKeyStore() if request.param == "memory" else open_key_store(tmp_path)


def test_a_legal_hold_refuses_destruction(keys: KeyStore) -> None:
    """What is held can't be destroyed or forgotten until the hold is released; it says by whom and why."""
    sealed = seal(keys, OWNER, b"clear")
    keys.hold(OWNER, Hold("case 7", "law-1", 5))
    with pytest.raises(HeldError, match=r"law-1 \(case 7\)"):
        keys.forget(OWNER, 6)
    assert (b"clear", None) == (open_seal(keys, sealed, OWNER), keys.forgotten(OWNER))

    keys.hold(OWNER, None)
    assert keys.forget(OWNER, 7)
    assert (None, 7, None) == (open_seal(keys, sealed, OWNER), keys.forgotten(OWNER), keys.held(OWNER))


def test_whoever_is_forgotten_is_known_so_whatever_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that holds the file's log ends the command behind the keys: the mark stands with them (promise 9)."""
    monkeypatch.setattr("memory.key_file._EMPTY_S", 0.0)
    keys = open_key_store(tmp_path)
    keys.key_for(OWNER)
    reader = sqlite3.connect(tmp_path / "keys.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM keys").fetchone()
    with pytest.raises(SealError, match="run the command again"):
        keys.forget(OWNER, 7)
    assert (0, 7) == (keys.count(), keys.forgotten(OWNER))
    reader.close()


def test_a_key_names_its_owner(keys: KeyStore) -> None:
    """A seal that was forwarded to another conversation is still opened as its first owner's (promise 1)."""
    sealed = seal(keys, OWNER, b"clear")
    assert (OWNER, 1) == (keys.owner_of(sealed.key_id), keys.count())
    keys.destroy(OWNER)
    assert (None, 0) == (keys.owner_of(sealed.key_id), keys.count())
