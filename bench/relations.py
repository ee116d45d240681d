"""path_query_p95, marked_down_p95: questions over 30 days among a million relations, embedded and in Neo4j."""

from __future__ import annotations

import asyncio
import math
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.report import Result, less_is_better, percentile
from memory.relations.embedded import EmbeddedRelations
from memory.relations.neo4j import Neo4jRelations
from memory.relations.port import Node, Relation, RelationStore
from streams.stores import neo4j

CUSTOMERS = 96_000  # of 10 or 11 relations each: a million
AGENTS = 500
DAY_MS = 86_400_000
DAYS = 180
END = 1_780_000_000_000
CHUNK = 5_000
LOAD_SECONDS = 180.0  # Neo4j is measured with what it has taken by then
WARM_UP, QUERIES, SURVEYS = 500, 1_000, 50
SHOP = "demo"


@dataclass(frozen=True)
class Measured:
    """P95 of one customer's path and of the agents marked down, in ms, and over how many relations."""

    path: float
    survey: float
    count: int


def run() -> Iterator[Result]:
    """Both rows; the baseline is Neo4j, by INTERLOCK_RELATIONS_URL or from its jars if they are there."""
    with tempfile.TemporaryDirectory() as folder:
        embedded = asyncio.run(_measured(lambda: EmbeddedRelations(Path(folder) / "relations.db"), math.inf))
        real = _neo4j(Path(folder) / "neo4j")
    note = f"embedded, {embedded.count} relations, {DAYS} days"
    note += f"; baseline Neo4j {neo4j.VERSION}, {real.count}" if real else "; no Neo4j here: make stores"
    path, survey = (real.path, real.survey) if real else (None, None)
    yield less_is_better("path_query_p95", embedded.path, "ms", path, QUERIES, f"one customer, {note}")
    yield less_is_better("marked_down_p95", embedded.survey, "ms", survey, SURVEYS, f"all customers, {note}")


def relations(customer: int) -> Iterator[Relation]:
    """Ten relations of one customer, the same in every run."""
    seed = random.Random(customer)
    name = f"c{customer}"
    user, serial = Node("User", name), 0

    def one(kind: str, start: Node, end: Node, at: int, **fields: str) -> Relation:
        nonlocal serial
        serial += 1
        return Relation(SHOP, name, kind, start, end, at, f"w-{name}-{serial}", f"t-{name}", at, fields)

    made = [(Node("Order", f"OD{customer}-{number}"), _moment(seed)) for number in range(4)]
    for order, at in made:
        yield one("MADE_ORDER", user, order, at)
    for number in range(1 + customer % 2):
        order, at = made[number]
        at = min(END, at + seed.randrange(10 * DAY_MS))
        complaint = Node("Complaint", f"K{customer}-{number}", {"reason": seed.choice(("return", "delivery", "price"))})
        agent = Node("Agent", f"a{seed.randrange(AGENTS)}")
        yield one("FILED_COMPLAINT", user, complaint, at)
        yield one("ABOUT", complaint, order, at)
        yield one("HANDLED_BY", complaint, agent, at)
    agent = Node("Agent", f"a{seed.randrange(AGENTS)}")
    if customer % 2 == 0:
        yield one("HANDLED_BY", made[2][0], agent, made[2][1])
        yield one("HANDLED_BY", made[3][0], agent, made[3][1])
    # of the last complaint, whose agent is checked a day later
    yield one("TRIGGERED_QUALITY_CHECK", complaint, agent, at + DAY_MS,
              result=seed.choice(("marked_down", "passed", "open")))  # fmt: skip


def _moment(seed: random.Random) -> int:
    return END - seed.randrange(DAYS * DAY_MS)


async def _measured(opened: Callable[[], RelationStore], load_s: float = LOAD_SECONDS) -> Measured:
    store = opened()
    try:
        customers, count = await _load(store, load_s)
        seed = random.Random(7)
        since = END - 30 * DAY_MS
        names = [f"c{seed.randrange(customers)}" for _ in range(WARM_UP + QUERIES)]
        paths = [await _timed(partial(store.customer_path, SHOP, name, since, END)) for name in names]
        surveys = [await _timed(lambda: store.marked_down_agents(SHOP, since, END)) for _ in range(SURVEYS + 20)]
        return Measured(percentile(paths[WARM_UP:], 0.95), percentile(surveys[20:], 0.95), count)
    finally:
        await store.close()


async def _load(store: RelationStore, load_s: float) -> tuple[int, int]:
    """How many customers and relations were taken before the time was up."""
    end, count = time.perf_counter() + load_s, 0
    for first in range(0, CUSTOMERS, CHUNK // 10):
        if time.perf_counter() > end:
            return first, count
        batch = [one for customer in range(first, first + CHUNK // 10) for one in relations(customer)]
        await store.merge(batch)
        count += len(batch)
    return CUSTOMERS, count


async def _timed(query: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await query()
    return (time.perf_counter() - started) * 1_000


def _neo4j(folder: Path) -> Measured | None:
    url, user = os.environ.get("INTERLOCK_RELATIONS_URL", ""), os.environ.get("INTERLOCK_RELATIONS_USER", "")
    password = os.environ.get("INTERLOCK_RELATIONS_PASSWORD", "")
    if url:
        return asyncio.run(_measured(lambda: Neo4jRelations(url, user, password, timeout_s=60)))
    if neo4j.found() is None:
        return None
    server = neo4j.Neo4jServer(folder, heap_mb=1_024, page_cache_mb=512, quick=False)
    url = server.start()
    try:
        return asyncio.run(_measured(lambda: Neo4jRelations(url, timeout_s=60)))
    finally:
        server.stop()
