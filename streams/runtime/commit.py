"""The diff is the commit (promise 4): one transactional producer a partition, on a thread of its own.

Its `transactional.id` is group and partition, so whoever was owner before is fenced (promise 2).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streams.metrics import MetricsPort
from streams.runtime.client import producer_config, serve, words
from streams.runtime.crashpoints import crash
from streams.runtime.ports import Outgoing, PartitionLostError
from streams.runtime.wire import DIFFS
from streams.settings import Settings

RETRY_S = 10.0  # a retriable outcome is retried for so long
TRANSACTION_MS = 10_000  # the broker aborts an open transaction after this, also a frozen owner's
CALL_S = 2.0  # one call of the client blocks for so long at most


class RecordRefusedError(Exception):
    """A record that the broker will never take (too large, no such topic): the partition stops, visibly."""


class _TryAgainError(Exception):
    """The transaction is known not to be committed, and may be done again."""


class KafkaCommitter:
    """CommitPort of one partition. `fence` comes first, inside an assignment and nowhere else."""

    def __init__(self, settings: Settings, partition: int, metrics: MetricsPort | None = None) -> None:
        self.name = f"{settings.group}-{partition}"
        self._config = producer_config(
            settings, transactional_id=self.name, transaction_timeout_ms=TRANSACTION_MS,
            message_timeout_ms=TRANSACTION_MS, client_id=f"{settings.group}-commit-{partition}",
        )  # fmt: skip
        # not the default pool: a commit that waits for its broker would hold the thread that another partition needs
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"commit-{partition}")
        self._producer: Producer | None = None
        self._metrics = metrics
        self._closed = self._fenced = False

    async def connect(self) -> None:
        """Do all that is slow before the fence. Raises PartitionLostError."""
        await self._run(self._connect)

    async def fence(self, still_owner: Callable[[], bool]) -> bool:
        """Fence whoever held the partition before, and end its open transaction; False: ask again, then repeat.

        `still_owner` is asked on the producer's thread directly before, so that a worker which thaws here
        does not take the partition from its successor. Raises PartitionLostError.
        """
        fenced: bool = await self._run(self._fence, still_owner)
        return fenced

    async def commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        """All records in one transaction; their offsets and append times.

        Raises PartitionLostError and RecordRefusedError.
        """
        began = time.monotonic()
        placed: list[tuple[int, int]] = await self._run(self._commit, batch)
        if self._metrics is not None:
            self._metrics.observe("interlock_commit_seconds", time.monotonic() - began)
            decisions = sum(record.topic == DIFFS for record in batch)
            self._metrics.observe("interlock_commit_batch_decisions", decisions)
        return placed

    def close(self) -> None:
        """Throw the producer away; what it still has to say is not waited for."""
        self._closed = True
        self._thread.submit(self._discard)
        self._thread.shutdown(wait=False)

    async def _run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        if self._closed:
            message = f"{self.name}: the producer was thrown away"
            raise PartitionLostError(message)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def _connect(self) -> None:
        self._producer = Producer(self._config)
        try:
            # connections and metadata now: between the group's yes and the fence nothing may be slow
            self._producer.list_topics(timeout=RETRY_S)
        except KafkaException as error:
            raise _lost(self.name, "connect", error.args[0]) from error

    def _fence(self, still_owner: Callable[[], bool]) -> bool:
        producer = self._ready()
        crash("fence.asked")
        if not still_owner():
            return False
        crash("fence.before")
        try:
            serve(producer.init_transactions, CALL_S)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            # a time-out says nothing: the broker may still be ending the last owner's transaction
            if not reason.retriable():
                raise _lost(self.name, "init_transactions", reason) from error
            return False
        crash("fence.after")
        self._fenced = True
        return True

    def _commit(self, batch: Sequence[Outgoing]) -> list[tuple[int, int]]:
        if not self._fenced:
            message = f"{self.name}: no fence, no commit"
            raise PartitionLostError(message)
        until = time.monotonic() + RETRY_S
        while True:
            try:
                return self._transaction(batch, until)
            except _TryAgainError as error:
                # a partition that closes must not go on trying for the rest of the ten seconds
                if time.monotonic() > until or self._closed:
                    message = f"{self.name}: not committed within {RETRY_S:.0f} s: {error}"
                    raise PartitionLostError(message) from error
                time.sleep(0.05)

    def _transaction(self, batch: Sequence[Outgoing], until: float) -> list[tuple[int, int]]:
        producer = self._ready()
        # confirmations come in any order; each fills its own place
        placed: list[tuple[int, int] | None] = [None] * len(batch)
        failures: list[KafkaError] = []
        crash("transaction.before")
        try:
            producer.begin_transaction()
            crash("transaction.begun")
            for index, record in enumerate(batch):
                self._produce(producer, record, index, placed, failures, until)
            # flush sends what lingers at once; half a second at a time, so that a failure ends the wait early
            while len(producer) and not failures and time.monotonic() < until:
                serve(producer.flush, 0.5)
        except KafkaException as error:
            self._abort(producer, error.args[0], until)
        if failures or None in placed:
            self._abort(producer, failures[0] if failures else KafkaError(KafkaError._MSG_TIMED_OUT), until)  # noqa: SLF001
        crash("transaction.produced")
        self._end(producer, until)
        crash("transaction.committed")
        return [place for place in placed if place is not None]

    def _produce(self, producer: Producer, record: Outgoing, index: int, placed: list[tuple[int, int] | None],
                 failures: list[KafkaError], until: float) -> None:  # fmt: skip
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
            else:
                placed[index] = (message.offset() or 0, message.timestamp()[1])

        while True:
            try:
                producer.produce(record.topic, partition=record.partition, key=record.key, value=record.value,
                                 headers=list(record.headers), on_delivery=delivered)  # fmt: skip
            except BufferError:
                if time.monotonic() > until:
                    raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from None  # noqa: SLF001
                serve(producer.poll, 0.05)
            else:
                return

    def _end(self, producer: Producer, until: float) -> None:
        """Commit; the same call may be repeated as long as its outcome is retriable."""
        while True:
            try:
                serve(producer.commit_transaction, CALL_S)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                # known not to be committed: the only outcome after which the same decisions may be tried once more
                if reason.txn_requires_abort():
                    self._abort(producer, reason, until)
                # perhaps committed: only the next owner's reader can tell, so nothing may follow from it here
                if not reason.retriable() or time.monotonic() > until or self._closed:
                    raise _lost(self.name, "commit_transaction", reason) from error
            else:
                return

    def _abort(self, producer: Producer, cause: KafkaError, until: float) -> None:
        """End the transaction as not committed, and say what the caller may do. Always raises."""
        while True:
            if cause.fatal() or cause.code() in _FENCED:
                raise _lost(self.name, "transaction", cause)
            try:
                serve(producer.abort_transaction, CALL_S)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if not reason.retriable() or time.monotonic() > until or self._closed:
                    raise _lost(self.name, "abort_transaction", reason) from error
            else:
                break
        if cause.code() in _REFUSED:
            message = f"{self.name}: the broker refuses a record: {words(cause)}"
            raise RecordRefusedError(message)
        raise _TryAgainError(words(cause))

    def _ready(self) -> Producer:
        if self._producer is None:
            message = f"{self.name}: not connected, or thrown away"
            raise PartitionLostError(message)
        return self._producer

    def _discard(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            with contextlib.suppress(KafkaException):
                serve(producer.poll, 0)


_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)  # noqa: SLF001
_REFUSED = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
            KafkaError._UNKNOWN_PARTITION, KafkaError.TOPIC_AUTHORIZATION_FAILED)  # noqa: SLF001  # fmt: skip


def _lost(name: str, doing: str, reason: KafkaError) -> PartitionLostError:
    return PartitionLostError(f"{name}: {doing}: {words(reason)}")
