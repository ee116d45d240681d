"""What a run needs of the machine: limits raised, records sent, the worker's words and counters."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator

import httpx
import orjson
from confluent_kafka import KafkaError, Message, Producer

from schemas.topics import RAW_TOPIC, TOPICS
from streams.runtime.client import producer_config, words
from streams.settings import Settings
from streams.topics import Difference, _alter, _client
from tests.chaos.stand import Process, Stand
from tests.fuzz.cases import Case

LIMIT_BYTES = 4 * 1024 * 1024  # records of 2 MiB reach the input topics in a run
_METRICS = re.compile(r"metrics on (http://\S+)")
_DECIDED = re.compile(r'^interlock_decisions_by_rule_total\{rule="runtime.duplicate"\} (\S+)$', re.MULTILINE)
_PAUSED = re.compile(r'interlock_partition_stops_total\{reason="dlq_limit"\} ([0-9.e+]+)')
_SAMPLE = re.compile(r"(interlock_duplicates_dropped_total|interlock_emits_set_aside_total)\{[^}]*\} ([0-9.e+]+)")


def raise_limits(settings: Settings) -> None:
    """Let the input topics take records of 2 MiB."""
    topics = [name for name in TOPICS if f"{name}.dlq" in TOPICS]
    assert RAW_TOPIC in topics
    changes = [Difference(name, "max.message.bytes", str(LIMIT_BYTES), "") for name in topics]
    _alter(_client(settings.bootstrap_servers), changes)


def send(settings: Settings, cases: Iterable[Case], sent: dict[tuple[str, int, int], Case]) -> None:
    """Send all to the partitions that they name; `sent` says where each stands. Raises RuntimeError for a refusal."""
    producer = Producer(producer_config(settings, linger_ms=20, message_timeout_ms=60_000))
    refused: list[KafkaError] = []

    def taken(case: Case) -> object:
        def done(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                refused.append(error)
            else:
                sent[case.topic, message.partition() or 0, message.offset() or 0] = case

        return done

    for number, case in enumerate(cases):
        while True:
            try:
                producer.produce(case.topic, case.value, case.key, case.partition, on_delivery=taken(case),  # type: ignore[arg-type]
                                 headers=list(case.headers))  # fmt: skip
            except BufferError:
                producer.poll(0.1)
            else:
                break
        if number % 100 == 0:
            producer.poll(0)
    producer.flush(60)
    if refused:
        message = f"the broker refused {len(refused)} records: {words(refused[0])}"
        raise RuntimeError(message)


def in_turn(plans: Iterable[Iterator[Case]]) -> Iterator[Case]:
    """One record of each plan, again and again, until all have ended."""
    left = list(plans)
    while left:
        for plan in list(left):
            case = next(plan, None)
            if case is None:
                left.remove(plan)
            else:
                yield case


def complaints(process: Process) -> list[str]:
    """Lines of error of a process's log, but for the pause that the limit asks for."""
    found = []
    for text in process.log.read_text(errors="replace").splitlines():
        try:
            said = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        if said.get("level") in ("ERROR", "CRITICAL") and " is paused at offset " not in said["message"]:
            error = said.get("error", "").splitlines()
            found.append(f"{process.name}: {said['message']}{': ' + error[-1] if error else ''}")
    return found


def counted_drops(worker: Process) -> int:
    """Records that the worker dropped as repeats or set aside without a decision, by its own metrics.

    A producer's repeat is counted among the dropped, too, and has a decision that says so.
    """
    metrics = _metrics(worker)
    decided = _DECIDED.search(metrics)
    dropped = sum(float(sample[2]) for sample in _SAMPLE.finditer(metrics))
    return int(dropped - (float(decided[1]) if decided else 0))


def counted_pauses(worker: Process) -> int:
    """Topic partitions that the worker paused, by its own metrics."""
    return int(sum(float(sample[1]) for sample in _PAUSED.finditer(_metrics(worker))))


def _metrics(worker: Process) -> str:
    url = _METRICS.search(worker.log.read_text(errors="replace"))
    assert url is not None, "the worker says where its metrics are"
    return httpx.get(url[1], timeout=30).text


def well(stand: Stand, processes: Iterable[Process]) -> list[str]:
    """What is wrong with the processes: an end, a lost or stopped partition, lines of error."""
    found = []
    for process in processes:
        process.look()
        if not process.alive:
            found.append(f"{process.name} ended with {process.popen.returncode}:\n{process.tail()}")
        found += [f"{process.name}: {line}" for line in process.lost]
        found += complaints(process)[:10]
    if not stand.broker.running():
        found.append(f"the broker is down:\n{stand.broker.last_lines()}")
    return found


def patiently(seconds: float) -> Iterator[None]:
    """Turns of a loop, half a second apart, for so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.5)
