"""Rubbish on every input topic of a real worker: nothing crashes, and every record is accounted for.

usage: python -m tests.fuzz.run --records N [--seed S] [--only TOPIC,TOPIC] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path

from memory.key_file import open_key_store
from schemas.topics import INPUT_TOPICS, RAW_TOPIC
from streams.reader import KafkaSource
from tests.chaos.stand import Process, Stand, StandError, stand
from tests.fuzz import limit, raw, rig
from tests.fuzz.account import Account, Place
from tests.fuzz.cases import NO_DIFF, Expect, Maker
from tests.fuzz.plan import topic_plan

SHOWN = 25  # faults that are printed in words
STALL_S = 45.0  # no record more was decided for so long: what is missing is missing
DROPS_S = 30.0


class Run:
    """One run: its options, and what came of it."""

    def __init__(self, records: int, seed: str, topics: tuple[str, ...]) -> None:
        self.records, self.seed, self.topics = records, seed, topics
        self.crashes: list[str] = []
        self.faults: list[str] = []
        self.sent = 0

    async def main(self, made: Stand) -> None:
        """All phases on one stand."""
        rig.raise_limits(made.settings)
        worker = made.worker("fuzzed")
        await made.opened(worker)
        keys = open_key_store(made.settings.data_dir)
        account = Account(made.settings, keys)
        began = time.monotonic()
        makers = [Maker(topic, self.seed, made.settings.partitions) for topic in self.topics]
        plans = [topic_plan(maker, self.records, keys) for maker in makers]
        foreign = raw.Foreign(made, self.seed, self.records, keys)
        rig.send(made.settings, rig.in_turn([*plans, foreign.plan()]), account.sent)
        foreign.take(account.sent)
        self.sent = len(account.sent) + len(foreign.sent)
        print(f"seed {self.seed}: {self.sent} records sent in {time.monotonic() - began:.0f} s", flush=True)
        await self._settle(account, worker)
        self.faults += map(str, account.verdicts())
        await self._drops(account, worker)
        self.faults += foreign.faults()
        self.crashes += rig.well(made, (worker, foreign.process))
        table(account, self.topics, foreign, time.monotonic() - began)
        if worker.alive and not self.crashes:
            paused = await limit.check(made, worker, self.seed, keys)
            self.faults += paused.faults
            self.crashes += paused.crashes

    async def _settle(self, account: Account, worker: Process) -> None:
        """Read until everything is accounted for, the worker has ended, or nothing moves any more."""
        left, moved = -1, time.monotonic()
        while time.monotonic() - moved < STALL_S and worker.alive:
            account.look()
            missing = account.missing()
            if not missing:
                return
            if missing != left:
                left, moved = missing, time.monotonic()
            await asyncio.sleep(1)

    async def _drops(self, account: Account, worker: Process) -> None:
        """What has no decision was dropped by its position; the worker has counted exactly these."""
        known = all_places(account)
        for _ in rig.patiently(DROPS_S):
            account.look()
            gone = [place for place in known if place not in account.decided]
            counted = rig.counted_drops(worker) if worker.alive else 0
            if len(gone) <= counted:
                break
        ours = sum(case.expect in NO_DIFF for case in account.sent.values())
        if len(gone) != counted or len(gone) < ours:
            self.faults.append(f"{len(gone)} records have no decision ({ours} of them were forged so), and the worker's"
                               f" metrics count {counted} dropped or set aside")  # fmt: skip


def all_places(account: Account) -> list[Place]:
    """Every record on the input topics now, whoever wrote it."""
    settings = account.settings
    with KafkaSource(settings) as source:
        starts = [(topic, number, 0) for topic in INPUT_TOPICS for number in range(settings.partitions)]
        return [(record.topic, record.partition, record.offset) for record in source.read(starts)]


def table(account: Account, topics: tuple[str, ...], foreign: raw.Foreign, seconds: float) -> None:
    """What became of the records, by topic."""
    print(f"\n{'topic':<20} {'sent':>6} {'valid':>6} {'handled':>8} {'dropped':>8}  dead letters by code")
    for topic in topics:
        cases = [case for place, case in account.sent.items() if place[0] == topic]
        valid = sum(case.expect is Expect.HANDLED for case in cases)
        dropped = sum(case.expect in NO_DIFF for case in cases)
        _row(topic, (len(cases), valid, account.handled(topic), dropped), account.codes(topic))
    _row(RAW_TOPIC, (len(foreign.sent), foreign.valid, foreign.handled, 0), foreign.codes)
    print(f"all in {seconds:.0f} s\n", flush=True)


def _row(topic: str, counts: tuple[int, int, int, int], codes: Counter[str]) -> None:
    sent, valid, handled, dropped = counts
    shown = " ".join(f"{code} {count}" for code, count in sorted(codes.items())) or "-"
    print(f"{topic:<20} {sent:6d} {valid:6d} {handled:8d} {dropped:8d}  {shown}")


def line(name: str, value: int, unit: str, count: int, note: str) -> str:
    """One measure as a JSON line."""
    values = {"name": name, "value": value, "unit": unit, "baseline": None, "ratio": None, "n": count, "note": note}
    return json.dumps(values)


def main() -> int:
    """The command; 1 when a record is not accounted for or anything crashed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000, help="bad records on each input topic")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default="", help="topics, with commas")
    parser.add_argument("--keep", type=Path, default=None, help="a folder that stays, with all logs")
    options = parser.parse_args()
    run = Run(options.records, options.seed, tuple(filter(None, options.only.split(","))) or INPUT_TOPICS)
    began = time.monotonic()
    with stand(options.keep) as made:
        try:
            asyncio.run(run.main(made))
        except StandError as error:
            run.crashes.append(str(error))
    for words in (*run.crashes, *run.faults[:SHOWN]):
        print(f"FAULT (seed {run.seed}): {words}")
    if len(run.faults) > SHOWN:
        print(f"... and {len(run.faults) - SHOWN} more")
    note = f"seed {run.seed}, {options.records} bad records a topic, {time.monotonic() - began:.0f} s in all"
    print(line("fuzz_crashes", len(run.crashes), "crashes", run.sent, note))
    print(line("fuzz_unaccounted", len(run.faults), "records", run.sent, note))
    return 1 if run.crashes or run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
