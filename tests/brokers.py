"""A broker of our own for tests: skipped with the reason where it can't start, in CI a failure."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.broker import EmbeddedKafka
from streams.java import BrokerError
from streams.settings import Settings
from streams.topics import apply_topics


def started(own: EmbeddedKafka) -> str:
    """The bootstrap address of the broker, once it runs."""
    try:
        return own.start()
    except BrokerError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no broker: {error}")


def embedded(folder: Path) -> Iterator[str]:
    """The bootstrap address of a broker in the folder, for a fixture to yield from; it is stopped after that."""
    own = EmbeddedKafka(folder)
    try:
        yield started(own)
    finally:
        own.stop()


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Settings]:
    """The settings of a cluster in the folder, with its topics; the folder is where commands run meanwhile."""
    own = EmbeddedKafka(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        try:
            chosen = Settings(bootstrap_servers=started(own), data_dir=folder)
            apply_topics(chosen.bootstrap_servers, chosen)
            yield chosen
        finally:
            own.stop()


def lives(pid: int) -> bool:
    """Whether the process runs; one that ended and that nobody has collected yet does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return shown.strip()[:1] not in ("", "Z")
