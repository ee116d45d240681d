"""A worker process with the test table, for tests that kill or freeze it."""

from __future__ import annotations

import asyncio
import sys

from memory.sealing import MemoryKeyStore
from streams.logs import log_to_stderr
from streams.metrics import RecordedMetrics
from streams.settings import Settings
from streams.worker import work
from tests.streams.runtime.support import rows

if __name__ == "__main__":
    log_to_stderr("INFO")
    sys.exit(asyncio.run(work(Settings(), rows(), MemoryKeyStore(), {}, RecordedMetrics())))
