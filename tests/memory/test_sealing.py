"""Sealing and key stores: one contract for the store in memory and the one in a file."""

from __future__ import annotations

import base64
import multiprocessing
import stat
from pathlib import Path

import pytest

from memory.key_file import FileKeyStore, open_key_store
from memory.master_keys import SealError, load_master_key
from memory.sealing import KeyStore, MemoryKeyStore, derived_nonce, open_seal, seal

OWNER = "shop-1/web/wang"
CLEAR = "手机号13800000000".encode()


@pytest.fixture(params=["memory", "file"])
def keys(request: pytest.FixtureRequest, tmp_path: Path) -> KeyStore:
    """Each kind of store in turn."""
    return MemoryKeyStore() if request.param == "memory" else open_key_store(tmp_path)


def test_a_seal_opens_for_its_owner(keys: KeyStore) -> None:
    """What is sealed travels beside the masked text and opens with the owner's key (promise 9)."""
    sealed = seal(keys, OWNER, CLEAR)
    assert CLEAR == open_seal(keys, sealed, OWNER)
    assert CLEAR not in base64.b64decode(sealed.sealed)


def test_a_seal_of_another_owner_is_refused(keys: KeyStore) -> None:
    """A seal copied into another conversation does not open there (promise 9)."""
    sealed = seal(keys, OWNER, CLEAR)
    with pytest.raises(SealError, match="shop-1/web/li"):
        open_seal(keys, sealed, "shop-1/web/li")


@pytest.mark.parametrize("field", ["nonce", "sealed"])
def test_an_altered_seal_is_refused(keys: KeyStore, field: str) -> None:
    """A changed byte is noticed, never returned as plaintext (promise 9)."""
    sealed = seal(keys, OWNER, CLEAR)
    raw = bytearray(base64.b64decode(getattr(sealed, field)))
    raw[0] ^= 1
    altered = sealed.model_copy(update={field: base64.b64encode(raw).decode()})
    with pytest.raises(SealError, match="altered"):
        open_seal(keys, altered, OWNER)


def test_a_destroyed_key_opens_nothing(keys: KeyStore) -> None:
    """Forgetting a customer is destroying the key: old seals are gone, new ones have another key (promise 9)."""
    sealed = seal(keys, OWNER, CLEAR)
    keys.destroy(OWNER)
    assert open_seal(keys, sealed, OWNER) is None
    again = seal(keys, OWNER, CLEAR)
    assert again.key_id != sealed.key_id
    assert CLEAR == open_seal(keys, again, OWNER)


def test_destroying_one_owner_leaves_the_others(keys: KeyStore) -> None:
    """Only the forgotten customer is forgotten (promise 9)."""
    other = seal(keys, "topic:channel.events", b"\xff")
    seal(keys, OWNER, CLEAR)
    keys.destroy(OWNER)
    keys.destroy("shop-1/web/never-seen")
    assert b"\xff" == open_seal(keys, other, "topic:channel.events")


def test_each_owner_has_one_key_and_each_seal_its_nonce(keys: KeyStore) -> None:
    """The same owner keeps its key, another gets another, and no nonce is used twice (promise 9)."""
    first, second, other = seal(keys, OWNER, CLEAR), seal(keys, OWNER, CLEAR), seal(keys, "shop-1/web/li", CLEAR)
    assert first.key_id == second.key_id != other.key_id
    assert first.nonce != second.nonce


def test_a_context_makes_the_seal_repeatable(keys: KeyStore) -> None:
    """With a context a replay makes the same seal, and another value never shares its nonce (promise 5)."""
    first = seal(keys, OWNER, CLEAR, context=b"channel.events:3:17")
    assert first == seal(keys, OWNER, CLEAR, context=b"channel.events:3:17")
    others = [seal(keys, OWNER, CLEAR, context=b"channel.events:3:18"),
              seal(keys, OWNER, CLEAR + b"!", context=b"channel.events:3:17")]  # fmt: skip
    assert 3 == len({first.nonce, *(other.nonce for other in others)})
    assert CLEAR == open_seal(keys, first, OWNER)


def test_a_derived_nonce_depends_on_key_and_context() -> None:
    """Twelve bytes, the same for the same key and context only (promise 9)."""
    nonce = derived_nonce(b"k" * 32, b"a")
    assert 12 == len(nonce)
    assert nonce == derived_nonce(b"k" * 32, b"a")
    assert 3 == len({nonce, derived_nonce(b"k" * 32, b"b"), derived_nonce(b"l" * 32, b"a")})


def test_a_file_store_is_read_by_the_next_process(tmp_path: Path) -> None:
    """Keys outlive the process that made them (promise 9)."""
    first = open_key_store(tmp_path)
    sealed = seal(first, OWNER, CLEAR)
    first.close()
    assert CLEAR == open_seal(open_key_store(tmp_path), sealed, OWNER)


def test_destroying_is_seen_at_once_by_other_processes(tmp_path: Path) -> None:
    """A store that has the key cached does not use it after another one destroyed it (promise 9)."""
    gateway, worker = open_key_store(tmp_path), open_key_store(tmp_path)
    sealed = seal(gateway, OWNER, CLEAR)
    assert CLEAR == open_seal(worker, sealed, OWNER)
    gateway.destroy(OWNER)
    assert open_seal(worker, sealed, OWNER) is None
    assert worker.key_for(OWNER)[0] != sealed.key_id


def test_a_destroyed_key_is_not_on_disk(tmp_path: Path) -> None:
    """No byte of the wrapped key is left in the store's files (promise 9)."""
    keys = open_key_store(tmp_path)
    key_id, _ = keys.key_for(OWNER)
    assert key_id.encode() in _files(tmp_path)
    keys.destroy(OWNER)
    assert key_id.encode() not in _files(tmp_path)
    assert OWNER.encode() not in _files(tmp_path)


def _files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("keys.sqlite*")))


def test_keys_on_disk_are_wrapped(tmp_path: Path) -> None:
    """The store's file alone opens nothing, and only its owner may read it (promise 9)."""
    keys = open_key_store(tmp_path)
    _, key = keys.key_for(OWNER)
    assert key not in _files(tmp_path)
    assert 0o600 == stat.S_IMODE((tmp_path / "keys.sqlite").stat().st_mode)


def test_another_master_key_is_named_as_the_fault(tmp_path: Path) -> None:
    """A store opened with the wrong master key says so, and makes no second key (promise 9)."""
    FileKeyStore(tmp_path / "keys.sqlite", b"a" * 32).key_for(OWNER)
    with pytest.raises(SealError, match="another master key"):
        FileKeyStore(tmp_path / "keys.sqlite", b"b" * 32).key_for(OWNER)


def _ask(folder: Path, gate: multiprocessing.synchronize.Barrier, answers: multiprocessing.Queue[str]) -> None:
    gate.wait(30)
    keys = open_key_store(folder)
    answers.put("|".join(keys.key_for(f"shop-1/web/{number}")[0] for number in range(20)))


def test_processes_that_ask_at_once_get_one_key(tmp_path: Path) -> None:
    """Master key and owners' keys are made once, also when four processes begin together (promise 9)."""
    spawn = multiprocessing.get_context("fork")
    gate, answers = spawn.Barrier(4), spawn.Queue()
    workers = [spawn.Process(target=_ask, args=(tmp_path, gate, answers)) for _ in range(4)]
    for worker in workers:
        worker.start()
    given = {answers.get(timeout=30) for _ in workers}
    for worker in workers:
        worker.join(30)
    assert 1 == len(given)


def test_the_master_key_file_is_made_for_the_owner_only(tmp_path: Path) -> None:
    """An absent master key is made once, readable by its owner alone (promise 9)."""
    file = tmp_path / "secrets" / "master.key"
    key = load_master_key(file)
    assert 32 == len(key)
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    assert key == load_master_key(file)
    assert ["master.key"] == [path.name for path in file.parent.iterdir()]


def test_the_environment_overrides_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A master key from the environment wins, and then no file is made (promise 9)."""
    monkeypatch.setenv("INTERLOCK_MASTER_KEY", base64.b64encode(b"m" * 32).decode())
    assert b"m" * 32 == load_master_key(tmp_path / "master.key")
    assert not (tmp_path / "master.key").exists()


@pytest.mark.parametrize("text", ["", "short", base64.b64encode(b"x" * 31).decode(), "钥匙"])
def test_a_bad_master_key_names_its_file(tmp_path: Path, text: str) -> None:
    """A master key that is none is refused with the file's name and how to make one (promise 9)."""
    file = tmp_path / "master.key"
    file.write_text(text, "utf-8")
    with pytest.raises(SealError, match=r"master\.key.*32 bytes as base64"):
        load_master_key(file)
