"""The dead-letter limit: 100 in a row go by, one more pauses the topic partition, until a command lets it go on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, field

from memory.sealing import KeyStore
from streams.demo.run import environment
from streams.reader import KafkaSource
from streams.replay.letters import paused
from tests.chaos.stand import Process, Stand, now_ms
from tests.fuzz import rig
from tests.fuzz.account import Account, Place
from tests.fuzz.cases import Case, Maker
from tests.fuzz.values import cut_json

TOPIC, OTHER, PARTITION = "messages.normalized", "channel.events", 1
WAIT_S = 60.0
QUIET_S = 2.0  # what is held would be decided within this


@dataclass
class Found:
    """What was wrong."""

    faults: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)


class Limit:
    """The phase: one account over it, on top of what the run left behind."""

    def __init__(self, stand: Stand, seed: str, keys: KeyStore) -> None:
        self.stand = stand
        self.settings = stand.settings
        self.found = Found()
        self.account = Account(stand.settings, keys)
        self.bad = Maker(TOPIC, f"{seed}-limit-{now_ms()}", stand.settings.partitions)
        self.other = Maker(OTHER, f"{seed}-limit-{now_ms()}", stand.settings.partitions)

    def send(self, *cases: Case) -> list[Place]:
        """Send, and remember where they stand."""
        before = set(self.account.sent)
        rig.send(self.settings, cases, self.account.sent)
        return [place for place in self.account.sent if place not in before]

    async def decided(self, what: str, places: list[Place]) -> None:
        """Wait until all of them are decided, and their dead letters there."""
        for _ in range(int(WAIT_S * 2)):
            self.account.look()
            if all(place in self.account.decided for place in places) and not self._late(places):
                return
            await asyncio.sleep(0.5)
        self.found.faults.append(f"{what}: not decided within {WAIT_S:.0f} s, {TOPIC} [{PARTITION}]")

    def _late(self, places: list[Place]) -> int:
        return sum(self.account._missing(place, self.account.sent[place]) for place in places)

    async def held(self, what: str, places: list[Place]) -> None:
        """None of them is decided, and the partition's other topics go on."""
        await self.decided(f"{what}: another topic of the partition", self.send(self.other.valid(PARTITION)))
        await asyncio.sleep(QUIET_S)
        self.account.look()
        early = [place for place in places if place in self.account.decided]
        if early:
            self.found.faults.append(f"{what}: {len(early)} were decided while {TOPIC} is paused, first {early[0]}")

    def paused(self) -> list[tuple[str, int]]:
        """The topic partitions that are paused."""
        with KafkaSource(self.settings) as source:
            return [one[:2] for one in paused(source)]

    def expect(self, what: str, *, stands: bool) -> None:
        """Whether the topic partition is paused must be so."""
        now = self.paused()
        if now != ([(TOPIC, PARTITION)] if stands else []):
            self.found.faults.append(f"{what}: paused are {now}")

    def command(self, *arguments: str) -> None:
        """`interlock ARGUMENTS`, which must end well."""
        surrounding = {key: value for key, value in os.environ.items() if not key.startswith("INTERLOCK_")}
        command = [sys.executable, "-m", "streams.cli", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300,
                              env={**surrounding, **environment(self.settings)})  # fmt: skip
        if done.returncode:
            said = (done.stderr or done.stdout)[-800:]
            self.found.faults.append(f"interlock {' '.join(arguments)} ended with {done.returncode}: {said}")

    def rubbish(self, count: int) -> list[Case]:
        """So many bad records."""
        return [cut_json(self.bad, PARTITION) for _ in range(count)]


async def check(stand: Stand, worker: Process, seed: str, keys: KeyStore) -> Found:
    """The whole phase, with a restart of the worker in its middle."""
    phase = Limit(stand, seed, keys)
    phase.account.look()
    limit = stand.settings.dlq_limit
    await phase.decided("a row as long as the limit", phase.send(phase.bad.valid(PARTITION), *phase.rubbish(limit)))
    phase.expect(f"after {limit} in a row", stands=False)
    await phase.decided("one more", phase.send(*phase.rubbish(1)))
    held = phase.send(*phase.rubbish(3), phase.bad.valid(PARTITION), *phase.rubbish(3), phase.bad.valid(PARTITION))
    await phase.held("over the limit", held)
    phase.expect("over the limit", stands=True)
    if rig.counted_pauses(worker) != 1:
        phase.found.faults.append(f"the worker's metrics count {rig.counted_pauses(worker)} pauses, not 1")
    await stand.stop(worker)
    again = stand.worker("restarted")
    await stand.opened(again)
    await phase.held("after a restart", held)
    phase.expect("after a restart", stands=True)
    phase.command("dlq", "list", "--topic", TOPIC)
    phase.command("dlq", "resume", TOPIC, str(PARTITION))
    await phase.decided("after `dlq resume`", held)
    phase.expect("after `dlq resume`", stands=False)
    phase.found.faults += map(str, phase.account.verdicts())
    phase.found.crashes += rig.well(stand, [again])
    print("limit: FAULTS" if phase.found.faults else (
        f"limit: {limit} in a row went by, one more paused {TOPIC} [{PARTITION}]; it stayed so across a restart, and"
        f" {len(held)} held records went on after `interlock dlq resume`"))  # fmt: skip
    return phase.found
