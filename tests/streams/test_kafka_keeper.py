"""The keeper as a process on a real broker, killed while it writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from memory.facts.embedded import EmbeddedFacts
from schemas.topics import MEMORY_TOPIC
from streams.memory_stores import stores_dir
from tests.streams.keeping import records, trail, wanted, writes
from tests.streams.runtime.kafka_rig import Rig, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
WRITES = 1_000


@pytest.fixture
def rig(broker: str, tmp_path: Path) -> Rig:
    """Fresh topics, and a group of this test's own."""
    rig = Rig(broker, tmp_path)
    rig.reset()
    return rig


class Process:
    """`interlock keeper`, as often as it is killed."""

    def __init__(self, rig: Rig, log: Path) -> None:
        settings = rig.settings
        self._log, self._children = log, list[subprocess.Popen[bytes]]()
        self._env = {
            **os.environ, "INTERLOCK_BOOTSTRAP_SERVERS": rig.bootstrap, "INTERLOCK_GROUP": settings.group,
            "INTERLOCK_DATA_DIR": str(settings.data_dir), "INTERLOCK_PARTITIONS": str(settings.partitions),
        }  # fmt: skip

    def start(self, crash_at: str = "") -> subprocess.Popen[bytes]:
        """One that kills itself at the point, if one is given."""
        env = {**self._env, **({"INTERLOCK_CRASH_AT": crash_at} if crash_at else {})}
        command = [str(Path(sys.executable).with_name("interlock")), "keeper", "--port", "0"]
        with self._log.open("ab") as log:
            self._children.append(subprocess.Popen(command, env=env, stdout=log, stderr=log))
        return self._children[-1]

    def end(self) -> None:
        """None is left."""
        for child in self._children:
            child.kill()
            child.wait(10)


@pytest.fixture
def process(rig: Rig, tmp_path: Path) -> Iterator[Process]:
    """The command, for this rig."""
    made = Process(rig, tmp_path / "keeper.log")
    yield made
    made.end()


def _committed(rig: Rig) -> int:
    group = f"{rig.settings.group}.keeper"
    found = rig.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    return sum(place.offset for place in found.topic_partitions if place.offset > 0)


def _send(rig: Rig) -> None:
    for one in records(writes(WRITES)):
        rig.producer.produce(one.topic, one.value, one.key, one.partition, headers=list(one.headers))
        rig.producer.poll(0)
    rig.producer.flush(30)


async def test_a_killed_keeper_loses_nothing_and_writes_nothing_twice(rig: Rig, process: Process) -> None:
    """Killed between the stores and before the commit, during 1,000 writes: none lost, none twice (cases I01, I11)."""
    _send(rig)
    for point in ("keeper.facts:2", "keeper.letters:2"):
        assert -signal.SIGKILL == process.start(point).wait(60), "it was killed there"
    assert 0 < _committed(rig) < WRITES, "there is something left to do"
    child = process.start()
    wait_until(lambda: _committed(rig) >= WRITES, 60)
    child.send_signal(signal.SIGTERM)
    assert 0 == child.wait(20)
    facts = EmbeddedFacts(stores_dir(rig.settings) / "facts")
    assert wanted(writes(WRITES)) == await trail(facts, writes(WRITES))
    await facts.close()
    assert [] == rig.records(f"{MEMORY_TOPIC}.dlq")
