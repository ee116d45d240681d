"""Topics on a broker: what the manifests ask for, created, compared, altered, and never deleted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from schemas.topics import DAY_MS, INPUT_TOPICS, TOPICS, Topic, build
from streams.cli import build as build_cli
from streams.settings import Settings
from streams.topics import MISSING, Applied, Difference, TopicsError, apply_topics, check_topics, compare, wanted_config
from tests.brokers import embedded

SETTINGS = Settings(partitions=2, _env_file=None)  # type: ignore[call-arg]  # known to pydantic-settings
PLANS = TOPICS["plans"]
MIB = 1_048_576


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of these tests alone: they create every topic with a partition count of their own."""
    yield from embedded(tmp_path_factory.mktemp("topics"))


@pytest.mark.parametrize("topic", TOPICS.values(), ids=lambda topic: topic.name)
def test_every_topic_has_append_times_and_zstd(topic: Topic) -> None:
    """Times are the broker's and records are compressed on all topics (promise 1, case D15)."""
    config = wanted_config(topic, SETTINGS)
    assert ("LogAppendTime", "zstd") == (config["message.timestamp.type"], config["compression.type"])


@pytest.mark.parametrize("topic", TOPICS.values(), ids=lambda topic: topic.name)
def test_retention(topic: Topic) -> None:
    """Everything is kept 180 days, but what is in clear for one, and the states for ever (R-003-28, X7)."""
    kept = {"channel.raw": DAY_MS, "state.updates": -1}.get(topic.name, 180 * DAY_MS)
    config = wanted_config(topic, SETTINGS)
    assert str(kept) == config["retention.ms"]
    assert ("compact" if topic.name == "state.updates" else "delete") == config["cleanup.policy"]


def test_clear_text_is_gone_within_the_day() -> None:
    """channel.raw closes a segment each hour: Kafka deletes closed segments only (promise 9)."""
    assert str(DAY_MS // 24) == wanted_config(TOPICS["channel.raw"], SETTINGS)["segment.ms"]


@pytest.mark.parametrize("name", TOPICS)
def test_sizes(name: str) -> None:
    """Inputs take 1 MiB a value, registers and dead letters 8; Kafka's limit leaves room for headers."""
    large = name in ("state.diffs", "state.updates") or name.endswith(".dlq")
    size = (8 if large else 1) * MIB
    assert size == TOPICS[name].max_bytes
    assert size < int(wanted_config(TOPICS[name], SETTINGS)["max.message.bytes"]) <= size + 65_536
    assert not large or name not in INPUT_TOPICS


@pytest.mark.parametrize(("replication", "in_sync"), [(1, "1"), (2, "1"), (3, "2")])
def test_a_write_survives_a_broker(replication: int, in_sync: str) -> None:
    """With three replicas a write is on two; with fewer, writes go on when one broker is away."""
    assert (
        in_sync == wanted_config(PLANS, SETTINGS.model_copy(update={"replication": replication}))["min.insync.replicas"]
    )


def test_nothing_differs() -> None:
    """A topic that is as its manifest says has no difference, whatever else the broker has set."""
    assert [] == compare(PLANS, SETTINGS, 2, wanted_config(PLANS, SETTINGS) | {"segment.bytes": "1"})


def test_differences_say_what_to_do() -> None:
    """Each difference names topic, setting, both values and the cure."""
    found = wanted_config(PLANS, SETTINGS) | {"retention.ms": "1", "cleanup.policy": "compact"}
    del found["compression.type"]
    cure = "keys would move, so it is never altered: make a new topic, or set INTERLOCK_PARTITIONS"
    texts = sorted(map(str, compare(PLANS, SETTINGS, 7, found)))
    assert [
        "plans: cleanup.policy is compact, wanted delete; `interlock topics apply --alter` sets it",
        "plans: compression.type is not set, wanted zstd; `interlock topics apply --alter` sets it",
        f"plans: partitions is 7, wanted 2; {cure}",
        "plans: retention.ms is 1, wanted 15552000000; `interlock topics apply --alter` sets it",
    ] == texts


def test_a_missing_topic_says_so() -> None:
    """A topic that is not there is one difference, not one for each setting."""
    assert "plans: no such topic; `interlock topics apply` creates it" == str(
        Difference("plans", "topic", "created", MISSING)
    )


def test_no_broker() -> None:
    """Without a broker the error names the address and the cure."""
    with pytest.raises(TopicsError, match=r"no broker answers at 127\.0\.0\.1:1 .*interlock up"):
        check_topics("127.0.0.1:1", SETTINGS, timeout_s=1)


def _named(name: str) -> list[Topic]:
    return [build(PLANS.manifest, f"{name}.one"), build(TOPICS["state.updates"].manifest, f"{name}.two")]


@pytest.mark.kafka
def test_apply_creates_what_check_misses(own_broker: str) -> None:
    """A created topic is as its manifest says, on the broker's own word; a second apply does nothing."""
    topics = _named("create")
    assert [MISSING, MISSING] == [difference.found for difference in check_topics(own_broker, SETTINGS, topics)]
    assert ["create.one", "create.two"] == sorted(apply_topics(own_broker, SETTINGS, topics=topics).created)
    assert [] == check_topics(own_broker, SETTINGS, topics)
    assert Applied() == apply_topics(own_broker, SETTINGS, topics=topics)


@pytest.mark.kafka
def test_apply_alters_only_when_told(own_broker: str) -> None:
    """A setting that differs is reported, and set only with `alter`; partitions are never touched."""
    topics = _named("alter")
    apply_topics(own_broker, SETTINGS, topics=topics)
    other = Settings(partitions=3, retention_days=90, _env_file=None)  # type: ignore[call-arg]
    told = apply_topics(own_broker, other, topics=topics).differences
    assert {"partitions", "retention.ms"} == {difference.setting for difference in told}
    altered = apply_topics(own_broker, other, topics=topics, alter=True)
    assert ["retention.ms"] == [difference.setting for difference in altered.altered]
    assert {"partitions"} == {difference.setting for difference in check_topics(own_broker, other, topics)}


@pytest.mark.kafka
def test_apply_never_deletes(own_broker: str) -> None:
    """A topic that is in no manifest stays."""
    apply_topics(own_broker, SETTINGS, topics=_named("stays"))
    apply_topics(own_broker, SETTINGS, topics=_named("other"), alter=True)
    assert "stays.one" in AdminClient({"bootstrap.servers": own_broker}).list_topics(timeout=30).topics


@pytest.mark.kafka
def test_the_commands(own_broker: str) -> None:
    """`topics check` ends with 1 until `topics apply` has made every topic of the manifests."""
    _nothing(own_broker)
    runner, env = CliRunner(), {"INTERLOCK_PARTITIONS": "2"}
    before = runner.invoke(build_cli(), ["topics", "check", "--broker", own_broker], env=env)
    assert (1, True) == (before.exit_code, "plans: no such topic" in before.output)
    applied = runner.invoke(build_cli(), ["topics", "apply", "--broker", own_broker], env=env)
    assert (0, True) == (applied.exit_code, f"{len(TOPICS)} created" in applied.output)
    after = runner.invoke(build_cli(), ["topics", "check", "--broker", own_broker], env=env)
    assert (0, True) == (after.exit_code, "as their manifests say" in after.output)
    moved = runner.invoke(build_cli(), ["topics", "apply", "--broker", own_broker], env={"INTERLOCK_PARTITIONS": "4"})
    assert (1, True) == (moved.exit_code, f"{len(TOPICS)} differ" in moved.output)


def _nothing(broker: str) -> None:
    """No topics, whatever the tests before this one made: the order is random."""
    admin = AdminClient({"bootstrap.servers": broker})
    made = [name for name in admin.list_topics(timeout=30).topics if name in TOPICS]
    for done in admin.delete_topics(made).values() if made else ():
        done.result(30)
    until = time.monotonic() + 30
    while set(admin.list_topics(timeout=30).topics) & TOPICS.keys():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.kafka
@pytest.mark.parametrize("command", ["worker", "intake"])
def test_who_places_keys_refuses_another_partition_count(own_broker: str, tmp_path: Path, command: str) -> None:
    """A worker or intake with another count would give conversations a second order: it does not start (promise 1)."""
    apply_topics(own_broker, SETTINGS)
    env = {**os.environ, "INTERLOCK_BOOTSTRAP_SERVERS": own_broker, "INTERLOCK_PARTITIONS": "3",
           "INTERLOCK_METRICS_PORT": "0", "INTERLOCK_DATA_DIR": str(tmp_path)}  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "streams.cli", command], env=env, capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert 1 == done.returncode
    assert "partitions is 2, wanted 3" in done.stderr
    assert "Traceback" not in done.stderr
