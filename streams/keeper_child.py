"""The one keeper that `interlock up` runs beside its broker, so that what is remembered reaches the stores.

It outlives an `up` that was killed, as the broker does; who comes next finds it by the file that it keeps locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

STOP_S = 10.0  # it ends within one batch of writes
QUOTED_LINES = 5
LOOK_S = 0.05


class KeeperChild:
    """`interlock keeper` as a child of this data folder; one at a time."""

    def __init__(self, data_dir: Path) -> None:
        self.log_file = data_dir / "logs" / "keeper.log"
        self._data_dir, self._pid_file = data_dir, data_dir / "keeper.pid"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, bootstrap: str) -> None:
        """Run it on that broker, in place of one that an `up` before left behind."""
        self.stop()
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "INTERLOCK_BOOTSTRAP_SERVERS": bootstrap,
                       "INTERLOCK_DATA_DIR": str(self._data_dir.resolve())}  # fmt: skip
        with self.log_file.open("wb") as log, self._pid_file.open("a+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # the child inherits the lock and has it until it ends, however it ends
            held.truncate(0)  # from the lock on, nobody takes the one before for its holder
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streams.cli", "keeper"], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True, pass_fds=[held.fileno()],
            )  # fmt: skip
            held.write(str(self._process.pid))

    def ended(self) -> str | None:
        """Once, in words with its last lines: the keeper that was started here ended by itself."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        self._process = None
        last = "\n".join(self.log_file.read_text(errors="replace").splitlines()[-QUOTED_LINES:])
        return (f"The keeper ended with status {code} ({self.log_file}); what is remembered waits in memory.writes"
                f" until `interlock keeper` runs:\n{last}")  # fmt: skip

    def stop(self) -> bool:
        """SIGTERM, and SIGKILL for one that does not end in time; whether one ran."""
        pid = self._running()
        if pid is None:
            return False
        _signal(pid, signal.SIGTERM)
        until = time.monotonic() + STOP_S
        while self._running() is not None:
            if time.monotonic() > until:
                _signal(pid, signal.SIGKILL)
            self._reap()
            time.sleep(LOOK_S)
        self._reap()
        return True

    def _running(self) -> int | None:
        """The pid of the one that holds the lock: a number that was left in the file alone may be a stranger's."""
        with _opened(self._pid_file) as held:
            if held is None:
                return None
            try:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: who looks, too, is no keeper
            except BlockingIOError:
                return int(held.read() or 0) or None
            return None

    def _reap(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._process = None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[str] | None]:
    try:
        file = path.open()
    except FileNotFoundError:
        yield None
        return
    with file:
        yield file


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
