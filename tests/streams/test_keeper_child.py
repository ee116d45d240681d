"""The keeper beside the embedded broker: one at a time, found again when its starter is gone, and ended cleanly."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.demo.children import free_ports
from streams.keeper_child import KeeperChild
from tests.brokers import lives

pytestmark = pytest.mark.slow
NOWHERE = "127.0.0.1:1"  # a keeper waits for a broker that is away


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeeperChild]:
    """The keeper of this test's folder, on a free port."""
    monkeypatch.setenv("INTERLOCK_KEEPER_PORT", str(free_ports(1)[0]))
    child = KeeperChild(tmp_path)
    yield child
    child.stop()


def _ready(child: KeeperChild) -> None:
    until = time.monotonic() + 60
    while "The keeper's metrics" not in child.log_file.read_text():
        assert child.ended() is None
        assert time.monotonic() < until
        time.sleep(0.05)


def _pid(folder: Path) -> int:
    return int((folder / "keeper.pid").read_text())


def test_it_runs_until_it_is_stopped(own: KeeperChild, tmp_path: Path) -> None:
    """SIGTERM ends it, a second stop finds none, and a clean end is not told as an accident."""
    own.start(NOWHERE)
    _ready(own)
    pid = _pid(tmp_path)
    assert lives(pid)

    assert own.stop()
    assert not lives(pid)
    assert own.ended() is None
    assert not own.stop()


def test_one_left_behind_is_found_and_replaced(own: KeeperChild, tmp_path: Path) -> None:
    """Whoever comes next with this folder stops it, or starts a fresh one in its place: never two."""
    own.start(NOWHERE)
    _ready(own)
    first = _pid(tmp_path)

    again = KeeperChild(tmp_path)
    again.start(NOWHERE)
    assert own.ended() is not None  # it was taken from it, and that is said
    assert not lives(first)
    assert lives(second := _pid(tmp_path))
    assert KeeperChild(tmp_path).stop()
    assert not lives(second)


def test_a_number_that_was_left_in_the_file_ends_no_stranger(tmp_path: Path) -> None:
    """A stale file names a process that is another's by now: only who holds the lock is stopped."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (tmp_path / "keeper.pid").write_text(str(stranger.pid))

        assert not KeeperChild(tmp_path).stop()
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_who_looks_at_the_same_time_is_no_keeper(tmp_path: Path) -> None:
    """Two commands that look for a keeper see no holder in each other, and end nobody by a stale number."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (tmp_path / "keeper.pid").write_text(str(stranger.pid))
        with (tmp_path / "keeper.pid").open() as other:
            fcntl.flock(other, fcntl.LOCK_SH)  # as a look takes it

            assert not KeeperChild(tmp_path).stop()
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_one_that_ends_by_itself_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status, its log with the last words, and where the writes wait are said (promise 10)."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("INTERLOCK_KEEPER_PORT", str(taken.getsockname()[1]))
        child = KeeperChild(tmp_path)
        child.start(NOWHERE)
        until = time.monotonic() + 60
        while (told := child.ended()) is None:
            assert time.monotonic() < until
            time.sleep(0.05)

    assert "ended with status 1" in told
    assert "INTERLOCK_KEEPER_PORT" in told
    assert "waits in memory.writes" in told
    assert child.ended() is None
    assert os.path.commonpath([child.log_file, tmp_path]) == str(tmp_path)
