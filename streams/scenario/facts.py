"""The keeper's part of a world in memory: what the register says is in the store of facts at once."""

from __future__ import annotations

import asyncio

from memory.facts.port import FactStore, FactsUnavailableError
from memory.keeping import fact_of
from schemas import codec
from schemas.memory import MemoryWrite
from schemas.topics import MEMORY_TOPIC
from streams.runtime.local import LocalLog
from streams.runtime.ports import Record


def keep_facts(log: LocalLog, store: FactStore) -> None:
    """Apply each write as it is appended, in order. What a store that is down does not take is not repeated here."""
    before, writes, keeping = log.on_append, list[MemoryWrite](), set[asyncio.Task[None]]()

    async def keep() -> None:
        while writes:
            fact = fact_of(writes.pop(0))
            try:
                await store.put([fact])
            except FactsUnavailableError:
                continue

    def appended(record: Record) -> None:
        before(record)
        if record.topic == MEMORY_TOPIC and record.value is not None:
            writes.append(codec.validate(MemoryWrite, codec.parse(record.value)))
            task = asyncio.get_running_loop().create_task(keep())
            keeping.add(task)
            task.add_done_callback(keeping.discard)

    log.on_append = appended
