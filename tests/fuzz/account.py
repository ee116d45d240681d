"""The account of a run: what became of each record, read from the register and the dead-letter topics alone."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from memory.master_keys import SealError
from memory.sealing import KeyStore, open_seal
from schemas import codec
from schemas.errors import BadRecordError
from schemas.system import DeadLetter
from schemas.topics import INPUT_TOPICS
from streams.reader import KafkaSource
from streams.runtime.ports import Record
from streams.runtime.wire import DIFFS
from streams.settings import Settings
from tests.fuzz import oracle
from tests.fuzz.cases import NO_DIFF, Case, Expect

Place = tuple[str, int, int]  # topic, partition, offset
DEAD_RULE = "runtime.dead_letter"
ORPHAN = "orphan"  # a receipt that was parked, and whose message never came


class Decision(NamedTuple):
    """What the register says of a record."""

    conversation: str
    id: str
    rules: tuple[str, ...]


class Fault(NamedTuple):
    """A record of which the account is wrong."""

    place: Place
    kind: str
    words: str

    def __str__(self) -> str:
        topic, partition, offset = self.place
        return f"{topic} [{partition}] offset {offset} ({self.kind}): {self.words}"


@dataclass
class Account:
    """Sent records, and what was read about them so far. `look` reads on from where it stopped."""

    settings: Settings
    keys: KeyStore
    sent: dict[Place, Case] = field(default_factory=dict)
    decided: dict[Place, Decision] = field(default_factory=dict)
    letters: dict[Place, DeadLetter] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    _next: dict[tuple[str, int], int] = field(default_factory=dict)

    def look(self) -> None:
        """Read what is new in the register and on the dead-letter topics."""
        topics = (DIFFS, *(f"{topic}.dlq" for topic in INPUT_TOPICS))
        for record in self.read(topics):
            if record.topic == DIFFS:
                self._diff(record)
            else:
                self._letter(record)

    def read(self, topics: tuple[str, ...]) -> list[Record]:
        """New records of these topics."""
        found = []
        with KafkaSource(self.settings) as source:
            for record in source.read([(topic, number, self._next.get((topic, number), 0)) for topic in topics
                                       for number in range(self.settings.partitions)]):  # fmt: skip
                self._next[record.topic, record.partition] = record.offset + 1
                found.append(record)
        return found

    def _diff(self, record: Record) -> None:
        diff = orjson.loads(record.value or b"")
        cause = diff["cause"]
        if cause["type"] == "pause":
            return  # the runtime's own decision about a record that has another
        place = (cause["topic"], cause["partition"], cause["offset"])
        rules = tuple(reason["rule"] for reason in diff["reasons"])
        if place in self.decided:
            where = f"{DIFFS} [{record.partition}] {record.offset}"
            self.faults.append(Fault(place, "any", f"decided twice, also in {where}"))
        if record.partition != cause["partition"]:
            self.faults.append(Fault(place, "any", f"decided on partition {record.partition}"))
        self.decided[place] = Decision(diff["conversation"], cause["id"], rules)

    def _letter(self, record: Record) -> None:
        try:
            letter: DeadLetter = codec.decode(record.topic, record.value)
        except BadRecordError as error:
            here = (record.topic, record.partition, record.offset)
            self.faults.append(Fault(here, "letter", f"unreadable: {error}"))
            return
        place = (letter.topic, letter.partition, letter.offset)
        case = self.sent.get(place)
        if case is not None:
            words = differs(case, letter, self.keys)
            if words:
                self.faults.append(Fault(place, case.kind, f"its dead letter is another record: {words}"))
        self.letters[place] = letter.model_copy(update={"seal": None})

    def missing(self) -> int:
        """Records of ours about which nothing is known yet."""
        return sum(self._missing(place, case) for place, case in self.sent.items())

    def _missing(self, place: Place, case: Case) -> bool:
        if case.expect in NO_DIFF:
            return False
        decision = self.decided.get(place)
        return decision is None or (DEAD_RULE in decision.rules and place not in self.letters)

    def verdicts(self) -> list[Fault]:
        """Every record of ours whose account is wrong."""
        found = list(self.faults)
        for place, case in self.sent.items():
            words = self._verdict(place, case)
            if words:
                found.append(Fault(place, case.kind, words))
        return found

    def _verdict(self, place: Place, case: Case) -> str:
        decision, letter = self.decided.get(place), self.letters.get(place)
        if case.expect in NO_DIFF:
            rules = "" if decision is None else ", ".join(decision.rules)
            return "" if decision is None else f"decided ({rules}), though its position was {case.expect}"
        if decision is None:
            return "neither handled nor a dead letter"
        if DEAD_RULE in decision.rules:
            return _buried(case, letter)
        if letter is not None and letter.code != ORPHAN:
            return "handled, and a dead letter too"
        return _handled(case, decision)

    def codes(self, topic: str) -> Counter[str]:
        """Dead letters of a topic by reason code."""
        return Counter(letter.code for place, letter in self.letters.items() if place[0] == topic)

    def handled(self, topic: str) -> int:
        """Records of ours on the topic that were handled."""
        return sum(place[0] == topic and place in self.decided and DEAD_RULE not in self.decided[place].rules
                   for place in self.sent)  # fmt: skip


def _buried(case: Case, letter: DeadLetter | None) -> str:
    if letter is None:
        return "a dead letter by its diff, and none on the dead-letter topic"
    why = f"{letter.code} {letter.field or ''}: {letter.reason}"
    if letter.code == "step_failed":
        return f"a step raised: {why}"
    if case.expect not in (Expect.DEAD, Expect.EITHER):
        return f"a dead letter, though it was to be {case.expect}: {why}"
    if case.codes and letter.code not in case.codes:
        return f"the reason is {why}; expected {' or '.join(sorted(case.codes))}"
    return "" if letter.reason else "no reason"


def _handled(case: Case, decision: Decision) -> str:
    rules = ", ".join(decision.rules)
    match case.expect:
        case Expect.DEAD:
            return f"handled ({rules}), though it is bad"
        case Expect.NULL:
            return "" if decision.rules == ("runtime.null",) else f"a Kafka null was decided by {rules}"
        case Expect.DUPLICATE:
            return "" if decision.rules == ("runtime.duplicate",) else f"an id that came before was decided by {rules}"
        case Expect.EITHER:
            why = oracle.refused(case.topic, case.value or b"")
            return f"handled ({rules}), though the published contract refuses it: {why}" if why else ""
        case _:
            if {"runtime.null", "runtime.duplicate"} & set(decision.rules):
                return f"not handled but {rules}"
            named = (decision.conversation.encode(), decision.id.encode()) == (case.key, dict(case.headers)["ce_id"])
            return "" if named else f"handled as {decision.id} of {decision.conversation}"


def differs(case: Case, letter: DeadLetter, keys: KeyStore) -> str:
    """In what the dead letter is not the record that was sent, byte for byte; "" for nothing."""
    if letter.code == ORPHAN:
        return _orphan_differs(case, letter)
    try:
        value = None if letter.seal is None else open_seal(keys, letter.seal, letter.owner)
    except SealError as error:
        return str(error)
    parts = {
        "value": (value, case.value),
        "key": (_bytes(letter.key), case.key),
        "headers": ([(name, _bytes(text)) for name, text in letter.headers], list(case.headers)),
        "size": (letter.size, len(case.value or b"")),
    }
    return ", ".join(name for name, (found, wanted) in parts.items() if found != wanted)


def _orphan_differs(case: Case, letter: DeadLetter) -> str:
    """A receipt that was handled and whose message never came: its value stands decoded in the letter."""
    value, record = orjson.loads(case.value or b""), letter.record or {}
    other = [name for name in record if name in value and record[name] != value[name]]
    return ", ".join(other) if _bytes(letter.key) == case.key else "key"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
