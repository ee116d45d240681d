"""What a store's server needs to be fetched and run; each store is a module of this package with a `STORE`."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from schemas.errors import InterlockError
from streams import stores

STOP_SECONDS = 20
QUOTED_LINES = 15


class StoreError(InterlockError):
    """A store's server can't be fetched or started. The message says what to do."""


class Server(Protocol):
    """A server on this machine, its data in one folder."""

    def start(self) -> str:
        """Start it, or begin anew after a crash; its address for the settings. Raises StoreError."""
        ...

    def stop(self) -> None:
        """End it gently, by force after a while."""
        ...

    def kill(self) -> None:
        """SIGKILL, for tests; `start` goes on with the same data."""
        ...

    def ended(self) -> int | None:
        """Its exit code, None while it runs."""
        ...


@dataclass(frozen=True)
class Store:
    """One kind of server. `setting` is the variable that takes its address."""

    name: str
    setting: str
    fetch: Callable[[], Path]  # fetched or built unless it is there; raises StoreError
    found: Callable[[], Path | None]  # without fetching
    server: Callable[[Path], Server]  # with its data in that folder


def registry() -> dict[str, Store]:
    """All stores, by name: the modules of this package that have a `STORE`."""
    found = [
        importlib.import_module(f"{stores.__name__}.{module.name}") for module in pkgutil.iter_modules(stores.__path__)
    ]
    return {module.STORE.name: module.STORE for module in found if hasattr(module, "STORE")}


def cache() -> Path:
    """The user's folder of servers (XDG_CACHE_HOME is honoured)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "interlock" / "stores"


class Process:
    """A child process with a log file and ports that stay the same between starts."""

    def __init__(self, folder: Path, ports: Sequence[str], start_seconds: float) -> None:
        """`ports` are names; each gets a free number at the first start, kept in the folder."""
        self.folder, self.log_file = folder, folder / "server.log"
        self._names, self._start_seconds = ports, start_seconds
        self._process: subprocess.Popen[bytes] | None = None

    def ports(self) -> Mapping[str, int]:
        """The numbers, kept: clients and the server's own files name them."""
        kept = self.folder / "ports.json"
        if kept.exists():
            found: dict[str, int] = json.loads(kept.read_text())
            if found.keys() == set(self._names):
                return found
        self.folder.mkdir(parents=True, exist_ok=True)
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in self._names]
        found = dict(zip(self._names, (one.getsockname()[1] for one in sockets), strict=True))
        for one in sockets:
            one.close()
        kept.write_text(json.dumps(found))
        return found

    def run(self, command: Sequence[str], environment: Mapping[str, str], ready: Callable[[], bool]) -> None:
        """Start and wait until it is ready. Raises StoreError with its last lines when it is not in time."""
        if self.ended() is None and self._process is not None:
            return
        with self.log_file.open("wb") as log:  # a session of its own: Ctrl-C reaches us, and we stop it
            self._process = subprocess.Popen(
                command, cwd=self.folder, env={**os.environ, **environment}, stdout=log, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        try:
            self._wait(ready, command[0])
        except BaseException:  # also Ctrl-C: no half-started server is left behind
            self.kill()
            raise

    def stop(self) -> None:
        """SIGTERM, and SIGKILL after 20 s."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; SIGSTOP makes a slow server in tests."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def ended(self) -> int | None:
        """The exit code, or None while it runs or was never started."""
        return None if self._process is None else self._process.poll()

    def _wait(self, ready: Callable[[], bool], program: str) -> None:
        deadline = time.monotonic() + self._start_seconds
        while not ready():
            if self.ended() is not None or time.monotonic() > deadline:
                raise StoreError(self._why(program))
            time.sleep(0.1)

    def _why(self, program: str) -> str:
        code = self.ended()
        how = f"ended with code {code}" if code is not None else f"was not ready within {self._start_seconds:g} s"
        lines = "\n".join(self.log_file.read_text(errors="replace").splitlines()[-QUOTED_LINES:])
        return f"{program} {how}; the end of {self.log_file}:\n{lines}"


class ProcessServer:
    """A Server that is one process: how it ends is the same for every store, how it starts is the store's own."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def stop(self) -> None:
        """See Server."""
        self.process.stop()

    def kill(self) -> None:
        """See Server."""
        self.process.kill()

    def ended(self) -> int | None:
        """See Server."""
        return self.process.ended()

    def freeze(self, frozen: bool) -> None:  # noqa: FBT001 (on or off)
        """Stop answering without ending, or go on; for tests."""
        self.process.signal(signal.SIGSTOP if frozen else signal.SIGCONT)
