"""The keeper as a process: Kafka, the stores of the settings and the key file, until a signal."""

from __future__ import annotations

import asyncio
import signal

from memory.key_file import open_key_store
from streams.clock import SystemClock
from streams.keeper import Keeper
from streams.keeper_source import KafkaKeeping
from streams.memory_stores import open_stores
from streams.metrics import MetricsPort
from streams.settings import Settings


async def run_keeper(settings: Settings, metrics: MetricsPort) -> None:
    """Until SIGTERM or Ctrl-C. Raises KeeperStoppedError, KafkaException, or the stores' own errors."""
    keys = open_key_store(settings.data_dir, settings.master_key_file)
    stores, source = open_stores(settings), KafkaKeeping(settings)
    keeper = Keeper(source, stores, keys, metrics, SystemClock())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, keeper.stop)
    try:
        await keeper.run()
    finally:
        source.close()
        await stores.close()
        keys.close()
