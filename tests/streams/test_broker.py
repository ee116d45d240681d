"""The embedded broker on the real thing: start, reuse, crash, ports and clear errors."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from streams.broker import EmbeddedKafka, bootstrap_of
from streams.java import BrokerError, cache_dir, find_java, java_major, kafka_jars
from streams.settings import Settings
from tests.brokers import lives


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker of this test alone."""
    kafka = EmbeddedKafka(tmp_path)
    yield kafka
    kafka.stop()


def _write(bootstrap: str, value: bytes) -> int:
    offsets: list[int | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce("notes", value, on_delivery=lambda _, message: offsets.append(message.offset()))
    assert producer.flush(30) == 0
    assert offsets[0] is not None
    return offsets[0]


def _read(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition("notes", 0, 0)])
    found = [message.value() for message in consumer.consume(count, timeout=30)]
    consumer.close()
    return found


def _topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("notes", 1, 1)])["notes"].result(30)


@pytest.mark.parametrize(("output", "major"), [
    ('openjdk version "17.0.15" 2025-04-15', 17),
    ('java version "1.8.0_402"', 8),
    ('openjdk version "21" 2023-09-19', 21),
    ('openjdk version "25-ea" 2025-09-16', 25),
    ("command not found", None),
])  # fmt: skip
def test_java_version_is_read_as_java_numbers_it(output: str, major: int | None) -> None:
    """The major version counts, and 1.8 is 8."""
    assert java_major(output) == major


def test_an_old_java_on_path_gives_way_to_the_wheel(tmp_path: Path) -> None:
    """A Java below 17 on PATH is passed over, and so is one that fails to start."""
    for script in ("echo 'openjdk version \"11.0.2\"' >&2", "exit 1"):
        (tmp_path / "java").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "java").chmod(0o755)

        assert find_java(str(tmp_path)).parent != tmp_path


def test_jars_are_cached_once_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache folder follows XDG_CACHE_HOME, so several data folders share one download."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_dir() == tmp_path / "interlock" / "jars"


def test_without_a_broker_the_error_says_what_to_run(tmp_path: Path) -> None:
    """No broker answers: the error names the folder and the command."""
    with pytest.raises(BrokerError, match="interlock up"):
        bootstrap_of(Settings(data_dir=tmp_path, bootstrap_servers=""))
    with pytest.raises(BrokerError, match="interlock up"):
        _ = EmbeddedKafka(tmp_path).bootstrap


def test_a_given_cluster_is_taken_as_it_is(tmp_path: Path) -> None:
    """With bootstrap_servers set no broker is looked for."""
    assert bootstrap_of(Settings(data_dir=tmp_path, bootstrap_servers="kafka:9092")) == "kafka:9092"


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """A port that was asked for and is taken stops the start with a clear error."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(BrokerError, match=f"port {port} is taken"):
            EmbeddedKafka(tmp_path, port).start()


def test_an_unreadable_state_file_is_no_broker(tmp_path: Path) -> None:
    """A torn broker.json counts as none."""
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "broker.json").write_text('{"pid": 1')

    assert EmbeddedKafka(tmp_path).state is None


@pytest.mark.kafka
def test_a_second_start_reuses_the_first(own: EmbeddedKafka, tmp_path: Path) -> None:
    """Two starts on one folder are one broker, and only the one who started it stops it."""
    first = own.start()
    with EmbeddedKafka(tmp_path) as second:
        assert second.bootstrap == first
        assert not second.started
    assert own.running()
    assert bootstrap_of(Settings(data_dir=tmp_path, bootstrap_servers="")) == first


@pytest.mark.kafka
def test_a_killed_broker_goes_on_with_its_data_and_port(own: EmbeddedKafka) -> None:
    """After kill -9 the same folder starts again: same address, nothing acknowledged is lost."""
    address = own.start()
    _topic(address)
    _write(address, b"before")
    own.kill()
    assert not own.running()

    assert own.start() == address
    assert _write(address, b"after") == 1
    assert _read(address, 2) == [b"before", b"after"]


@pytest.mark.kafka
def test_a_stale_pid_and_lost_ports_do_not_stop_a_start(own: EmbeddedKafka, tmp_path: Path) -> None:
    """The state file's pid belongs to another process and its ports to another server: both are replaced."""
    with socket.socket() as other, socket.socket() as another:
        for taken in (other, another):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
        old = {"pid": os.getpid(), "port": other.getsockname()[1], "controller_port": another.getsockname()[1]}
        (tmp_path / "kafka").mkdir()
        (tmp_path / "kafka" / "broker.json").write_text(json.dumps(old))

        address = own.start()

        assert address != f"127.0.0.1:{old['port']}"
        assert own.started


@pytest.mark.kafka
def test_a_broker_that_dies_says_why(own: EmbeddedKafka, tmp_path: Path) -> None:
    """The error quotes the broker's last log lines."""
    own.start()
    own.stop()
    meta = tmp_path / "kafka" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))

    with pytest.raises(BrokerError, match=r"(?s)ended with code 1.*node id 7"):
        own.start()


def _up(folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "INTERLOCK_DATA_DIR": str(folder), "INTERLOCK_BOOTSTRAP_SERVERS": "",
                   "INTERLOCK_KEEPER_PORT": "0"}  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "streams.cli", "up"], env=environment, text=True,
                               stdout=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    assert "Kafka runs at 127.0.0.1:" in process.stdout.readline()
    assert "A keeper applies what is remembered" in process.stdout.readline()
    return process


@pytest.mark.kafka
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """`interlock up` says where Kafka is, runs a keeper, stops both on a signal, and ends with status 0."""
    with _up(tmp_path) as process:
        broker, keeper = EmbeddedKafka(tmp_path).state, int((tmp_path / "keeper.pid").read_text())
        assert lives(keeper)
        process.send_signal(number)

        assert process.wait(60) == 0
    assert broker is not None
    assert not lives(broker.pid)
    assert not lives(keeper)


@pytest.mark.kafka
def test_down_stops_what_a_killed_up_left_behind(tmp_path: Path) -> None:
    """After kill -9 of `up` broker and keeper run on, and `down` ends both."""
    with _up(tmp_path) as process:
        broker, keeper = EmbeddedKafka(tmp_path).state, int((tmp_path / "keeper.pid").read_text())
        process.kill()
    assert broker is not None
    assert lives(broker.pid)
    assert lives(keeper)

    done = _command(tmp_path, "down").stdout

    assert "The keeper stopped." in done
    assert "Kafka stopped." in done
    assert not lives(broker.pid)
    assert not lives(keeper)


@pytest.mark.kafka
def test_the_jars_come_whole(broker: str) -> None:
    """The cache holds the broker and the logger that tells why it dies."""
    assert broker
    names = {path.name.rsplit("-", 1)[0] for path in kafka_jars()}
    assert {"kafka_2.13", "kafka-clients", "log4j-slf4j-impl"} <= names


def _command(folder: Path, name: str, bootstrap: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "INTERLOCK_DATA_DIR": str(folder), "INTERLOCK_BOOTSTRAP_SERVERS": bootstrap}
    return subprocess.run([sys.executable, "-m", "streams.cli", name], env=environment, capture_output=True, text=True,
                          check=False, timeout=110)  # fmt: skip


@pytest.mark.kafka
def test_up_reuses_and_down_stops_one_left_behind(own: EmbeddedKafka, tmp_path: Path) -> None:
    """A second `up` says where the first runs and ends; `down` stops a broker whose starter is gone."""
    address = own.start()
    again = _command(tmp_path, "up")
    assert (0, True) == (again.returncode, f"already runs at {address}" in again.stdout)
    assert "stopped" in _command(tmp_path, "down").stdout
    assert not own.running()
    assert "No broker was running" in _command(tmp_path, "down").stdout


@pytest.mark.kafka
def test_up_starts_nothing_beside_a_given_cluster(broker: str, tmp_path: Path) -> None:
    """With INTERLOCK_BOOTSTRAP_SERVERS set that cluster is used: topics are made there, no broker is started."""
    done = _command(tmp_path, "up", broker)

    assert (0, True) == (done.returncode, "nothing to start" in done.stdout)
    assert not (tmp_path / "kafka").exists()
