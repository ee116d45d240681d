"""What the checks need: committed records of all topics, the shop's ledger, the gateway's outbox, a recovery."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import orjson

from memory.snapshots import SnapshotStore
from schemas.topics import TOPICS
from streams.metrics import RecordedMetrics
from streams.reader import KafkaSource, ReadError
from streams.runtime.ports import Record
from streams.runtime.recovery import recover
from streams.runtime.snapshotting import LocalSnapshots
from streams.runtime.wire import DIFFS
from streams.settings import Settings
from streams.worker import snapshots_of
from tests.chaos import checks
from tests.chaos.checks import Story, Violation

_LOG = logging.getLogger("chaos")
READ = tuple(name for name in TOPICS if not name.startswith("channel.raw"))
T = TypeVar("T")
BACK_S = 60.0
SETTLE_S = 45.0  # what is only late comes within this
Starts = Mapping[tuple[str, int], int]


def ends(settings: Settings) -> dict[tuple[str, int], int]:
    """Where every topic partition ends now."""

    def all_ends() -> dict[tuple[str, int], int]:
        with KafkaSource(settings) as source:
            return {(topic, number): source.bounds(topic, number)[1]
                    for topic in READ for number in range(settings.partitions)}  # fmt: skip

    return _patiently(all_ends)


def records(settings: Settings, starts: Starts) -> list[Record]:
    """All committed records from there on; within a partition in offset order."""

    def all_records() -> list[Record]:
        with KafkaSource(settings) as source:
            return list(source.read([(topic, number, offset) for (topic, number), offset in starts.items()]))

    return _patiently(all_records)


def _patiently(ask: Callable[[], T]) -> T:
    """Ask again while the broker is only just back. Raises ReadError after BACK_S."""
    until = time.monotonic() + BACK_S
    while True:
        try:
            return ask()
        except ReadError:
            if time.monotonic() > until:
                raise
        time.sleep(0.5)


def outbox(data_dir: Path) -> list[tuple[str, str, int]]:
    """The gateway's messages: conversation, message id, attempt."""
    with contextlib.closing(sqlite3.connect(data_dir / "outbox.sqlite", timeout=10)) as db:
        return list(db.execute("select conversation, message_id, attempt from outbox"))


def effects(settings: Settings) -> list[dict[str, Any]]:
    """The shop's ledger."""
    found: list[dict[str, Any]] = httpx.get(f"{settings.shop_url}/ledger", timeout=30).json()["effects"]
    return found


def examine(settings: Settings, starts: Starts,
            keep: Callable[[str], bool]) -> tuple[list[Violation], dict[str, Story]]:  # fmt: skip
    """Every check on the conversations to keep; waits for what may only be late."""
    until = time.monotonic() + SETTLE_S
    while True:
        known = checks.stories(records(settings, starts), keep)
        found = [violation for story in known.values() for violation in checks.check(story)]
        if not found or not all(violation.healing for violation in found) or time.monotonic() > until:
            break
        time.sleep(1)
    customers = {conversation.rpartition("/")[2]: conversation for conversation in known}
    done = [row for row in effects(settings) if row["customer_id"] in customers]
    found += checks.ledger(done, customers)
    found += checks.shown([row[:2] for row in outbox(settings.data_dir)], known)
    return found, known


def examine_all(settings: Settings) -> list[Violation]:
    """Every check from the first record on, partition by partition, while a worker still handles what comes."""
    found: list[Violation] = []
    for number in range(settings.partitions):
        found += examine(settings, {(topic, number): 0 for topic in READ}, lambda _: True)[0]
    return found


def rebuilt_all(settings: Settings) -> list[Violation]:
    """What a fresh owner rebuilds, from the checkpoint and from each snapshot. All workers must have ended."""
    found: list[Violation] = []
    for number in range(settings.partitions):
        known = checks.stories(records(settings, {(DIFFS, number): 0}))
        found += _rebuilt(settings, number, known)
    return found


def _rebuilt(settings: Settings, number: int, known: Mapping[str, Story]) -> Iterator[Violation]:
    states = recover(settings, number, lambda: False).states
    yield from checks.recovered(known, states)
    for snapshots in _folders(settings):
        again = recover(settings, number, lambda: False, snapshots).states
        for conversation, encoded in states.items():
            other = again.get(conversation) or snapshots.find(number, conversation)
            if other is None or orjson.loads(other) != orjson.loads(encoded):
                yield Violation("snapshot", conversation, None, f"{DIFFS} [{number}]",
                                "a local snapshot leads to another state than the checkpoint")  # fmt: skip


def _folders(settings: Settings) -> Iterator[LocalSnapshots]:
    """Every snapshot folder that a worker left behind."""
    store, _ = snapshots_of(settings, RecordedMetrics())
    cluster, topic = store.cluster, store.topic
    with store:
        pass
    for folder in sorted((settings.data_dir / "snapshots").iterdir()):
        with SnapshotStore(folder, cluster, topic, RecordedMetrics().count, _LOG) as own:
            yield LocalSnapshots(own, lambda: 0)


def conversations_of(shop: str) -> Callable[[str], bool]:
    """Conversations of one phase's shop."""
    prefix = f"{shop}/"
    return lambda conversation: conversation.startswith(prefix)


def first_diff(settings: Settings, starts: Starts, partitions: Sequence[int], after_ms: int) -> int | None:
    """Append time of the first committed diff of these partitions after a moment."""
    wanted = {place: offset for place, offset in starts.items() if place[0] == DIFFS and place[1] in partitions}
    times = [record.time for record in records(settings, wanted) if record.time > after_ms]
    return min(times, default=None)
