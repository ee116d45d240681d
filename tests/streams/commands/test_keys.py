"""`interlock keys`: a new master key for all keys, and what is still under an old one."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memory.key_file import FileKeyStore, open_key_store
from memory.master_keys import load_master_keys
from memory.sealing import open_seal, seal
from streams.cli import build

OWNER = "demo/web/u-1"


def run(*arguments: str) -> str:
    """The output of a command that ends well."""
    result = CliRunner().invoke(build(), list(arguments))
    assert 0 == result.exit_code, result.output
    return result.output.strip()


def test_rotate_makes_a_new_master_key_for_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key is wrapped by a key made now, the old one leaves the file, and seals open as before (promise 9)."""
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("INTERLOCK_MASTER_KEY", raising=False)
    store = open_key_store(tmp_path)
    sealed, before = seal(store, OWNER, b"clear"), load_master_keys(tmp_path / "master.key")
    assert "1 keys, 0 of them wrapped by an old master key" == run("keys", "status")
    assert run("keys", "rotate").startswith("1 keys wrapped anew, 1 old master keys removed")
    after = load_master_keys(tmp_path / "master.key")
    assert (1, False) == (len(after), before == after)
    assert b"clear" == open_seal(store, sealed, OWNER)


def test_rotate_with_the_key_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`new,old` is set where processes start; the command wraps by the new one and touches no file (promise 9)."""
    old, new = (base64.b64encode(letter * 32).decode() for letter in (b"o", b"n"))
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path))
    sealed = seal(FileKeyStore(tmp_path / "keys.sqlite", b"o" * 32), OWNER, b"clear")
    monkeypatch.setenv("INTERLOCK_MASTER_KEY", f"{new},{old}")
    assert "1 keys wrapped anew; the old key may leave INTERLOCK_MASTER_KEY now" == run("keys", "rotate")
    assert b"clear" == open_seal(FileKeyStore(tmp_path / "keys.sqlite", b"n" * 32), sealed, OWNER)
    assert not (tmp_path / "master.key").exists()
