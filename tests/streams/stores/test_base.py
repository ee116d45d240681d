"""Servers as child processes: kept ports, a clear end, and what they said last."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.cli import build
from streams.stores.base import Process, ProcessServer, StoreError, registry
from streams.stores.weaviate import WeaviateServer, pin_to_loopback

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def process(folder: Path, seconds: float = 10) -> Process:
    """One with a single port."""
    return Process(folder, ("http",), seconds)


def test_ports_stay_between_starts(tmp_path: Path) -> None:
    """A restarted server has the ports that clients and its own files know."""
    assert process(tmp_path).ports() == process(tmp_path).ports()
    assert WeaviateServer(tmp_path / "w").url == WeaviateServer(tmp_path / "w").url


def test_server_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    """A server that does not come up is an error with its exit code and the end of its log."""
    failing = [sys.executable, "-c", "print('no disk left'); raise SystemExit(3)"]

    with pytest.raises(StoreError, match=r"(?s)ended with code 3.*no disk left"):
        process(tmp_path).run(failing, {}, lambda: False)


def test_server_that_is_never_ready_is_ended(tmp_path: Path) -> None:
    """After its time a server that is not ready is killed, and none is left behind."""
    one = process(tmp_path, 0.2)

    with pytest.raises(StoreError, match=r"not ready within 0\.2 s"):
        one.run(SLEEPER, {}, lambda: False)

    assert one._process is None


def test_stop_and_kill_end_it(tmp_path: Path) -> None:
    """Both ends wait for the end; to end what does not run is no error."""
    one, started = process(tmp_path), time.monotonic()
    for end in (one.stop, one.kill, one.stop):
        one.run(SLEEPER, {}, lambda: True)
        assert one.ended() is None
        end()
    one.stop()

    assert time.monotonic() - started < 10


TICKER = [sys.executable, "-c", "import time\nfor n in range(6000):\n    print(n, flush=True)\n    time.sleep(0.01)"]


def grows(one: Process) -> bool:
    """Whether the child writes."""
    before = one.log_file.stat().st_size
    time.sleep(0.3)
    return one.log_file.stat().st_size > before


def test_every_server_ends_and_freezes_alike(tmp_path: Path) -> None:
    """A frozen server lives and does nothing until it goes on; gentle or not, its end is told."""
    one = process(tmp_path)
    server = ProcessServer(one)
    one.run(TICKER, {}, lambda: one.log_file.stat().st_size > 0)
    server.freeze(True)
    frozen, lives = grows(one), server.ended() is None
    server.freeze(False)
    going = grows(one)
    server.kill()
    one.run(SLEEPER, {}, lambda: True)
    server.stop()

    assert (False, True, True) == (frozen, lives, going)
    assert one._process is None


def test_listeners_are_pinned_to_loopback(tmp_path: Path) -> None:
    """The source that would listen on every interface is changed, and one that we do not know is refused."""
    file = tmp_path / "server.go"
    file.write_text('listen("tcp", fmt.Sprintf(":%d", port))')
    pin_to_loopback(file)

    assert 'listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))' == file.read_text()
    with pytest.raises(StoreError, match="not what we know"):
        pin_to_loopback(file)


def test_unknown_store_is_named() -> None:
    """A command for a store that there is not says which there are."""
    result = CliRunner().invoke(build(), ["stores", "fetch", "redis"])

    assert "no such store: redis; there are neo4j, weaviate" == str(result.exception)
    assert {"neo4j", "weaviate"} == registry().keys()
