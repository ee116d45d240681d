"""Where the keeper reads: a consumer group of its own on Kafka, or the in-memory log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from schemas.errors import InterlockError
from schemas.topics import MEMORY_TOPIC
from streams.reader import to_record
from streams.runtime.client import consumer_config, producer_config, serve, words
from streams.runtime.local import LocalLog
from streams.runtime.ports import Outgoing, Record
from streams.settings import Settings

log = logging.getLogger("interlock.keeper")

BATCH = 500
IDLE_S = 0.3
WRITE_S = 30.0  # a dead letter that the broker has not taken by then ends the keeper; its writes are read again


class KeeperStoppedError(InterlockError):
    """The broker did not take what the keeper wrote: nothing more was committed, start it again."""


class KafkaKeeping:
    """See KeepingSource. The group's members share the partitions; offsets are committed by hand, in order."""

    def __init__(self, settings: Settings, client: Callable[[dict[str, Any]], Consumer] = Consumer) -> None:
        self._consumer = client(consumer_config(
            settings, f"{settings.group}.keeper", enable_partition_eof=False,
            session_timeout_ms=settings.session_timeout_ms, heartbeat_interval_ms=settings.heartbeat_ms,
            max_poll_interval_ms=settings.poll_limit_ms))  # fmt: skip
        self._early: list[Record] = []  # read while we held, from a partition that came just then
        self._producer = Producer(producer_config(settings, message_timeout_ms=int(WRITE_S * 1_000), linger_ms=0))
        self._owned: set[int] = set()
        self._consumer.subscribe([MEMORY_TOPIC], on_assign=self._assigned, on_revoke=self._gone, on_lost=self._gone)

    def _assigned(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._owned = {place.partition for place in places}

    def _gone(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._owned -= {place.partition for place in places}

    async def read(self) -> list[Record]:
        """See KeepingSource. Raises KafkaException for what does not pass by itself."""
        early, self._early = self._early, []
        found = await asyncio.to_thread(serve, self._consumer.consume, BATCH, 0 if early else IDLE_S)
        return [*early, *(to_record(item) for item in found if not _broken(item))]

    async def hold(self) -> None:
        """See KeepingSource."""
        self._consumer.pause(self._consumer.assignment())
        # a paused partition gives nothing; the call serves the group, which may take partitions away, and bring others
        found = await asyncio.to_thread(serve, self._consumer.consume, 1, 0.01)
        self._early += [to_record(item) for item in found if not _broken(item)]

    async def go_on(self) -> None:
        """See KeepingSource."""
        self._consumer.resume(self._consumer.assignment())

    def owns(self, partition: int) -> bool:
        """See KeepingSource."""
        return partition in self._owned

    async def commit(self, partition: int, offset: int) -> None:
        """See KeepingSource."""
        place = TopicPartition(MEMORY_TOPIC, partition, offset)
        try:
            await asyncio.to_thread(lambda: self._consumer.commit(offsets=[place], asynchronous=False))
        except KafkaException as error:  # the partition moved on: its next keeper applies these again, to no effect
            log.warning("offset %d of %s [%d] not committed: %s", offset, MEMORY_TOPIC, partition, words(error.args[0]))

    async def write(self, letter: Outgoing) -> None:
        """See KeepingSource. Raises KeeperStoppedError."""
        failed: list[KafkaError] = []

        def done(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        self._producer.produce(letter.topic, letter.value, letter.key, letter.partition, on_delivery=done,
                               headers=list(letter.headers))  # fmt: skip
        left = await asyncio.to_thread(serve, self._producer.flush, WRITE_S)
        if failed or left:
            reason = words(failed[0]) if failed else f"no answer for {WRITE_S:.0f} s"
            message = f"the broker did not take a dead letter of {MEMORY_TOPIC}: {reason}"
            raise KeeperStoppedError(message)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


_HOPELESS = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
             KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.INVALID_SESSION_TIMEOUT)  # fmt: skip


def _broken(item: Message) -> bool:
    """Whether it is a word of the client, not a record. Raises KafkaException for one that can't pass."""
    error: Any = item.error()
    if error is None:
        return False
    if error.fatal() or error.code() in _HOPELESS:
        raise KafkaException(error)
    log.warning("%s: %s", MEMORY_TOPIC, words(error))
    return True


class LocalKeeping:
    """See KeepingSource; on an in-memory log, from its first record. `offsets` outlives a keeper, as a group's do."""

    def __init__(self, log_: LocalLog, offsets: dict[int, int] | None = None) -> None:
        self._log = log_
        self.offsets = {} if offsets is None else offsets
        self._read: dict[int, int] = dict(self.offsets)

    async def read(self) -> list[Record]:
        """See KeepingSource."""
        found = [one for one in self._log.records(MEMORY_TOPIC) if one.offset >= self._read.get(one.partition, 0)]
        for record in found:
            self._read[record.partition] = record.offset + 1
        return found

    async def hold(self) -> None:
        """See KeepingSource."""

    async def go_on(self) -> None:
        """See KeepingSource."""

    def owns(self, partition: int) -> bool:
        """See KeepingSource."""
        return partition >= 0

    async def commit(self, partition: int, offset: int) -> None:
        """See KeepingSource."""
        self.offsets[partition] = offset

    async def write(self, letter: Outgoing) -> None:
        """See KeepingSource."""
        self._log.append(letter)
