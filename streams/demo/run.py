"""The demo: a real broker, shop, gateway, worker, exporter and keeper as processes, and all scripted customers."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson
from rich.console import Console

from streams.broker import EmbeddedKafka
from streams.clock import fresh_id
from streams.demo.children import Children, free_ports
from streams.demo.report import show
from streams.reader import KafkaSource
from streams.replay.memory import read_register
from streams.replay.memory_entries import entries_of, text_of
from streams.scenario.format import Scenario, load_folder
from streams.scenario.http import connected
from streams.scenario.player import Played, play
from streams.settings import Settings
from streams.topics import PARTITIONS as PARTITIONS_SETTING
from streams.topics import TopicsError, apply_topics

SCENARIOS = Path(__file__).parent / "scenarios"
READY_S = 60.0
LOOK_S = 0.2
PARTITIONS = 4  # enough to show several owners' partitions, and quick to create

# The demo's deadlines, so that nobody waits two minutes for a follow-up. The product's own are in `Settings`.
SHORT = {
    "window_ms": 6_000, "window_grace_ms": 1_000, "delivered_ms": 2_000, "displayed_ms": 4_000, "follow_up_ms": 4_000,
    "session_gap_ms": 6_000,
}  # fmt: skip


def demo_settings(base: Settings, folder: Path, run: str) -> Settings:
    """Settings of one run: short deadlines, free ports, a folder of its own."""
    gateway, shop, metrics, exporter, keeper = free_ports(5)
    return base.model_copy(update={
        **SHORT, "data_dir": folder, "group": f"{base.group}-{run}",
        "gateway_port": gateway, "shop_port": shop, "metrics_port": metrics, "exporter_port": exporter,
        "keeper_port": keeper,
        "gateway_url": f"http://127.0.0.1:{gateway}", "shop_url": f"http://127.0.0.1:{shop}",
    })  # fmt: skip


def environment(settings: Settings) -> dict[str, str]:
    """The settings as a child reads them."""
    values = settings.model_dump(mode="json", exclude_none=True)
    return {
        f"INTERLOCK_{name.upper()}": orjson.dumps(value).decode() if isinstance(value, dict | list) else str(value)
        for name, value in values.items()
    }


@contextlib.contextmanager
def broker(base: Settings, settings: Settings, console: Console) -> Iterator[Settings]:
    """The given cluster, or one that is started for this run and stopped after it."""
    if base.bootstrap_servers:
        _prepare(base.bootstrap_servers, settings)
        yield settings
        return
    console.print("Starting Kafka (the first start downloads it) ...")
    with EmbeddedKafka(settings.data_dir) as own:
        started = settings.model_copy(update={"bootstrap_servers": own.bootstrap, "partitions": PARTITIONS})
        _prepare(own.bootstrap, started)
        yield started


def _prepare(bootstrap: str, settings: Settings) -> None:
    """All topics are there. Raises TopicsError when one has another number of partitions than the settings say."""
    wrong = [one for one in apply_topics(bootstrap, settings).differences if one.setting == PARTITIONS_SETTING]
    if wrong:
        raise TopicsError(str(wrong[0]))


async def _until_ready(client: httpx.AsyncClient, children: Children, urls: Sequence[str]) -> None:
    """Every child answers. Raises ChildError when one ends, TimeoutError after READY_S."""
    async with asyncio.timeout(READY_S):
        for url in urls:
            while True:
                children.check()
                with contextlib.suppress(httpx.HTTPError):
                    if (await client.get(url)).is_success:
                        break
                await asyncio.sleep(LOOK_S)


async def _watch(children: Children) -> None:
    while True:
        children.check()
        await asyncio.sleep(LOOK_S)


async def play_all(settings: Settings, scenarios: Sequence[Scenario], children: Children) -> list[Played]:
    """All customers at once, each over its own connections. Raises ChildError when a part of the system ends."""
    async with httpx.AsyncClient() as client:
        health = [f"{settings.shop_url}/healthz", f"{settings.gateway_url}/healthz",
                  f"http://127.0.0.1:{settings.metrics_port}/metrics"]  # fmt: skip
        await _until_ready(client, children, health)
    async with connected(settings) as world, _beside(world.review(), _watch(children)):
        results = list(await asyncio.gather(*(play(scenario, world) for scenario in scenarios)))
        await world.score(results)
        return results


@contextlib.asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Endless work beside the body: when it fails the body is cancelled, and the failure raised."""
    body = asyncio.current_task()
    failed: list[BaseException] = []

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and body:
            failed.append(error)
            body.cancel()

    tasks = [asyncio.create_task(one) for one in work]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    except asyncio.CancelledError:
        if failed:
            raise failed[0] from None
        raise
    finally:
        for task in tasks:
            task.cancel()


def _own(scenarios: Sequence[Scenario], run: str) -> list[Scenario]:
    """The scenarios in a shop of this run, so that nothing of an earlier run is in their conversations."""
    return [scenario.model_copy(update={"shop": f"{scenario.shop}-{run}"}) for scenario in scenarios]


def run_demo(base: Settings, console: Console, folder: Path = SCENARIOS, *, keep: bool = False) -> int:
    """Play all scenarios of a folder; 1 if any came out otherwise than expected, else 0."""
    run = fresh_id("run")[-8:]
    scenarios = _own(load_folder(folder), run)
    data = base.data_dir / "demo"
    EmbeddedKafka(data).stop()  # an earlier demo's, if it was killed
    shutil.rmtree(data, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        settings = stack.enter_context(broker(base, demo_settings(base, data, run), console))
        children = stack.enter_context(Children(data / "logs", environment(settings)))
        for name in ("shop", "gateway", "worker", "exporter", "keeper"):
            children.start(name, name)
        console.print(f"Playing {len(scenarios)} scripted customers against real processes; logs: {data / 'logs'}")
        results = asyncio.run(play_all(settings, scenarios, children))
        show(console, results, remembered(settings, results))
        _where(console, settings)
        if keep:
            _wait(console)
    return 1 if any(played.faults for played in results) else 0


def remembered(settings: Settings, results: Sequence[Played]) -> dict[str, list[str]]:
    """What `interlock memory history` shows of each key that a scenario says is remembered."""
    shown = {}
    with KafkaSource(settings) as source:
        for one in (played.scenario for played in results if played.scenario.expect.remembers):
            found = read_register(source, one.conversation)
            for key in (f"{one.conversation}/{key}" for key in one.expect.remembers):
                entries = entries_of(found.register.history(key), found.decisions, key)
                shown[key] = [text_of(entry) for entry in entries]
    return shown


def _where(console: Console, settings: Settings) -> None:
    console.print(
        f"Health windows are {settings.window_ms // 1000} s here (the product's are 300 s), and the delivery deadlines "
        f"are shortened too: by settings, for the demo only.\n"
        f"Metrics: worker http://127.0.0.1:{settings.metrics_port}/metrics, session health "
        f"http://127.0.0.1:{settings.exporter_port}/metrics, gateway {settings.gateway_url}/metrics, "
        f"keeper http://127.0.0.1:{settings.keeper_port}/metrics\n"
        f"Broker: {settings.bootstrap_servers}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _wait(console: Console) -> None:
    console.print("Everything keeps running; Ctrl-C ends it.")
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            asyncio.run(asyncio.sleep(1))
