"""channel.raw: the same rubbish for the intake app, which makes an event of a record or a dead letter."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from memory.sealing import KeyStore
from schemas import codec
from schemas.system import DeadLetter
from schemas.topics import RAW_TOPIC
from streams.reader import KafkaSource
from tests.chaos.stand import Stand
from tests.fuzz import envelopes, values
from tests.fuzz.account import Fault, Place, differs
from tests.fuzz.cases import Case, Expect, Maker

# What means something else at the edge: no header and no key is needed, ids may be long integers, or the envelope's.
_AT_THE_EDGE: Mapping[str, Expect] = {
    "kafka_null": Expect.DEAD,
    **dict.fromkeys(("unknown_type", "missing_header", "newer_minor", "huge_int"), Expect.EITHER),
    **dict.fromkeys(("no_key", "bad_key", "other_partition", "system_key"), Expect.HANDLED),
    "missing_field": Expect.HANDLED,  # it is the id, and the envelope has one
}  # fmt: skip
_STRUCTURED = ("content-type", b"application/cloudevents+json")
BETWEEN = 30
BIG_EVERY = 200
WAIT_S = 45.0


def wide(maker: Maker, partition: int) -> Case:
    """An event that the topic takes, and that is too large once its clear body is sealed beside the masked one."""
    text = "我的电话13800000000，" + "退" * 19_900
    files = [{"kind": "voice", "ref": maker.fresh(), "text": text} for _ in range(15)]
    body = {"kind": "message", "message_id": maker.fresh(), "text": text, "attachments": files}
    return maker.valid(partition, lambda value: value.update({"body": body})).dead("wide", "too_large")


class Foreign:
    """The intake app with its rubbish, and what became of it."""

    def __init__(self, stand: Stand, seed: str, bad: int, keys: KeyStore) -> None:
        self.process = stand.start("intake", "intake")
        self.sent: dict[Place, Case] = {}
        self.codes: Counter[str] = Counter()
        self.handled = 0
        self._settings, self._keys, self._bad = stand.settings, keys, bad
        self._maker = Maker(RAW_TOPIC, seed, stand.settings.partitions)
        self._letters: dict[Place, list[str]] = {}

    @property
    def valid(self) -> int:
        """Records that must become events."""
        return sum(case.expect is Expect.HANDLED for case in self.sent.values())

    def plan(self) -> Iterator[Case]:
        """`bad` records of rubbish, and valid ones between them."""
        maker = self._maker
        kinds = (*values.KINDS.values(), *envelopes.KINDS.values(), values.mutated)
        bad = 0
        while bad < self._bad:
            partition = maker.rng.randrange(maker.partitions)
            if bad % BIG_EVERY == BIG_EVERY - 1:
                case = maker.rng.choice((wide, values.two_mib))(maker, partition)
            else:
                case = maker.rng.choice(kinds)(maker, partition)
            expect = _AT_THE_EDGE.get(case.kind)
            case = case if expect is None else replace(case, expect=expect, codes=frozenset())
            if _STRUCTURED in case.headers and case.codes:  # here it is one, and lacks all attributes
                case = replace(case, codes=frozenset({"missing_field"}))
            yield case
            bad += case.expect is not Expect.HANDLED
            if bad % BETWEEN == 0:
                yield maker.valid(partition)

    def take(self, sent: dict[Place, Case]) -> None:
        """Take our own records out of all that were sent."""
        self.sent = {place: case for place, case in sent.items() if place[0] == RAW_TOPIC}
        for place in self.sent:
            del sent[place]

    def faults(self) -> list[str]:
        """Every record that became neither an event nor a dead letter with its exact bytes. Waits for the app."""
        until = time.monotonic() + WAIT_S
        while True:
            events = self._read()
            found = [Fault(place, case.kind, words) for place, case in self.sent.items()
                     if (words := self._verdict(place, case, events))]  # fmt: skip
            self.handled = sum(place not in self._letters for place in self.sent) - len(found)
            if not found or time.monotonic() > until or not self.process.alive:
                return [str(fault) for fault in found]
            time.sleep(2)

    def _read(self) -> set[str]:
        """Ids of the events that there are; dead letters are compared on the way."""
        events = set()
        self._letters.clear()
        self.codes.clear()
        with KafkaSource(self._settings) as source:
            for record in source.read([(topic, number, 0) for topic in ("channel.events", f"{RAW_TOPIC}.dlq")
                                       for number in range(self._settings.partitions)]):  # fmt: skip
                if record.topic == "channel.events":
                    events.add((dict(record.headers).get("ce_id") or b"").decode(errors="replace"))
                    continue
                letter: DeadLetter = codec.decode(record.topic, record.value)
                place = (letter.topic, letter.partition, letter.offset)
                case = self.sent.get(place)
                self.codes[letter.code] += 1
                words = "nobody sent that" if case is None else differs(case, letter, self._keys)
                self._letters.setdefault(place, []).extend((letter.code, words))
        return events

    def _verdict(self, place: Place, case: Case, events: set[str]) -> str:
        letter = self._letters.get(place)
        if letter is not None and (len(letter) > 2 or letter[1]):
            return f"its dead letter is another record, or there are two: {letter}"
        if letter is not None and case.expect is Expect.HANDLED:
            return f"a dead letter ({letter[0]}), though it is valid"
        if letter is not None:
            return "" if not case.codes or letter[0] in case.codes else f"the reason is {letter[0]}"
        if case.expect is Expect.DEAD:
            return "no dead letter, though it is bad"
        return "" if _event_id(case) in events else "neither an event nor a dead letter"


def _event_id(case: Case) -> str:
    """The id that intake derives, by the documented rule and another parser's data."""
    headers = {name: (raw or b"").decode(errors="replace") for name, raw in case.headers}
    try:
        plain: Any = json.loads(case.value or b"")  # integers of any length
        who = "/".join(str(plain[name]) for name in ("shop", "channel", "sender"))
        if "id" not in plain:  # the envelope's, which counts per source
            plain = {"source": headers["ce_source"], **plain, "id": headers["ce_id"]}
        source = plain.get("source")
        named = f"{who}\n{plain['id']}" + ("" if source is None else f"\n{source}")
        return f"ev-{hashlib.sha256(named.encode()).hexdigest()[:24]}"
    except (ValueError, KeyError, TypeError):
        return ""
