"""normalise_p50, normalise_p95, normalised_per_s: a raw event to its NormalizedMessage, in one process."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

import orjson

from agents.understanding.model.examples import shipped_examples
from bench.report import Result, less_is_better, more_is_better, percentile
from bench.states import NOW
from memory.bus import empty
from memory.sealing import KeyStore, MemoryKeyStore, open_seal
from schemas.events import MessageBody, RawEvent
from schemas.messages import NormalizedMessage
from schemas.step import Draft, Input
from streams.intake import intake
from streams.processors.perception import row
from streams.settings import Settings

MESSAGES = 3_000
A_CONVERSATION = 6  # messages: references and windows see those before
WARM = 200


def run() -> list[Result]:
    """Three rows over the shipped example sentences of both languages, mixed."""
    texts = sorted(example.text for example in shipped_examples())
    random.Random(1).shuffle(texts)
    times = _times((texts * (1 + (WARM + MESSAGES) // len(texts)))[: WARM + MESSAGES])[WARM:]
    what = "masked, sealed, read by rules and intent model, pointed back in its window; zh and en mixed"
    rate = 1_000 * len(times) / sum(times)
    return [
        *(less_is_better(f"normalise_p{share}", percentile(times, share / 100), "ms", None, MESSAGES, what)
          for share in (50, 95)),
        more_is_better("normalised_per_s", rate, "1/s", None, MESSAGES, f"one process; {what}"),
    ]  # fmt: skip


def _times(texts: list[str]) -> list[float]:
    """Milliseconds of each message."""
    keys, step = MemoryKeyStore(), row(Settings(recall_ms=0), MemoryKeyStore()).step  # none waits for a store
    times: list[float] = []
    state: Mapping[str, Any] = {}
    for number, text in enumerate(texts):
        sender = f"u-{number // A_CONVERSATION}"
        if number % A_CONVERSATION == 0:
            state = empty(f"demo/web/{sender}")
        body = MessageBody(kind="message", message_id=f"m-{number}", text=text)
        raw = RawEvent(id=f"e-{number}", shop="demo", channel="web", sender=sender, body=body)
        start = time.perf_counter()
        draft = _read(raw, keys, state, number, step)
        times.append((time.perf_counter() - start) * 1_000)
        if not any(isinstance(emit.value, NormalizedMessage) for emit in draft.emits):
            message = f"no message came of {text!r}"
            raise RuntimeError(message)
        state = {**draft.finish().state, "version": draft.version, "now": draft.now}
    return times


def _read(raw: RawEvent, keys: KeyStore, state: Mapping[str, Any], number: int, step: Any) -> Draft:
    event = intake(raw, keys)
    opened = open_seal(keys, event.seal, event.conversation) if event.seal else None
    cause = Input("channel.events", 0, number, NOW + number * 1_000, event.conversation, event.event_id,
                  "channel.events", event, clear=orjson.loads(opened) if opened else None)  # fmt: skip
    draft = Draft(state, cause)
    step(draft, cause)
    return draft
