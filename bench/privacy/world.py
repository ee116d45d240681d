"""Canaries through the whole system in memory; its key file, outbox, snapshots, stores and log lines are real."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from bench.privacy.canaries import Canary, by_customer
from memory.key_file import FileKeyStore, open_key_store
from memory.snapshots import SnapshotStore
from schemas.base import conversation_id
from schemas.delivery import OutboundMessage
from schemas.events import Alternative, Attachment, Body, EditBody, MessageBody, RatingBody, RawEvent
from schemas.state import Mark
from schemas.topics import TOPICS
from streams.gateway.board import TOPICS as BOARD_TOPICS
from streams.gateway.board import Board
from streams.gateway.outbox import Outbox
from streams.intake import intake
from streams.keeper import Keeper
from streams.keeper_source import LocalKeeping
from streams.logs import JsonLines
from streams.memory_stores import MemoryStores, open_stores
from streams.metrics import Metrics, RecordedMetrics
from streams.replay.local import LocalSource
from streams.runtime.checkpoint import SavedState
from streams.runtime.ports import Outgoing, Record
from streams.runtime.virtual import run_virtual, virtual_clock
from streams.scenario.local import local_world
from streams.scenario.memory import MemoryWorld
from streams.settings import Settings

SHOP, CHANNEL = "demo", "web"
EACH = 8  # canaries of one customer
TURN_MS = 1_500
PARTITIONS = 4


@dataclass
class Run:
    """A run and what it left behind. `records` grows by what forgetting publishes."""

    settings: Settings
    keys: FileKeyStore
    stores: MemoryStores
    canaries: list[Canary]
    records: list[Record] = field(default_factory=list)
    outbox: Outbox | None = None
    logs: str = ""
    metrics: bytes = b""
    pages: bytes = b""

    @property
    def source(self) -> LocalSource:
        """The log as commands read it."""
        return LocalSource(self.records, PARTITIONS)

    @property
    def headed(self) -> list[Record]:
        """The records without the rubbish, which stands on its topic as its producer wrote it."""
        return [record for record in self.records if record.headers]

    @property
    def customers(self) -> list[tuple[str, list[Canary]]]:
        """Conversations with their canaries."""
        return [(conversation_id(SHOP, CHANNEL, name), some) for name, some in by_customer(self.canaries, EACH)]


def settings_in(folder: Path) -> Settings:
    """Settings of their own, whatever files lie about."""
    values: dict[str, Any] = {"_env_file": None, "partitions": PARTITIONS, "data_dir": folder, "dlq_limit": 1_000_000,
                              "unseal_roles": {"eye": ("investigator",), "law": ("privacy",)}}  # fmt: skip
    return Settings(**values)


def run(folder: Path, canaries: list[Canary]) -> Run:
    """All canaries through the system; then memory is kept, the outbox filled, and a snapshot written."""
    settings = settings_in(folder)
    made = Run(settings, open_key_store(folder), open_stores(settings), canaries)
    lines, metrics = io.StringIO(), Metrics()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        states, sent = run_virtual(_drive(made, metrics))
        _careless(canaries)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    asyncio.run(_keep(made, sent))
    snapshot(made, states)
    made.logs, made.metrics = lines.getvalue(), metrics.exposition()
    return made


def _careless(canaries: Sequence[Canary]) -> None:
    """What a library or a bug does: a value in a log line, and one in an error's text."""
    log = logging.getLogger("streams.careless")
    for canary in canaries:
        try:
            int(canary.text)
        except ValueError:
            log.exception("could not take %s", canary.text)


async def _drive(made: Run, metrics: Metrics) -> tuple[list[tuple[str, Any]], list[tuple[str, OutboundMessage]]]:
    async with local_world(made.settings, keys=made.keys, metrics=metrics) as world:
        board = Board(virtual_clock())
        for conversation, some in made.customers:
            await _customer(world, conversation, some)
        await world.interlock.advance(400_000)  # health windows close, deadlines pass
        log = world.interlock.log
        made.records = [record for topic in TOPICS for record in log.records(topic)]
        for record in made.records:
            if record.topic in BOARD_TOPICS:
                board.apply(record)
        made.pages = orjson.dumps(board.open())
        states = [(name, world.interlock.state(name)) for name, _ in made.customers]
        kept = world.inbox._kept  # what was shown to customers, as their own page has it  # noqa: SLF001
        return states, [(name, message) for name, some in kept.items() for message in some.values()]


async def _customer(world: MemoryWorld, conversation: str, some: Sequence[Canary]) -> None:
    partition = world.interlock.partition_of(conversation)
    key = conversation.encode()
    taken = False
    for canary in some:
        if canary.carrier in ("rubbish", "unkeyed"):
            sender = conversation.rpartition("/")[2]
            value = f'{{"sender": "{sender}", "text": "{canary.text}'.encode()  # cut off: a dead letter
            keyed = canary.carrier == "rubbish"
            world.interlock.log.append(Outgoing("channel.events", partition, key if keyed else None, value))
        elif canary.carrier == "staff":
            if not taken:
                await world.decide(conversation, {"kind": "takeover"})
                await asyncio.sleep(TURN_MS / 1000)
            await world.decide(conversation, _reply(canary))
            taken = True
        else:
            for number, body in enumerate(_bodies(canary)):
                raw = RawEvent(id=f"c{canary.number}-{number}", shop=SHOP, channel=CHANNEL,
                               sender=conversation.rpartition("/")[2], body=body,
                               occurred_at=world.clock.now_ms())  # fmt: skip
                event = intake(raw, world.keys)
                await world.publish("channel.events", conversation, event, event.event_id)
        await asyncio.sleep(TURN_MS / 1000)


def _reply(canary: Canary) -> dict[str, Any]:
    return {"kind": "reply", "text": canary.text, "reason": canary.text}


def _bodies(canary: Canary) -> list[Body]:
    name, text = f"m-{canary.number}", canary.text
    ref = f"file-{canary.number}"
    match canary.carrier:
        case "edit":
            return [MessageBody(kind="message", message_id=name, text="你好"),
                    EditBody(kind="edit", message_id=name, text=text)]  # fmt: skip
        case "ocr":
            picture = Attachment(kind="image", text=text, ref=ref)
            return [MessageBody(kind="message", message_id=name, text="看图", attachments=(picture,))]
        case "voice":
            return [MessageBody(kind="message", message_id=name, text="",
                                attachments=(Attachment(kind="voice", text=text, ref=ref),))]  # fmt: skip
        case "heard_as":
            heard = (Alternative(text=text, confidence=0.4),)
            return [MessageBody(kind="message", message_id=name, text="", attachments=(
                Attachment(kind="voice", text="听不清", alternatives=heard, ref=ref),))]  # fmt: skip
        case "rating":
            return [RatingBody(kind="rating", score=2, text=text)]
        case _:
            return [MessageBody(kind="message", message_id=name, text=text)]


async def _keep(made: Run, sent: Sequence[tuple[str, OutboundMessage]]) -> None:
    """Memory writes into the stores' files, and what customers were shown into the gateway's file."""
    log = LocalSourceLog(made.records)
    clock = _Clock()
    keeper = Keeper(LocalKeeping(log), made.stores, made.keys, RecordedMetrics(), clock, backoff_s=0.001)  # type: ignore[arg-type]
    while await keeper.round():
        pass
    made.records += log.added
    made.outbox = Outbox(made.settings.data_dir / "outbox.sqlite", clock.now_ms, made.keys)
    for conversation, message in sent:
        await made.outbox.put(conversation, message)


class LocalSourceLog:
    """A log that is over, as the keeper reads it; its dead letters go to the end."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self.added: list[Record] = []

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """See LocalLog."""
        return [one for one in self._records if one.topic == topic and partition in (None, one.partition)]

    def append(self, outgoing: Outgoing) -> Record:
        """See LocalLog."""
        end = len(self.records(outgoing.topic, outgoing.partition))
        record = Record(outgoing.topic, outgoing.partition, end, 1, outgoing.key, outgoing.value, outgoing.headers)
        self.added.append(record)
        return record


class _Clock:
    def now_ms(self) -> int:
        """A time of the run; nothing depends on it."""
        return 1_767_600_000_000


def snapshot(made: Run, states: Sequence[tuple[str, Any]]) -> None:
    """Write the states as a worker's snapshot does."""
    folder = made.settings.data_dir / "snapshots"
    with SnapshotStore.claim(folder, "c", "t", lambda *_, **__: None, logging.getLogger("snapshots")) as store:
        for number in range(PARTITIONS):
            rows = [SavedState(name, "state", 9, orjson.dumps(state), None) for name, state in states if state]
            store.write(number, rows, Mark(diff_offset=1, handled={}, unsent=0, stamped_at=1))
