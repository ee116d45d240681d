"""recovery_100k: a worker's start to ready with 100,000 open conversations, a snapshot and the diffs after it."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterator

import orjson
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bench.report import Result, less_is_better
from bench.rig import Rig, rig, wait_for
from bench.states import NOW, state
from memory.bus import apply, empty
from schemas.partition import partition_of
from schemas.state import Mark
from schemas.topics import INPUT_TOPICS
from streams.metrics import RecordedMetrics
from streams.runtime.checkpoint import SavedState
from streams.runtime.client import consumer_config, producer_config
from streams.runtime.wire import DIFFS, UPDATES, state_headers
from streams.worker import snapshots_of

OPEN = 100_000
PER_S = 1_000  # decisions a second in the time since the snapshot
SINCE_S = 30
DUE = 4_102_444_800_000  # the deadline that closes a conversation is far off
READY = "the worker is ready"


def run() -> Iterator[Result]:
    """One row; the baseline reads and applies the whole state.diffs topic, as one would without a snapshot."""
    with rig() as made:
        names = [f"bench/web/r{number}" for number in range(OPEN)]
        placed: dict[int, list[str]] = defaultdict(list)
        for name in names:
            placed[partition_of(name.encode(), made.settings.partitions)].append(name)
        _write_diffs(made, [_first(name) for name in names])
        _snapshot(made, placed)
        _write_diffs(made, [_next(name) for name in names[: PER_S * SINCE_S]])
        _marks(made, placed, set(names[: PER_S * (SINCE_S - 1)]))
        seconds = _start(made)
        baseline = _read_all(made)
    note = f"{OPEN} open conversations of 4 KB in 12 partitions, a deadline each, snapshot and {PER_S * SINCE_S} diffs "
    note += "after it, the checkpoint's last mark a second old; from "
    note += "the process's start (imports and group join included); baseline reads and applies all of state.diffs"
    yield less_is_better("recovery_100k", seconds, "s", baseline, OPEN, note)


def _diff(name: str, base: int, **values: object) -> dict[str, object]:
    cause = {"topic": "channel.events", "partition": 0, "offset": 0, "time": NOW, "id": f"ev-{base}", "type": "t",
             "trace": "", "position": None}  # fmt: skip
    return {
        "conversation": name, "base": base, "version": base + 1, "session_id": "s-1", "now": NOW, "cause": cause,
        "gathered": {}, "changes": [], "reasons": [{"rule": "bench", "text": "", "evidence": []}], "emits": [],
        "handled": {}, "unsent": 0, "whole": None, **values,
    }  # fmt: skip


def _first(name: str) -> tuple[str, bytes]:
    timers = {"session.close": {"due": DUE, "set_by": 1, "index": 1, "data": {}}}
    whole = {**state(name), "version": 0, "timers": timers}
    return name, orjson.dumps(_diff(name, 0, whole=whole))


def _next(name: str) -> tuple[str, bytes]:
    change = {"path": "/planning/turns", "before": 0, "after": 1}
    return name, orjson.dumps(_diff(name, 1, changes=[change]))


def _write_diffs(made: Rig, diffs: list[tuple[str, bytes]]) -> None:
    producer = Producer(producer_config(made.settings))
    headers: list[tuple[str, str | bytes | None]] = list(state_headers(DIFFS, "bench", NOW))
    for name, value in diffs:
        while True:
            try:
                producer.produce(DIFFS, value, name.encode(), headers=headers,
                                 partition=partition_of(name.encode(), made.settings.partitions))  # fmt: skip
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(120)


def _snapshot(made: Rig, placed: dict[int, list[str]]) -> None:
    """What the worker had written before it died: every state, and the offset of the last diff then."""
    store, snapshots = snapshots_of(made.settings, RecordedMetrics())
    logging.getLogger("memory").setLevel(logging.ERROR)
    handled = dict.fromkeys(INPUT_TOPICS, 0)
    with store:
        for partition, names in placed.items():
            last = len(names) - 1
            mark = Mark(diff_offset=last, handled=handled, unsent=last + 1, stamped_at=NOW)
            rows = (SavedState(name, "state", 1, orjson.dumps(_applied(name)), DUE) for name in names)
            snapshots.write(partition, rows, mark.model_dump(mode="json", exclude={"kind", "stamped_at"}))


def _marks(made: Rig, placed: dict[int, list[str]], told: set[str]) -> None:
    """The mark that each partition wrote to state.updates last: a second before the end, as a worker does."""
    producer = Producer(producer_config(made.settings))
    handled = dict.fromkeys(INPUT_TOPICS, 0)
    for partition, names in placed.items():
        last = len(names) - 1 + sum(name in told for name in names)
        mark = Mark(diff_offset=last, handled=handled, unsent=last + 1, stamped_at=NOW)
        headers: list[tuple[str, str | bytes | None]] = list(state_headers(UPDATES, f"bench-{partition}", NOW))
        producer.produce(UPDATES, orjson.dumps(mark.model_dump(mode="json")), f"~mark/{partition}".encode(),
                         partition=partition, headers=headers)  # fmt: skip
    producer.flush(120)


def _applied(name: str) -> dict[str, object]:
    return apply(empty(name), orjson.loads(_first(name)[1]))


def _start(made: Rig) -> float:
    log = made.folder / "worker.log"
    start = time.monotonic()
    worker = made.worker()

    def ready() -> bool:
        if worker.poll() is not None:
            message = f"the worker ended: {log.read_text(encoding='utf-8')[-2000:]}"
            raise RuntimeError(message)
        return log.exists() and READY in log.read_text(encoding="utf-8")

    wait_for("the worker", ready, 180)
    seconds = time.monotonic() - start
    made.stop(worker)
    return seconds


def _read_all(made: Rig) -> float:
    states: dict[str, bytes] = {}
    start = time.monotonic()
    consumer = Consumer(consumer_config(made.settings, "bench-read-all"))
    consumer.assign([TopicPartition(DIFFS, number, 0) for number in range(made.settings.partitions)])
    ended = 0
    while ended < made.settings.partitions:
        for message in consumer.consume(5_000, 1.0):
            error = message.error()
            if error is None:
                diff = orjson.loads(message.value() or b"")
                name = diff["conversation"]
                states[name] = orjson.dumps(apply(_at(states, name, diff["base"]), diff))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (its only name)
                ended += 1
    consumer.close()
    return time.monotonic() - start


def _at(states: dict[str, bytes], name: str, base: int) -> dict[str, object]:
    found: dict[str, object] = orjson.loads(states[name]) if base else empty(name)
    return found
