"""Runs a recorded log through the steps again: `python -m tests.promises.rerun FILE` prints a hash of all diffs."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from memory.bus import empty
from memory.sealing import KeyStore
from streams.processors.wiring import rows
from streams.runtime.judge import Judge, Ports
from streams.runtime.local import LocalCommit, LocalLog, LocalOffsets, LocalSend
from streams.runtime.opening import opener
from streams.runtime.ports import Record
from streams.runtime.virtual import VirtualLoop
from streams.settings import Settings


def rerun(records: Iterable[Record], keys: KeyStore, settings: Settings) -> Iterator[tuple[bytes, bytes]]:
    """Each recorded diff, and the one that the steps make of its recorded input; no clock, no network, no effects."""
    placed = {(one.topic, one.partition, one.offset): one for one in records}
    log = LocalLog(VirtualLoop(0))
    ports = Ports(LocalCommit(log), LocalSend(log), LocalOffsets(log), VirtualLoop(0), keys, {}, open_seal=opener(keys))
    judge = Judge(rows(settings, keys), ports, settings.dlq_limit, lambda _: None)
    states: dict[str, Any] = {}
    for place, record in sorted(placed.items()):
        if place[0] != "state.diffs":
            continue
        recorded = orjson.loads(record.value or b"")
        cause, conversation = recorded["cause"], recorded["conversation"]
        given = placed[cause["topic"], cause["partition"], cause["offset"]]
        decided = judge.decide(states.get(conversation) or empty(conversation), given)
        again = {} if decided is None else decided.diff
        again |= {name: recorded[name] for name in ("handled", "unsent")}  # of the reader and the sender, no decision
        states[conversation] = None if decided is None else decided.after
        yield record.value or b"", orjson.dumps(again)


def main(file: Path) -> int:
    """Print the hash of the diffs as made again."""
    records, keys, settings = pickle.loads(file.read_bytes())  # noqa: S301 (written by the test a moment ago)
    asyncio.set_event_loop(asyncio.new_event_loop())
    digest = hashlib.sha256()
    for _, again in rerun(records, keys, settings):
        digest.update(again)
    sys.stdout.write(digest.hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
