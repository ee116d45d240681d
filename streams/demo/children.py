"""Child processes of the demo: started with settings of their own, watched, and all ended, whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from schemas.errors import InterlockError

STOP_S = 12.0  # a worker hands its partitions over within this
QUOTED_LINES = 15


class ChildError(InterlockError):
    """A child ended by itself: its name, exit status, log file and last lines."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Children:
    """A context manager; children run in process groups of their own, so that Ctrl-C reaches only us."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, name: str, *arguments: str) -> None:
        """Run `interlock ARGUMENTS`; its output goes to `NAME.log`."""
        log = (self._folder / f"{name}.log").open("wb")
        self._logs.append(log)
        self._running[name] = subprocess.Popen(
            [sys.executable, "-m", "streams.cli", *arguments], env=self._environment, stdin=subprocess.DEVNULL,
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def check(self) -> None:
        """Raises ChildError when a child has ended."""
        for name, child in self._running.items():
            if child.poll() is not None:
                log = self._folder / f"{name}.log"
                last = log.read_text(errors="replace").splitlines()[-QUOTED_LINES:]
                message = f"{name} ended with status {child.returncode} ({log}):\n" + "\n".join(last)
                raise ChildError(message)

    def stop(self) -> None:
        """SIGTERM in the reverse order of starting, SIGKILL for who does not end in time."""
        for child in reversed(self._running.values()):
            _signal(child, signal.SIGTERM)
        for child in self._running.values():
            try:
                child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                _signal(child, signal.SIGKILL)
                child.wait()
        self._running.clear()
        for log in self._logs:
            log.close()

    @property
    def names(self) -> Sequence[str]:
        """Who was started."""
        return list(self._running)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if child.poll() is None:
        child.send_signal(number)
