"""state_update_p99, state_read_p99, memory_open, memory_closed: the state bus in one process."""

from __future__ import annotations

import contextlib
import gc
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from bench.report import Result, less_is_better, missing, percentile
from bench.states import state
from memory.bus import StateBus
from schemas.partition import partition_of
from schemas.step import put
from streams import loops

OPEN = 10_000
TOUCHES = 50_000
CLOSED = 100_000
MEASURED_OPEN = 20_000
CAS = """
local old = redis.call('HGET', KEYS[1], 'version')
if old ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'body', ARGV[3])
return 1
"""


def run() -> Iterator[Result]:
    """All four rows; the baseline is a redis-server on loopback where there is one."""
    loops.tune()  # the bus is measured as a worker runs it
    memory = list(_memory())  # first: what others leave free in the process would be taken for nothing
    names = [f"demo/web/u{number}" for number in range(OPEN)]
    touched = random.Random(1).choices(names, k=TOUCHES)
    updates, reads = _bus_times(names, touched)
    with _redis(names) as redis:
        base_updates = base_reads = None
        if redis is not None:
            client, cas = redis
            base_updates = percentile(_timed(touched[:10_000], lambda name: _redis_update(client, cas, name)), 0.99)
            base_reads = percentile(_timed(touched[:10_000], lambda name: _redis_read(client, name)), 0.99)
    what = f"{OPEN} open conversations of 4 KB in 12 partitions of one process, random; baseline " + (
        "redis-server on loopback, compare-and-set by script" if base_updates else "none: no redis-server here"
    )
    yield less_is_better("state_update_p99", percentile(updates, 0.99), "us", base_updates, TOUCHES, what)
    yield less_is_better("state_read_p99", percentile(reads, 0.99), "us", base_reads, TOUCHES, what)
    yield from memory


def _bus_times(names: list[str], touched: list[str]) -> tuple[list[float], list[float]]:
    """Microseconds of each update and each read."""
    buses = Buses()
    for name in names:
        buses.of(name).load(name, orjson.dumps(state(name)))
    return (_timed(touched, lambda name: _update(buses.of(name), name)),
            _timed(touched, lambda name: buses.of(name).read(name)))  # fmt: skip


class Buses:
    """The states of one worker as it holds them: a bus a partition."""

    def __init__(self, partitions: int = 12) -> None:
        self._buses = [StateBus() for _ in range(partitions)]

    def of(self, name: str) -> StateBus:
        """The bus of a conversation's partition."""
        return self._buses[partition_of(name.encode(), len(self._buses))]


def _update(bus: StateBus, name: str) -> None:
    old = bus.read(name)
    if old is None:
        message = f"{name} is not open"
        raise LookupError(message)
    new = put(old, ("planning", "turns"), old["planning"]["turns"] + 1)
    new["version"] = old["version"] + 1
    bus.write(new, old["version"])


def _timed(names: list[str], call: Callable[[str], Any]) -> list[float]:
    """Microseconds of each call."""
    times = []
    for name in names:
        start = time.perf_counter_ns()
        call(name)
        times.append((time.perf_counter_ns() - start) / 1_000)
    return times


@contextlib.contextmanager
def _redis(names: list[str]) -> Iterator[Any]:
    server = shutil.which("redis-server")
    if server is None:
        yield None
        return
    import redis

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        try:
            client = redis.Redis("127.0.0.1", port)
            for _ in range(200):
                with contextlib.suppress(redis.ConnectionError):
                    client.ping()
                    break
                time.sleep(0.05)
            for name in names:
                client.hset(name, mapping={"version": 1, "body": orjson.dumps(state(name))})
            yield client, client.register_script(CAS)
        finally:
            process.terminate()
            process.wait(10)


def _redis_update(client: Any, cas: Any, name: str) -> None:
    old = orjson.loads(client.hget(name, "body"))
    new = put(old, ("planning", "turns"), old["planning"]["turns"] + 1)
    new["version"] = old["version"] + 1
    if not cas(keys=[name], args=[old["version"], new["version"], orjson.dumps(new)]):
        message = f"{name}: compare-and-set failed"
        raise RuntimeError(message)


def _redis_read(client: Any, name: str) -> None:
    orjson.loads(client.hget(name, "body"))


def _resident() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def _memory() -> Iterator[Result]:
    if not Path("/proc/self/statm").exists():
        yield missing("memory_open", "bytes", "no /proc/self/statm on this system")
        yield missing("memory_closed", "bytes", "no /proc/self/statm on this system")
        return
    gc.collect()
    before, buses = _resident(), Buses()
    bodies = 0
    for number in range(MEASURED_OPEN):
        # of its exact size, as a snapshot's row or a record is: the encoder's own buffer keeps twice the room
        encoded = bytes(memoryview(orjson.dumps(state(f"demo/web/open{number}"))))
        bodies += len(encoded)
        buses.of(f"demo/web/open{number}").load(f"demo/web/open{number}", encoded)
    for number in range(0, MEASURED_OPEN, 3):  # a third was touched since: the hot ones are also decoded
        _update(buses.of(f"demo/web/open{number}"), f"demo/web/open{number}")
    each = (_resident() - before) / MEASURED_OPEN
    yield less_is_better(
        "memory_open",
        each,
        "bytes",
        bodies / MEASURED_OPEN,
        MEASURED_OPEN,
        "resident bytes a conversation of 4 KB, a third of them touched; baseline the JSON itself",
    )
    for number in range(MEASURED_OPEN):
        buses.of(f"demo/web/open{number}").drop(f"demo/web/open{number}")
    gc.collect()
    before = _resident()
    for number in range(CLOSED):
        name = f"demo/web/closed{number}"
        buses.of(name).load(name, b"{}")
        buses.of(name).drop(name)
    gc.collect()
    each = max(0.0, (_resident() - before) / CLOSED)
    yield less_is_better(
        "memory_closed",
        max(each, 0.01),
        "bytes",
        None,
        CLOSED,
        "resident bytes a conversation that was open and left memory; its residue is on disk",
    )
