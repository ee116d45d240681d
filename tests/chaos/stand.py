"""The stand of a chaos run: one broker, shop and gateway, and workers that are killed, frozen and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import orjson

from streams.broker import EmbeddedKafka
from streams.clock import SystemClock
from streams.demo.children import free_ports
from streams.demo.run import environment
from streams.settings import Settings
from streams.topics import apply_topics

PARTITIONS = 4
READY_S = 90.0  # a start on a busy machine
LOOK_S = 0.02
SETTINGS = {
    "partitions": PARTITIONS, "snapshot_ms": 1_000, "checkpoint_ms": 200, "window_ms": 20_000, "window_grace_ms": 1_000,
}  # fmt: skip
_SHOWN = re.compile(r"partition (\d+) (opens|lost|STOPPED|closes)")


class StandError(Exception):
    """The stand itself is broken: the message says which process, and quotes its log."""


def now_ms() -> int:
    """Wall time, to compare with append times."""
    return SystemClock().now_ms()


@dataclass
class Process:
    """One process of the product, with its log."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    owned: set[int] = field(default_factory=set)
    opened: int = 0
    lost: list[str] = field(default_factory=list)
    point: str = ""
    _read: int = 0

    @property
    def alive(self) -> bool:
        """It has not ended."""
        return self.popen.poll() is None

    def look(self) -> None:
        """Read what the log says since the last look: partitions opened, lost and given back."""
        with self.log.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._line(line)

    def _line(self, line: bytes) -> None:
        try:
            said = orjson.loads(line)
        except orjson.JSONDecodeError:
            return  # a library's own words
        self.point = said.get("point", self.point)
        message = said.get("message", "")
        shown = _SHOWN.match(message)
        if message.startswith(("assigned partitions", "revoked partitions")):
            self.owned = set()
        elif shown is None:
            return
        elif shown[2] == "opens":
            self.owned.add(int(shown[1]))
            self.opened += 1
        else:
            self.owned.discard(int(shown[1]))
            self.lost.append(message)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it is still there."""
        if self.alive:
            self.popen.send_signal(number)

    def kill(self) -> int:
        """As `kill -9`; when, in milliseconds."""
        self.signal(signal.SIGKILL)
        at = now_ms()
        self.popen.wait()
        return at

    def tail(self) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


class Stand:
    """A context manager; everything that it started ends with it."""

    def __init__(self, folder: Path, settings: Settings, broker: EmbeddedKafka) -> None:
        self.folder, self.settings, self.broker = folder, settings, broker
        self._processes: list[Process] = []
        self._count = 0

    def start(self, name: str, *arguments: str, **values: str) -> Process:
        """`interlock ARGUMENTS` with the stand's settings and these over them."""
        log = self.folder / f"{name}.log"
        surrounding = {key: value for key, value in os.environ.items() if not key.startswith("INTERLOCK_")}
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [sys.executable, "-m", "streams.cli", *arguments], stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env={**surrounding, **environment(self.settings), **values},
                start_new_session=True,
            )  # fmt: skip
        process = Process(name, popen, log)
        self._processes.append(process)
        return process

    def worker(self, label: str, **values: str) -> Process:
        """A worker; `label` goes into the name of its log."""
        self._count += 1
        return self.start(f"worker-{self._count:03d}-{label}", "worker", **values)

    async def until(self, what: str, condition: Callable[[], bool], seconds: float = READY_S) -> None:
        """Wait for it. Raises StandError."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                message = f"{what}: not within {seconds:.0f} s"
                raise StandError(message)
            await asyncio.sleep(LOOK_S)

    async def opened(self, worker: Process, count: int = PARTITIONS) -> None:
        """The worker has at least `count` partitions open. Raises StandError, also when it ends before."""

        def there() -> bool:
            worker.look()
            if not worker.alive:
                message = f"{worker.name} ended with {worker.popen.returncode}:\n{worker.tail()}"
                raise StandError(message)
            return len(worker.owned) >= count

        await self.until(f"{worker.name}: {count} open partitions", there)

    async def stop(self, worker: Process) -> None:
        """SIGTERM, and wait. Raises StandError when it does not end by itself."""
        worker.signal(signal.SIGTERM)
        await self.until(f"{worker.name}: end after SIGTERM", lambda: not worker.alive, 40)

    @property
    def workers(self) -> list[Process]:
        """Workers that have not ended."""
        return [process for process in self._processes if process.name.startswith("worker") and process.alive]

    def close(self) -> None:
        """End all, quickly."""
        for process in self._processes:
            process.signal(signal.SIGCONT)
            process.signal(signal.SIGKILL if process.name.startswith("worker") else signal.SIGTERM)
        for process in self._processes:
            try:
                process.popen.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


@contextlib.contextmanager
def stand(keep: Path | None = None) -> Iterator[Stand]:
    """A fresh stand: broker with topics, shop, gateway. Its folder is deleted at the end unless it is given."""
    with tempfile.TemporaryDirectory(prefix="interlock-chaos-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        gateway, shop = free_ports(2)
        with EmbeddedKafka(folder) as broker:
            settings = Settings(_env_file=None).model_copy(update={  # type: ignore[call-arg]
                **SETTINGS, "bootstrap_servers": broker.bootstrap, "data_dir": folder, "group": "chaos",
                "gateway_port": gateway, "shop_port": shop, "metrics_port": 0,
                "gateway_url": f"http://127.0.0.1:{gateway}", "shop_url": f"http://127.0.0.1:{shop}",
            })  # fmt: skip
            apply_topics(broker.bootstrap, settings)
            made = Stand(folder, settings, broker)
            try:
                for name in ("shop", "gateway"):
                    made.start(name, name)
                _answer(settings)
                yield made
            finally:
                made.close()


def _answer(settings: Settings) -> None:
    end = time.monotonic() + READY_S
    for url in (settings.shop_url, settings.gateway_url):
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/healthz").is_success:
                    break
            if time.monotonic() > end:
                message = f"{url} does not answer"
                raise StandError(message)
            time.sleep(0.1)
