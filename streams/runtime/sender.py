"""Emits and facts (promise 4): one idempotent producer a worker, which never times a record out."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streams.runtime.client import producer_config, serve, words
from streams.runtime.crashpoints import crash
from streams.runtime.ports import Outgoing
from streams.settings import Settings

_Done = tuple["asyncio.Future[int]", int, KafkaError | None]


class SendError(Exception):
    """The broker will not take this record, or the producer is broken for good."""


class KafkaSender:
    """SendPort. Belongs to the event loop that made it; `on_fatal` hears of an end that is final."""

    def __init__(self, settings: Settings, on_fatal: Callable[[str], None], **extra: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_fatal = on_fatal
        # 0: a record waits for its broker as long as it takes; its diff is committed, it can't be given up
        ours = {"message_timeout_ms": 0, "linger_ms": settings.emit_linger_ms, "client_id": f"{settings.group}-send"}
        config = producer_config(settings, **ours, **extra)
        self._producer = Producer(config)
        self._waiting: deque[tuple[Outgoing, asyncio.Future[int]]] = deque()
        self._done: deque[_Done] = deque()
        self._woken = False
        self._stop = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="send-poll", daemon=True)
        self._poller.start()

    def __len__(self) -> int:
        """Records handed over that the broker has not confirmed yet."""
        return len(self._waiting) + len(self._producer)

    def send(self, record: Outgoing) -> Awaitable[int]:
        """Hand over now, in call order; a full queue makes the record wait here, it is never lost (case C21)."""
        future: asyncio.Future[int] = self._loop.create_future()
        crash("send.before")
        # behind those that wait, also when there is room again: emits keep their order
        if self._waiting or not self._hand_over(record, future):
            self._waiting.append((record, future))
        crash("send.handed_over")
        return future

    async def flush(self, timeout_s: float) -> int:
        """Wait until the broker has everything; how many records it still has not."""
        until = time.monotonic() + timeout_s
        while len(self) and time.monotonic() < until:
            await asyncio.sleep(0.01)
            self._refill()
        return len(self)

    async def close(self, timeout_s: float) -> int:
        """Flush and stop. What is left is published again by the next owner, from the diffs."""
        left = await self.flush(timeout_s)
        self._stop.set()
        await self._loop.run_in_executor(None, self._poller.join, 2.0)
        self._take()
        for _, future in self._waiting:
            future.cancel()
        # what is left stands in the diffs, from the last one's `unsent` on
        if left:
            self._producer.purge()
        return left

    def _hand_over(self, record: Outgoing, future: asyncio.Future[int]) -> bool:
        def delivered(error: KafkaError | None, message: Message) -> None:
            # on the poll thread: the loop is woken once for all that is confirmed until it looks
            self._done.append((future, message.offset() or 0, error))
            if not self._woken:
                self._woken = True
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._take)

        try:
            self._producer.produce(record.topic, partition=record.partition, key=record.key, value=record.value,
                                   headers=list(record.headers), on_delivery=delivered)  # fmt: skip
        except BufferError:
            return False
        except KafkaException as error:
            self._fail(future, error.args[0])
        return True

    def _poll(self) -> None:
        while not self._stop.is_set():
            try:
                serve(self._producer.poll, 0.1)
            except KafkaException as error:
                self._stop.set()
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._broken, words(error.args[0]))

    def _take(self) -> None:
        """On the loop: tell those who wait, then hand over what waits for room."""
        # before the queue is emptied: what is confirmed meanwhile wakes the loop once more, which does no harm
        self._woken = False
        while self._done:
            future, offset, error = self._done.popleft()
            if error is not None:
                self._fail(future, error)
            elif not future.done():
                crash("send.acknowledged")
                future.set_result(offset)
        self._refill()

    def _refill(self) -> None:
        while self._waiting and self._hand_over(*self._waiting[0]):
            self._waiting.popleft()

    def _fail(self, future: asyncio.Future[int], error: KafkaError) -> None:
        if not future.done():
            future.set_exception(SendError(words(error)))

    def _broken(self, reason: str) -> None:
        """A fatal error: nothing that was handed over will ever be confirmed."""
        self._take()
        self._on_fatal(reason)
