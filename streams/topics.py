"""The topics on a broker: create what is missing, and say what differs from the manifests."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # typed, and not marked as exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from schemas.errors import InterlockError
from schemas.topics import TOPICS, Topic
from streams.settings import Settings

TIMEOUT_S = 30
APPEAR_S = 3.0  # a topic that was just made is not known everywhere at once
FRAMING_BYTES = 65_536  # headers and batch framing on top of the largest value
HOUR_MS = 3_600_000
MISSING = "no such topic"
PARTITIONS = "partitions"


class TopicsError(InterlockError):
    """The broker did not do what was asked; the text says which topic and what to do."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting of one topic that is not as the manifest says; `found` is MISSING for a topic that is not there."""

    topic: str
    setting: str
    wanted: str
    found: str

    def __str__(self) -> str:
        if self.found == MISSING:
            return f"{self.topic}: {MISSING}; `interlock topics apply` creates it"
        if self.setting == PARTITIONS:
            cure = "keys would move, so it is never altered: make a new topic, or set INTERLOCK_PARTITIONS"
        else:
            cure = "`interlock topics apply --alter` sets it"
        return f"{self.topic}: {self.setting} is {self.found}, wanted {self.wanted}; {cure}"


@dataclass(slots=True)
class Applied:
    """What `apply_topics` did, and what still differs."""

    created: list[str] = field(default_factory=list)
    altered: list[Difference] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)


def wanted_config(topic: Topic, settings: Settings) -> dict[str, str]:
    """The Kafka settings that the manifest asks for, as text. Times are the broker's append times (promise 1)."""
    manifest = topic.manifest
    config = {
        "cleanup.policy": manifest.cleanup,
        "compression.type": "zstd",
        "max.message.bytes": str(manifest.max_bytes + FRAMING_BYTES),
        "message.timestamp.type": "LogAppendTime",
        # one replica may be away
        "min.insync.replicas": str(max(1, settings.replication - 1)),
        "retention.ms": str(retention_ms(topic, settings)),
    }
    if manifest.segment_hours is not None:  # an open segment is neither deleted nor compacted
        config["segment.ms"] = str(manifest.segment_hours * HOUR_MS)
    return config


def retention_ms(topic: Topic, settings: Settings) -> int:
    """How long the topic's records are to be kept, in milliseconds; -1 is forever. Its own setting goes first."""
    days = settings.topic_retention_days.get(topic.name)
    return topic.retention_ms(settings.retention_days) if days is None else days * 24 * HOUR_MS


def compare(topic: Topic, settings: Settings, partitions: int, found: Mapping[str, str]) -> list[Difference]:
    """What differs between the manifest and a topic with these partitions and settings."""
    wanted = {PARTITIONS: str(settings.partitions), **wanted_config(topic, settings)}
    actual = {PARTITIONS: str(partitions), **found}
    return [
        Difference(topic.name, name, value, actual.get(name, "not set"))
        for name, value in wanted.items()
        if actual.get(name) != value
    ]


def check_topics(
    bootstrap: str, settings: Settings, topics: Iterable[Topic] = TOPICS.values(), *, timeout_s: float = TIMEOUT_S
) -> list[Difference]:
    """Everything that differs on the broker, topic by topic. Raises TopicsError when it does not answer in time."""
    return _check(_client(bootstrap), settings, tuple(topics), bootstrap, timeout_s)


def apply_topics(
    bootstrap: str, settings: Settings, *, alter: bool = False, topics: Iterable[Topic] = TOPICS.values()
) -> Applied:
    """Create the topics that are missing; with `alter`, also set what differs. Never deletes, never repartitions.

    Raises TopicsError when the broker does not answer or refuses.
    """
    client, topics, applied = _client(bootstrap), tuple(topics), Applied()
    differences = _check(client, settings, topics, bootstrap, TIMEOUT_S)
    missing = {difference.topic for difference in differences if difference.found == MISSING}
    applied.created = _create(client, [topic for topic in topics if topic.name in missing], settings)
    for difference in differences:
        if difference.found == MISSING:
            continue
        # more partitions would place keys anew, and a conversation would have two orders (promise 1)
        if alter and difference.setting != PARTITIONS:
            applied.altered.append(difference)
        else:
            applied.differences.append(difference)
    _alter(client, applied.altered)
    return applied


def require_partitions(settings: Settings, timeout_s: float = TIMEOUT_S) -> None:
    """Who places keys needs every topic with as many partitions as the settings say (promise 1). Raises TopicsError."""
    until = time.monotonic() + APPEAR_S
    while True:
        found = check_topics(settings.bootstrap_servers, settings, timeout_s=timeout_s)
        wrong = [one for one in found if one.found == MISSING or one.setting == PARTITIONS]
        if not any(one.found == MISSING for one in wrong) or time.monotonic() > until:
            break
        time.sleep(0.2)
    if wrong:
        more = f" (and {len(wrong) - 1} more topics, see `interlock topics check`)" if len(wrong) > 1 else ""
        message = f"{wrong[0]}{more}"
        raise TopicsError(message)


def _client(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": TIMEOUT_S * 1_000, "log_level": 0})


def _check(
    client: AdminClient, settings: Settings, topics: tuple[Topic, ...], bootstrap: str, timeout_s: float
) -> list[Difference]:
    try:
        existing = client.list_topics(timeout=timeout_s).topics
    except KafkaException as error:
        message = (
            f"no broker answers at {bootstrap} ({error.args[0].str()}): start one with `interlock up`, "
            "or set INTERLOCK_BOOTSTRAP_SERVERS"
        )
        raise TopicsError(message) from None
    found = _describe(client, [topic.name for topic in topics if topic.name in existing])
    differences: list[Difference] = []
    for topic in topics:
        if topic.name in found:
            differences += compare(topic, settings, len(existing[topic.name].partitions), found[topic.name])
        else:
            differences.append(Difference(topic.name, "topic", "created", MISSING))
    return differences


def _describe(client: AdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    answers = client.describe_configs(resources, request_timeout=TIMEOUT_S)
    found: dict[str, dict[str, str]] = {}
    for resource, answer in answers.items():
        try:
            entries = answer.result(TIMEOUT_S)
        except KafkaException as error:
            raise _refused(resource.name, "describe", error) from None
        found[resource.name] = {name: entry.value for name, entry in entries.items()}
    return found


def _create(client: AdminClient, topics: list[Topic], settings: Settings) -> list[str]:
    if not topics:
        return []
    asked = [
        NewTopic(topic.name, settings.partitions, settings.replication, config=wanted_config(topic, settings))
        for topic in topics
    ]
    created = []
    for name, answer in client.create_topics(asked, operation_timeout=TIMEOUT_S).items():
        try:
            answer.result(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another worker was quicker
                raise _refused(name, "create", error) from None
        else:
            created.append(name)
    return created


def _alter(client: AdminClient, differences: list[Difference]) -> None:
    by_topic: dict[str, list[ConfigEntry]] = {}
    for difference in differences:
        entry = ConfigEntry(difference.setting, difference.wanted, incremental_operation=AlterConfigOpType.SET)
        by_topic.setdefault(difference.topic, []).append(entry)
    if not by_topic:
        return
    resources = [
        ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries) for name, entries in by_topic.items()
    ]
    for resource, answer in client.incremental_alter_configs(resources, request_timeout=TIMEOUT_S).items():
        try:
            answer.result(TIMEOUT_S)
        except KafkaException as error:
            raise _refused(resource.name, "alter", error) from None


def _refused(topic: str, verb: str, error: KafkaException) -> TopicsError:
    cause = error.args[0]
    cure = "ask for the right on that topic" if "AUTHORIZATION" in cause.name() else "look at the broker's log"
    return TopicsError(f"{topic}: the broker did not {verb} it ({cause.name()}: {cause.str()}); {cure}")
