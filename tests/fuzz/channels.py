"""Generated and mutated pushes on every channel: none crashes anything, each is a message, an event or a refusal.

usage: python -m tests.fuzz.channels --records N [--seed S] [--only wechat,voice]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from agents.perception import PerceptionConfig, _raw_text, make_step
from agents.understanding.rules import RuleUnderstanding
from memory.bus import empty
from memory.sealing import MemoryKeyStore, open_seal, seal
from schemas import codec
from schemas.base import conversation_id
from schemas.events import ChannelEvent, EditBody, MessageBody, RawEvent, Seal
from schemas.messages import NormalizedMessage
from schemas.step import Draft, Input
from schemas.topics import TOPICS
from streams.channels.port import Push
from streams.gateway.reading import RefusedError
from streams.intake import intake
from streams.runtime.ports import Fact
from streams.runtime.wire import fact_record
from tests.fuzz.pushes import Pushed, Source
from tests.streams.channels.wechat_side import NOW

CHANNELS = ("wechat", "wechat-aes", "voice", "ocr", "web")
TURNS = 12  # messages of one conversation before a new one begins: the context of earlier ones matters, too
SHOWN = 20


class Reader:
    """Perception on one conversation, as the pipeline runs it."""

    def __init__(self) -> None:
        self.keys = MemoryKeyStore()
        self.step = make_step(RuleUnderstanding(), self._seal, PerceptionConfig())
        self.states: dict[str, Mapping[str, Any]] = {}
        self.counts: Counter[str] = Counter()
        self._offset = 0

    def _seal(self, conversation: str, plaintext: bytes, context: bytes) -> Seal:
        return seal(self.keys, conversation, plaintext, context=context)

    def read(self, raw: RawEvent) -> Iterator[str]:
        """Through intake, the wire and perception; what is wrong about what came of it."""
        event = intake(raw, self.keys)
        value = fact_record(Fact("channel.events", event.conversation, event.event_id, event), 0, NOW).value or b""
        if codec.decode("channel.events", value) != event:
            yield "the record does not read back as the event"
        if len(value) > TOPICS["channel.events"].max_bytes:
            self.counts["refused 413"] += 1  # by the publisher
            return
        self._offset += 1
        state, clear = self._state(event), self._clear(event)
        cause = Input("channel.events", 0, self._offset, NOW, event.conversation, event.event_id, "channel.events",
                      event, clear=clear)  # fmt: skip
        draft = Draft(state, cause)
        self.step(draft, cause)
        decided = draft.finish()
        self.states[event.conversation] = {**decided.state, "version": draft.version, "now": draft.now}
        told = [emit.value for emit in decided.emits if isinstance(emit.value, NormalizedMessage)]
        yield from self._judged(event, clear, told, [f"{rule} {text}" for rule, text, *_ in decided.reasons])

    def _state(self, event: ChannelEvent) -> Mapping[str, Any]:
        known = self.states.get(event.conversation)
        if known is None or self._offset % TURNS == 0:
            return empty(event.conversation)
        return known

    def _clear(self, event: ChannelEvent) -> Any:
        return orjson.loads(open_seal(self.keys, event.seal, event.conversation) or b"") if event.seal else None

    def _judged(self, event: ChannelEvent, clear: Any, told: list[NormalizedMessage], why: list[str]) -> Iterator[str]:
        if not isinstance(event.body, MessageBody | EditBody):
            self.counts[event.body.kind] += 1
            return
        yield from (reason for reason in why if "the reader failed" in reason)
        if not told:
            self.counts["wordless or repeated"] += 1
            if not why:
                yield "nothing came of it, and nobody says why"
            return
        message, raw = told[0], _raw_text(event.body, clear)
        self.counts["to a person" if "unreadable" in message.marks else "message"] += 1
        if len(message.text) != len(raw) and raw.isprintable():
            yield f"the masked text has {len(message.text)} characters, the raw one {len(raw)}"
        for found in message.evidence:
            if not 0 <= found.start < found.end <= len(raw):
                yield f"evidence of {found.field} at {found.start}:{found.end} of {len(raw)} characters"


def judge(source: Source, reader: Reader, pushed: Pushed) -> Iterator[str]:
    """What is wrong about what became of a push."""
    try:
        taken = source.read(pushed.push)
    except RefusedError as error:
        reader.counts[f"refused {error.status}"] += 1
        if not (400 <= error.status < 500 and (error.field or error.status == 413)):
            yield f"refused with {error.status} {error.code} and no field"
        if pushed.good:
            yield f"refused, and it is as it should be: {error.code} {error.field} {error.message}"
        return
    if not taken.events and not taken.receipts:
        yield "taken, and nothing came of it"
    for where, receipt in taken.receipts:
        reader.counts["receipt"] += 1
        fact_record(Fact("delivery.receipts", where, receipt.receipt_id, receipt), 0, NOW)
    for event in taken.events:
        if event.conversation != conversation_id(event.shop, event.channel, event.sender):
            yield "another conversation"
        yield from reader.read(event)


def run(name: str, seed: str, records: int) -> tuple[Counter[str], list[str]]:
    """So many pushes of a channel: counts of what became of them, and faults in words."""
    source, reader, faults = Source(seed, name), Reader(), []
    for number in range(records):
        pushed = source.next()
        try:
            faults += [f"{name} {number} (seed {seed}): {fault}" for fault in judge(source, reader, pushed)]
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what is looked for)
            faults.append(f"{name} {number} (seed {seed}): {type(error).__name__}: {error} {shown(pushed.push)}")
    return reader.counts, faults


def shown(push: Push) -> str:
    """The beginning of a body."""
    return repr(push.body[:300])


def main() -> int:
    """The command; 1 when anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000, help="pushes of each channel")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default=",".join(CHANNELS), help="channels, with commas")
    options = parser.parse_args()
    bad: list[str] = []
    for name in options.only.split(","):
        began = time.monotonic()
        counts, faults = run(name, options.seed, options.records)
        bad += faults
        became = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        took = time.monotonic() - began
        print(f"{name}: {options.records} pushes in {took:.0f} s: {became}; {len(faults)} faults", flush=True)
    for fault in bad[:SHOWN]:
        print(fault)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
