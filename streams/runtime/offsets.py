"""What the broker holds (OffsetsPort): end offsets of the input topics, one request a second for a whole worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streams.runtime.client import common, words
from streams.settings import Settings

log = logging.getLogger("interlock.offsets")

INTERVAL_S = 1.0
TIMEOUT_S = 10.0


class KafkaOffsets:
    """End offsets are high watermarks, also above records of an open foreign transaction.

    Such records were appended, so a deadline waits for them; a transaction marker at the end is passed by
    the reader's position, not by a record (case D01).
    """

    def __init__(self, settings: Settings, topics: Iterable[str]) -> None:
        self._admin = AdminClient(common(settings))
        self._topics = tuple(topics)
        self._asked: list[tuple[int, asyncio.Future[Mapping[str, int]]]] = []
        self._round: asyncio.Task[None] | None = None
        self._last = float("-inf")

    async def ends(self, partition: int) -> Mapping[str, int]:
        """End offsets asked after this call began, by topic. Waits for a broker that is away: deadlines can."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Mapping[str, int]] = loop.create_future()
        self._asked.append((partition, future))
        if self._round is None or self._round.done():
            self._round = loop.create_task(self._ask())
        return await future

    def close(self) -> None:
        """Stop asking."""
        if self._round is not None:
            self._round.cancel()
        for _, future in self._asked:
            future.cancel()

    async def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        while self._asked:
            await asyncio.sleep(max(0.0, self._last + INTERVAL_S - loop.time()))
            self._last = loop.time()
            # whoever asks from here on is answered by the next request: an end must be no older than its question
            asked, self._asked = [entry for entry in self._asked if not entry[1].done()], []
            try:
                # off the loop: the call blocks until the broker answers
                ends = await asyncio.to_thread(self._list, tuple({partition for partition, _ in asked}))
            except KafkaException as error:
                log.warning("end offsets not told: %s", words(error.args[0]))
                self._asked = asked + self._asked
                await asyncio.to_thread(self._look_again)
                continue
            except Exception as error:  # noqa: BLE001 (the partitions that asked close and say so; else they wait for ever)
                for _, future in asked:
                    if not future.done():
                        future.set_exception(error)
                continue
            for partition, future in asked:
                if not future.done():
                    future.set_result(ends[partition])

    def _look_again(self) -> None:
        """A broker that came back has a new leader epoch, and the client asks with the old one for five minutes."""
        try:
            self._admin.list_topics(timeout=TIMEOUT_S)
        except KafkaException as error:
            log.info("the broker is still away: %s", words(error.args[0]))

    def _list(self, partitions: tuple[int, ...]) -> dict[int, dict[str, int]]:
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, number): latest for topic in self._topics for number in partitions}
        ends: dict[int, dict[str, int]] = {number: {} for number in partitions}
        answers = self._admin.list_offsets(wanted, request_timeout=TIMEOUT_S)
        for place, answer in answers.items():
            ends[place.partition][place.topic] = answer.result().offset
        return ends
