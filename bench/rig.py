"""A broker with topics, and the processes of a benchmark around it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from streams.broker import EmbeddedKafka
from streams.settings import Settings
from streams.topics import apply_topics

READY_S = 60.0


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Rig:
    """One broker with the project's topics; `start` adds a process that ends with it."""

    settings: Settings
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, arguments: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
        """A Python process with the rig's settings in its environment."""
        values = {f"INTERLOCK_{key.upper()}": str(value)
                  for key, value in self.settings.model_dump(mode="json", exclude_none=True).items()}  # fmt: skip
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen([sys.executable, *arguments], stdout=log, stderr=log,
                                       env={**os.environ, **values, **environment})  # fmt: skip
        self.processes.append(process)
        return process

    def worker(self, name: str = "worker", **environment: str) -> subprocess.Popen[bytes]:
        """A worker of the product."""
        return self.start(name, ["-m", "streams.cli", "worker"], **environment)

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End one process and wait."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ends(self, topic: str, partitions: int | None = None) -> int:
        """Records (and markers) ever written to a topic."""
        consumer = Consumer({"bootstrap.servers": self.settings.bootstrap_servers, "group.id": "bench-ends"})
        try:
            return sum(consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1]
                       for number in range(partitions or self.settings.partitions))  # fmt: skip
        finally:
            consumer.close()


@contextlib.contextmanager
def rig(**values: object) -> Iterator[Rig]:
    """A fresh broker in a temporary folder, stopped with all that was started on it."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as name:
        folder = Path(name)
        with EmbeddedKafka(folder / "broker") as broker:
            settings = Settings().model_copy(update={
                "bootstrap_servers": broker.bootstrap, "data_dir": folder, "metrics_port": 0, **values,
            })  # fmt: skip
            apply_topics(broker.bootstrap, settings)
            made = Rig(settings, folder)
            try:
                yield made
            finally:
                for process in made.processes:
                    made.stop(process)


def wait_for(what: str, check: object, seconds: float = READY_S) -> None:
    """Until `check()` is true. Raises TimeoutError."""
    until = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        if time.monotonic() > until:
            message = f"{what} took more than {seconds:.0f} s"
            raise TimeoutError(message)
        time.sleep(0.05)
