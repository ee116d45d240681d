"""recall_p95: the top 5 of 100,000 facts with filters, the embedded store and Weaviate side by side."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.report import Result, less_is_better, percentile
from memory.facts.embedded import EmbeddedFacts
from memory.facts.port import Fact, FactStore
from memory.facts.weaviate import WeaviateFacts
from streams.stores.base import StoreError
from streams.stores.weaviate import STORE, WeaviateServer

FACTS, CUSTOMERS, BATCH = int(os.environ.get("BENCH_FACTS", "100000")), 5_000, 1_000
ASKED = 300
SHOP, START = "bench", 1_764_550_000_000
KINDS = ("preference", "address", "complaint", "promise", "item")
THINGS = ("连衣裙", "dress", "耳机", "phone case", "保温杯", "sneakers", "羽绒服", "suitcase", "电饭煲", "lipstick")
COLOURS = ("red", "蓝色", "black", "白色", "green", "粉色")
SAID = ("希望退款并投诉质量", "wants a refund because it is broken", "要求更换收货地址到公司", "prefers 顺丰",
        "答应周五之前补发", "asked for a company invoice", "尺码偏小想换大一号", "likes evening delivery")  # fmt: skip
Query = tuple[str, str, str, int]  # text, customer, kind, since


def run() -> Iterator[Result]:
    """Both rows: within a customer, and over the whole shop."""
    facts, queries = _facts(), _queries()
    with tempfile.TemporaryDirectory() as folder:
        ours = asyncio.run(_measured(EmbeddedFacts(Path(folder) / "facts"), facts, queries))
        theirs: dict[str, float] | None = None
        why = "no Weaviate: `make stores`"
        try:
            theirs = _weaviate(Path(folder) / "weaviate", facts, queries) if _there() else None
        except StoreError as error:
            why = str(error)
    yield _result("recall_p95", "customer", "one customer's facts of a kind since a time", ours, theirs, why)
    yield _result("recall_shop_p95", "shop", "the whole shop's facts of a kind since a time", ours, theirs, why)


def _there() -> bool:
    return bool(os.environ.get(STORE.setting)) or STORE.found() is not None


def _weaviate(folder: Path, facts: Sequence[Fact], queries: Sequence[Query]) -> dict[str, float]:
    given = os.environ.get(STORE.setting)
    if given:
        return asyncio.run(_measured(WeaviateFacts(given, timeout_s=60, collection="InterlockBench"), facts, queries))
    server = WeaviateServer(folder)
    try:
        return asyncio.run(_measured(WeaviateFacts(server.start(), timeout_s=60), facts, queries))
    finally:
        server.stop()


async def _measured(store: FactStore, facts: Sequence[Fact], queries: Sequence[Query]) -> dict[str, float]:
    """P95 in ms of each way to ask, and facts stored per second."""
    started = time.perf_counter()
    for at in range(0, len(facts), BATCH):
        result = await store.put(facts[at : at + BATCH])
        assert not result.failed
    rate = len(facts) / (time.perf_counter() - started)
    measured = {"stored": rate}
    for name in ("customer", "shop"):
        times = []
        for text, customer, kind, since in [*queries[:5], *queries]:  # the first few open files and fill indexes
            begun = time.perf_counter_ns()
            await store.search(
                SHOP, text, customer=customer if name == "customer" else None, kinds=(kind,), since_ms=since
            )
            times.append((time.perf_counter_ns() - begun) / 1e6)
        measured[name] = percentile(times[5:], 0.95)
    await store.close()
    return measured


def _result(
    name: str, way: str, what: str, ours: dict[str, float], theirs: dict[str, float] | None, why: str
) -> Result:
    stored = f"stored {ours['stored']:.0f} facts/s" + ("" if theirs is None else f", Weaviate {theirs['stored']:.0f}")
    against = "baseline: Weaviate, same facts" if theirs else f"no baseline: {why}"
    note = f"embedded, top 5 of {FACTS:,} facts of {CUSTOMERS:,} customers, {what}; {stored}; {against}"
    return less_is_better(name, ours[way], "ms", None if theirs is None else theirs[way], ASKED, note)


def _facts() -> list[Fact]:
    chosen = random.Random(5)
    return [
        Fact(SHOP, f"{SHOP}/web/u{number % CUSTOMERS}", f"k{number}", KINDS[number % len(KINDS)],
             f"{chosen.choice(SAID)} {chosen.choice(COLOURS)} {chosen.choice(THINGS)} OD{100_000 + number}",
             f"w{number}", f"t{number}", f"s{number // 4}", START + number * 1000)
        for number in range(FACTS)
    ]  # fmt: skip


def _queries() -> list[Query]:
    chosen = random.Random(6)
    return [
        (f"{chosen.choice(COLOURS)} {chosen.choice(THINGS)} {chosen.choice(('退款', 'refund', '地址', 'invoice'))}",
         f"{SHOP}/web/u{chosen.randrange(CUSTOMERS)}", chosen.choice(KINDS),
         START + chosen.randrange(FACTS // 2) * 1000)
        for _ in range(ASKED)
    ]  # fmt: skip
