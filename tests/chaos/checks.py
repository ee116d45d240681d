"""What must hold of the register after any crash: pure functions over the records of topics, in offset order.

Each violation names the rule, the conversation, the version and the place in the log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from memory.bus import DiffMismatchError, VersionConflictError, apply, empty, verify
from schemas import cloudevents
from schemas.topics import INPUT_TOPICS
from streams.runtime.ports import Record
from streams.runtime.wire import DIFFS, UPDATES

State = Mapping[str, Any]
SEEN = ("displayed", "read")


@dataclass(frozen=True)
class Violation:
    """One broken rule. `healing` ones may only be early: what is missing may still come."""

    rule: str
    conversation: str
    version: int | None
    place: str
    text: str
    healing: bool = False

    def __str__(self) -> str:
        version = "" if self.version is None else f" version {self.version}"
        return f"{self.rule}: {self.conversation}{version} ({self.place}): {self.text}"


@dataclass(frozen=True)
class Entry:
    """A committed diff and where it stands."""

    record: Record
    diff: Mapping[str, Any]


@dataclass
class Story:
    """All that the log says of one conversation."""

    conversation: str
    diffs: list[Entry] = field(default_factory=list)
    update: Entry | None = None
    inputs: list[Record] = field(default_factory=list)
    emitted: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    letters: list[Record] = field(default_factory=list)


def place(record: Record) -> str:
    """`topic [partition] at offset`."""
    return f"{record.topic} [{record.partition}] at {record.offset}"


def stories(records: Iterable[Record], keep: Callable[[str], bool] = lambda _: True) -> dict[str, Story]:
    """Records of all topics by conversation; within a topic they come in offset order."""
    found: dict[str, Story] = {}
    for record in records:
        key = (record.key or b"~none").decode(errors="replace")
        if key.startswith("~mark/") or not keep(key):
            continue
        _take(found.setdefault(key, Story(key)), record)
    return found


def _take(story: Story, record: Record) -> None:
    if record.topic == DIFFS:
        story.diffs.append(Entry(record, orjson.loads(record.value or b"null")))
    elif record.topic == UPDATES:
        story.update = None if record.value is None else Entry(record, orjson.loads(record.value))
    elif record.topic.endswith(".dlq"):
        story.letters.append(record)
    else:
        if record.topic in INPUT_TOPICS:
            story.inputs.append(record)
        story.emitted[record.topic].append(record)


def check(story: Story) -> list[Violation]:
    """Every rule on one conversation."""
    return [*versions(story), *chain(story), *order(story), *handled(story), *emits(story), *live(story),
            *resends(story), *letters(story)]  # fmt: skip


def versions(story: Story) -> Iterator[Violation]:
    """From 1, without a gap, none twice (promise 3)."""
    seen: dict[int, Entry] = {}
    highest = 0
    for entry in story.diffs:
        version = entry.diff["version"]
        first = seen.setdefault(version, entry)
        if first is not entry:
            yield _at("fork", story, entry, f"first written at {first.record.offset}, by cause {_cause(first)};"
                      f" now by {_cause(entry)}")  # fmt: skip
        elif version != highest + 1:
            yield _at("gap", story, entry, f"follows version {highest}")
        highest = max(highest, version)


def chain(story: Story) -> Iterator[Violation]:
    """Each diff's `before` is what the one earlier left (promise 3)."""
    state: State = empty(story.conversation)
    for entry in story.diffs:
        try:
            if entry.diff["whole"] is not None and entry.diff["whole"] != state:
                yield _at("before", story, entry, "the whole state that it carries is not the one before it")
            verify(state, entry.diff)
            state = apply(state, entry.diff)
        except (DiffMismatchError, VersionConflictError) as error:
            yield _at("before", story, entry, str(error))
            return


def replayed(story: Story, version: int | None = None) -> State:
    """The state at a version (the last by default) from the diffs alone. Raises what `apply` raises."""
    state: State = empty(story.conversation)
    for entry in story.diffs:
        if version is not None and entry.diff["version"] > version:
            break
        state = apply(state, entry.diff)
    return state


def order(story: Story) -> Iterator[Violation]:
    """Inputs of a topic are decided in the order in which they stand in the log (promise 1)."""
    last: dict[str, int] = {}
    for entry in story.diffs:
        topic, offset = entry.diff["cause"]["topic"], entry.diff["cause"]["offset"]
        if offset <= last.get(topic, -1):
            yield _at("order", story, entry, f"cause {topic} {offset} comes after {last[topic]}")
        last[topic] = max(offset, last.get(topic, -1))


def handled(story: Story) -> Iterator[Violation]:
    """Every accepted record has one diff; an emit that was published again still has one (promises 3 and 4)."""
    causes = Counter(_identity(entry.diff["cause"]) for entry in story.diffs)
    wanted: dict[Any, Record] = {}
    for record in story.inputs:
        wanted.setdefault(_input_identity(record), record)
    for identity, record in wanted.items():
        count = causes.pop(identity, 0)
        if count == 0:
            yield Violation("lost", story.conversation, None, place(record), f"{identity} has no diff", healing=True)
        elif count > 1:
            yield Violation("handled twice", story.conversation, None, place(record), f"{count} diffs")
    for identity in causes:
        yield Violation("phantom", story.conversation, None, str(identity), "a diff of an input that is not there",
                        healing=True)  # fmt: skip


def _identity(cause: Mapping[str, Any]) -> Any:
    if cause.get("position"):
        return (cause["topic"], *cause["position"])
    return cause["topic"], cause["partition"], cause["offset"]


def _input_identity(record: Record) -> Any:
    envelope = cloudevents.parse_headers(record.topic, record.headers)
    if envelope.position is not None:
        return (record.topic, *envelope.position)
    return record.topic, record.partition, record.offset


def emits(story: Story) -> Iterator[Violation]:
    """A reader that keeps the last position takes each emit of the committed diffs once, in order (promise 4)."""
    wanted: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for entry in story.diffs:
        for index, emit in enumerate(entry.diff["emits"]):
            wanted[emit["topic"]].append((entry.diff["version"], index))
    for topic in wanted.keys() | story.emitted.keys():
        taken = _read(story.emitted.get(topic, ()))
        if taken != wanted[topic]:
            missing = sorted(set(wanted[topic]) - set(taken))
            extra = sorted(set(taken) - set(wanted[topic]))
            text = f"not published: {missing}; published but not committed: {extra}; as read: {taken[:50]}"
            yield Violation("emits", story.conversation, None, topic, text, healing=not extra)


def _read(records: Sequence[Record]) -> list[tuple[int, int]]:
    """Positions as a reader takes them: repeats dropped, one whose predecessor is missing left aside."""
    heard, taken = (0, 0), []
    for record in records:
        envelope = cloudevents.parse_headers(record.topic, record.headers)
        if envelope.position is None:
            continue  # a fact: whoever publishes it, it has no place among emits
        position = envelope.position[1:]
        if position <= heard or (envelope.previous is not None and envelope.previous > heard):
            continue
        heard = position
        taken.append(position)
    return taken


def live(story: Story) -> Iterator[Violation]:
    """The state that the owner held, as it wrote it to state.updates, is the one that the diffs give."""
    if story.update is None or not story.diffs:
        return
    held = story.update.diff
    try:
        state = replayed(story, held["version"])
    except VersionConflictError:
        return  # said by the chain
    if state != held:
        parts = ", ".join(sorted(name for name in state.keys() | held.keys() if state.get(name) != held.get(name)))
        yield Violation("live", story.conversation, held["version"], place(story.update.record), f"differs in {parts}")


def resends(story: Story) -> Iterator[Violation]:
    """Nothing is sent again that a receipt in the log answered before the deadline (promise 6, R-002-31)."""
    answered: dict[str, int] = {}
    dues: dict[tuple[str, int], int] = {}
    for record in story.inputs:
        if record.topic == "timers.fired":
            dues[record.topic, record.offset] = orjson.loads(record.value or b"")["due"]
        elif record.topic == "delivery.receipts":
            receipt = orjson.loads(record.value or b"")
            if receipt["state"] in SEEN:
                answered.setdefault(receipt["message_id"], record.time)
    for entry in story.diffs:
        cause = entry.diff["cause"]
        due = dues.get((cause["topic"], cause["offset"]), cause["time"])
        for emit in entry.diff["emits"]:
            message = emit["data"]
            if emit["topic"] == "actions.outbound" and message["attempt"] > 1:
                seen = answered.get(message["message_id"], due)
                if seen < due:
                    text = f"{message['message_id']} was seen {due - seen} ms before the deadline of its resend"
                    yield _at("sent again", story, entry, text)


def letters(story: Story) -> Iterator[Violation]:
    """Nothing that these customers send is a dead letter."""
    for record in story.letters:
        yield Violation("dead letter", story.conversation, None, place(record), (record.value or b"").decode()[:300])


def recovered(known: Mapping[str, Story], states: Mapping[str, bytes]) -> Iterator[Violation]:
    """What a fresh owner rebuilds is what replay gives: each conversation, at its last version."""
    for conversation, story in known.items():
        if not story.diffs:
            continue
        encoded = states.get(conversation)
        last = story.diffs[-1]
        if encoded is None:
            yield _at("recovered", story, last, "a fresh owner does not know it")
        elif orjson.loads(encoded) != replayed(story):
            found = orjson.loads(encoded)["version"]
            yield _at("recovered", story, last, f"a fresh owner has another state (version {found})")


def ledger(effects: Sequence[Mapping[str, Any]], conversations: Mapping[str, str]) -> Iterator[Violation]:
    """No key and no order has an effect twice (promise 6). `conversations` names a customer's."""
    keys = Counter(row["key"] for row in effects)
    orders = Counter((row["kind"], row["order_id"]) for row in effects)
    for row in effects:
        whose = conversations.get(row["customer_id"], row["customer_id"])
        if keys[row["key"]] > 1 or orders[row["kind"], row["order_id"]] > 1:
            text = f"{row['kind']} of order {row['order_id']} under key {row['key']}"
            yield Violation("effect twice", whose, None, f"ledger at {row['at']}", text)


def shown(rows: Sequence[tuple[str, str]], told: Mapping[str, Story]) -> Iterator[Violation]:
    """One visible message a message id, and none that was never decided; rows: conversation, message id."""
    for (conversation, message_id), count in Counter(rows).items():
        story = told.get(conversation)
        if story is None:
            continue
        decided = {emit["data"]["message_id"] for entry in story.diffs for emit in entry.diff["emits"]
                   if emit["topic"] == "actions.outbound"}  # fmt: skip
        if count > 1:
            yield Violation("shown twice", conversation, None, "outbox", message_id)
        if message_id not in decided:
            yield Violation("shown undecided", conversation, None, "outbox", message_id)


def _cause(entry: Entry) -> str:
    cause = entry.diff["cause"]
    return f"{cause['topic']} {cause['partition']} {cause['offset']}"


def _at(rule: str, story: Story, entry: Entry, text: str) -> Violation:
    return Violation(rule, story.conversation, entry.diff["version"], place(entry.record), text)
