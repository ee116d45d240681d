"""A whole system with the stores behind it: what was said, what staff decided, and what a search then finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory.facts.port import Fact
from memory.register import Register
from schemas.memory import MemoryWrite
from streams.replay.local import LocalSource
from streams.replay.memory import Found, decisions_for, read_register, trace_of
from streams.replay.memory_entries import entries_of
from tests.promises.stand import Person, Stand
from tests.streams.keeping import Bench, real


class Remembered:
    """A stand whose memory.writes are kept in embedded stores when it is asked."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.stand, self._bench = stand, Bench(folder, log=stand.lock.log)

    def found(self) -> Found:
        """The register from the topics, as the commands read it."""
        log = self.stand.lock.log
        records = [one for topic in ("memory.writes", "human.decisions") for one in log.records(topic)]
        return read_register(LocalSource(records, 4))

    @property
    def register(self) -> Register:
        """The writes alone."""
        return self.found().register

    def entries(self, person: Person, key: str) -> list[dict[str, Any]]:
        """What `interlock memory history` shows of a key."""
        found, name = self.found(), f"{person.conversation}/{key}"
        return entries_of(found.register.history(name), found.decisions, name)

    async def roll_back(self, trace: str, by: str = "agent-7") -> str:
        """What `interlock memory rollback --trace T --yes` publishes, decided; the rollback's own trace."""
        number = f"dec-rollback-{len(self.found().decisions)}"
        plan = self.register.rollback(trace)
        for conversation, decision in decisions_for(plan, number, by, "wrong", self.stand.now).items():
            await self.stand.world.publish("human.decisions", conversation, decision, number)
        await self.stand.lock.settle()
        return trace_of(number)

    def search(self, person: Person, text: str) -> list[Fact]:
        """What is recalled of the person, after the keeper applied all there is."""

        async def work() -> list[Fact]:
            await self._bench.keep()
            return [hit.fact for hit in await self._bench.facts.search("demo", text, customer=person.conversation)]

        return real(work())

    def last(self, person: Person, key: str) -> MemoryWrite:
        """The newest write of a key."""
        return self.register.history(f"{person.conversation}/{key}")[-1]
