"""What masking and sealing cost a message on its way in, in one process, with the key file on disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.privacy.canaries import canaries
from bench.report import Result, less_is_better, percentile
from memory.key_file import open_key_store
from memory.sealing import KeyStore
from schemas.events import MessageBody, RawEvent
from streams.intake import intake

COUNT = 4_000
CUSTOMERS = 200
PLAIN = "订单1001的物流到哪里了，麻烦看一下，谢谢"


def run() -> list[Result]:
    """Intake of a message with something to hide, against one of the same kind with nothing."""
    texts = [canary.text for canary in canaries(COUNT)]
    with tempfile.TemporaryDirectory() as folder:
        keys = open_key_store(Path(folder))
        for number in range(CUSTOMERS):
            keys.key_for(f"demo/web/u-{number}")  # a new customer's key costs a sync of the disk, once
        plain = _times(keys, [PLAIN] * COUNT)
        sealed = _times(keys, texts)
        keys.close()
    note = "CPU to mask and seal a message with a sensitive value; baseline: intake of one with nothing to hide"
    return [less_is_better(f"sealing_p{share}", percentile(sealed, share / 100), "us", percentile(plain, share / 100),
                           COUNT, note) for share in (50, 95)]  # fmt: skip


def _times(keys: KeyStore, texts: list[str]) -> list[float]:
    """CPU microseconds of each intake: on a busy machine the wall clock says more of the others."""
    times = []
    for number, text in enumerate(texts):
        body = MessageBody(kind="message", message_id=f"m-{number}", text=text)
        raw = RawEvent(id=f"e-{number}", shop="demo", channel="web", sender=f"u-{number % CUSTOMERS}", body=body)
        started = time.thread_time()
        intake(raw, keys)
        times.append((time.thread_time() - started) * 1e6)
    return times
