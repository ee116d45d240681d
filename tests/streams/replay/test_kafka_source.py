"""The same reading contract on real Kafka and on the in-memory log: ends are positions, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from streams.clock import fresh_id
from streams.reader import KafkaSource, LogSource, ReadError
from streams.replay.local import LocalSource
from streams.runtime.ports import Record
from streams.settings import Settings

T0 = 1_767_578_400_000


class Log:
    """Where a test writes and reads: topic `plans` in memory, a topic of its own on Kafka."""

    topic = "plans"

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, partition: int, *values: bytes) -> None:
        """Records at the partition's end, one second apart."""
        for value in values:
            offset = sum(one.partition == partition for one in self.records)
            self.records.append(
                Record(self.topic, partition, offset, T0 + 1_000 * offset, b"a/b/c", value, (("h", b"1"),))
            )

    def source(self) -> LogSource:
        """A source on what was written."""
        return LocalSource(self.records, 2)


class KafkaLog(Log):
    """The same on a broker; every write is a transaction, so that its marker stands at the end."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        super().__init__()
        self.topic = fresh_id("source")
        self.settings = Settings(bootstrap_servers=bootstrap, data_dir=folder)
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        config = {"message.timestamp.type": "CreateTime"}
        self.admin.create_topics([NewTopic(self.topic, 2, 1, config=config)])[self.topic].result()
        self.producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": self.topic})
        self.producer.init_transactions(30)
        self.opened: list[KafkaSource] = []

    def write(self, partition: int, *values: bytes) -> None:
        """See Log."""
        super().write(partition, *values)
        self.produce(partition, *values)
        self.producer.commit_transaction(30)
        while self._end(partition, IsolationLevel.READ_COMMITTED) != self._end(
            partition, IsolationLevel.READ_UNCOMMITTED
        ):
            pass  # the broker answers a commit before its marker is in every partition

    def _end(self, partition: int, isolation: IsolationLevel) -> int:
        place = TopicPartition(self.topic, partition)
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = self.admin.list_offsets({place: latest}, isolation_level=isolation)
        end: int = asked[place].result().offset
        return end

    def produce(self, partition: int, *values: bytes) -> None:
        """A transaction that is left open."""
        self.producer.begin_transaction()
        start = sum(one.partition == partition for one in self.records) - len(values)
        for number, value in enumerate(values):
            self.producer.produce(self.topic, value, b"a/b/c", partition, timestamp=T0 + 1_000 * (start + number),
                                  headers=[("h", b"1")])  # fmt: skip
        self.producer.flush(30)

    def source(self) -> LogSource:
        """See Log."""
        self.opened.append(KafkaSource(self.settings))
        return self.opened[-1]

    def close(self) -> None:
        """Give everything back."""
        for source in self.opened:
            source.close()
        self.admin.delete_topics([self.topic])[self.topic].result()


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """Each kind of log in turn."""
    if request.param == "memory":
        yield Log()
        return
    kafka = KafkaLog(request.getfixturevalue("broker"), tmp_path)
    yield kafka
    kafka.close()


def test_reading_to_the_end_ends(log: Log) -> None:
    """Three records and a transaction marker behind them: three are read, and reading is over (case D01)."""
    log.write(0, b"1", b"2", b"3")
    assert [b"1", b"2", b"3"] == [one.value for one in log.source().read([(log.topic, 0, 0)])]


def test_a_record_is_read_as_it_was_written(log: Log) -> None:
    """Topic, partition, offset, time, key, value and headers are the record's (R-003-30)."""
    log.write(1, b"x")
    (read,) = log.source().read([(log.topic, 1, 0)])
    assert log.records[0] == read


def test_several_partitions_are_read_each_in_order(log: Log) -> None:
    """Partitions may come interleaved; each keeps its own order, and an empty one is no obstacle (promise 1)."""
    log.write(0, *[b"%d" % number for number in range(50)])
    read = list(log.source().read([(log.topic, 0, 0), (log.topic, 1, 0)]))
    log.write(1, *[b"%d" % number for number in range(50)])
    read_again = list(log.source().read([(log.topic, 0, 10), (log.topic, 1, 0)]))
    assert [*range(50)] == [int(one.value or b"") for one in read]
    assert [*range(10, 50)] == [int(one.value or b"") for one in read_again if one.partition == 0]
    assert [*range(50)] == [int(one.value or b"") for one in read_again if one.partition == 1]


def test_a_time_leads_to_an_offset(log: Log) -> None:
    """The first record at or after a time; after the last one there is nothing (R-002-17)."""
    log.write(0, b"0", b"1", b"2")
    source = log.source()
    assert [0, 1, 1, 2] == [source.at_time(log.topic, 0, T0 + ms) for ms in (-5, 500, 1_000, 1_001)]
    late = source.at_time(log.topic, 0, T0 + 2_001)
    assert [] == list(source.read([(log.topic, 0, late)]))
    assert 0 == source.at_time(log.topic, 1, T0)


def test_a_partition_ends_at_the_first_record_after_the_time(log: Log) -> None:
    """A stretch of a log costs its own length, not the log's (R-002-17)."""
    log.write(0, *[b"%d" % number for number in range(20)])
    read = log.source().read([(log.topic, 0, 5)], until_ms=T0 + 7_000)
    assert [b"5", b"6", b"7"] == [one.value for one in read]


def test_beginning_at_or_behind_the_end_reads_nothing(log: Log) -> None:
    """An offset that is not there yet is no error (case D01)."""
    log.write(0, b"1")
    source = log.source()
    assert [] == list(source.read([(log.topic, 0, source.bounds(log.topic, 0)[1])]))
    assert [] == list(source.read([(log.topic, 0, 900), (log.topic, 1, 0)]))
    assert [] == list(source.read([]))


def test_a_reading_can_be_left_and_another_begun(log: Log) -> None:
    """Who has found what was sought stops reading, and reads something else (R-002-17)."""
    log.write(0, b"1", b"2", b"3")
    source = log.source()
    assert b"1" == next(source.read([(log.topic, 0, 0)])).value
    assert [b"2", b"3"] == [one.value for one in source.read([(log.topic, 0, 1)])]


def test_a_log_is_read_to_its_end_again(log: Log) -> None:
    """One source reads several partitions to the end as often as it is asked (case D01)."""
    log.write(0, b"1", b"2")
    log.write(1, *[b"%d" % number for number in range(3_000)])
    source, places = log.source(), [(log.topic, 0, 0), (log.topic, 1, 0)]
    assert [3_002, 3_002] == [len(list(source.read(places))) for _ in range(2)]
    assert [2, 2] == [len(list(source.read(places, until_ms=T0 + ms))) - 2 for ms in (1_500, 1_500)]


def test_partitions_are_counted(log: Log) -> None:
    """A topic that is not there has none, and asking does not create it (promise 8)."""
    log.write(0, b"1")
    source = log.source()
    assert 2 == source.partitions(log.topic)
    assert [0, 0] == [source.partitions("no.such.topic"), source.partitions("no.such.topic")]


@pytest.fixture
def kafka(broker: str, tmp_path: Path) -> Iterator[KafkaLog]:
    """A log on the broker."""
    opened = KafkaLog(broker, tmp_path)
    yield opened
    opened.close()


@pytest.mark.kafka
def test_what_is_not_committed_is_not_read(kafka: KafkaLog) -> None:
    """An open transaction ends the reading, an aborted one is skipped (promise 4)."""
    kafka.write(0, b"1")
    kafka.produce(0, b"open")
    assert [b"1"] == [one.value for one in kafka.source().read([(kafka.topic, 0, 0)])]
    kafka.producer.abort_transaction(30)
    kafka.write(0, b"2")
    assert [b"1", b"2"] == [one.value for one in kafka.source().read([(kafka.topic, 0, 0)])]


@pytest.mark.kafka
def test_reading_leaves_no_group_and_no_offsets(kafka: KafkaLog) -> None:
    """Replay touches nothing: the cluster knows of no group afterwards (promise 8)."""
    kafka.write(0, b"1", b"2")
    assert 2 == len(list(kafka.source().read([(kafka.topic, 0, 0)])))
    groups = kafka.admin.list_consumer_groups().result().valid
    assert f"{kafka.settings.group}-reader" not in [group.group_id for group in groups]


@pytest.mark.kafka
def test_following_goes_on_with_what_comes(kafka: KafkaLog) -> None:
    """A tail waits at the end and prints what is written then (R-003-30)."""
    kafka.write(0, b"before")
    source = KafkaSource(kafka.settings)
    following = source.follow([(kafka.topic, 0, source.bounds(kafka.topic, 0)[1])])
    assert next(following) is None
    kafka.write(0, b"after")
    read = next(one for one in following if one is not None)
    assert b"after" == read.value
    following.close()  # type: ignore[attr-defined]
    source.close()


def test_a_broker_that_is_away_is_said(tmp_path: Path) -> None:
    """Nobody waits for ever: one error says where was looked, what the client says, and what to do (promise 10)."""
    source = KafkaSource(Settings(bootstrap_servers="127.0.0.1:1", data_dir=tmp_path), timeout_s=0.3)
    with pytest.raises(ReadError, match=r"no broker answers at 127\.0\.0\.1:1 \(.*\): start one with `interlock up`"):
        source.partitions("plans")
    source.close()
