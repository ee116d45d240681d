"""The consumer of feedback.health that turns scores into metrics; the register keeps what a gauge forgets."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from schemas import cloudevents, codec
from schemas.errors import BadRecordError
from schemas.feedback import Health
from streams.metrics import MetricsPort
from streams.runtime.client import consumer_config, words
from streams.runtime.ports import Clock
from streams.settings import Settings

TOPIC = "feedback.health"
LOW = 60  # R-002-40: a session below this needs somebody's eye
STALE_MS = 86_400_000  # older scores are history: a first start must not count half a year as today
BATCH = 500
_NOT_OURS = (KafkaError._STATE, KafkaError._NO_OFFSET)  # noqa: SLF001 (revoked between reading and telling)
log = logging.getLogger(__name__)


class HealthScores:
    """What the newest window looks like, by shop and channel; of each session the latest revision counts.

    A score enters the histogram once, with its first revision: a counter can't take a value back.
    """

    def __init__(self, metrics: MetricsPort) -> None:
        self._metrics = metrics
        self._window = (0, 0)
        self._scores: dict[tuple[str, str, str], tuple[int, int]] = {}  # of the newest window: revision and score
        self._places: set[tuple[str, str]] = set()

    def take(self, health: Health, now_ms: int) -> None:
        """Count one record; a repeat or an earlier revision changes nothing in the gauges."""
        place = (health.shop, health.channel)
        if now_ms - health.window_end > STALE_MS:
            return
        if health.revision:
            self._metrics.count("interlock_health_revisions_total", shop=health.shop, channel=health.channel)
        window = (health.window_start, health.window_end)
        known = self._scores.get((*place, health.session_id), (-1, 0)) if window == self._window else (-1, 0)
        if not health.revision and known[0] < 0:
            self._metrics.observe("interlock_health_score", health.score, shop=health.shop, channel=health.channel)
        if window > self._window:
            self._window = window
            self._scores.clear()
        if window == self._window and health.revision > known[0]:
            self._scores[(*place, health.session_id)] = (health.revision, health.score)
            self._places.add(place)

    def publish(self, now_ms: int) -> None:
        """Set the gauges; a window that ended two windows ago says nothing of now, so it counts as none."""
        start, end = self._window
        # no new window for so long: sessions are silent, or nobody scores them
        if now_ms - end > 2 * (end - start):
            self._scores.clear()
        scored = Counter(key[:2] for key in self._scores)
        low = Counter(key[:2] for key, (_, score) in self._scores.items() if score < LOW)
        for place in self._places:
            shop, channel = place
            self._metrics.gauge("interlock_sessions_scored", scored[place], shop=shop, channel=channel)
            self._metrics.gauge("interlock_sessions_low", low[place], shop=shop, channel=channel)


class HealthExporter:
    """Reads feedback.health in a group of its own, at least once, until it is stopped."""

    def __init__(self, settings: Settings, metrics: MetricsPort, clock: Clock) -> None:
        self._scores = HealthScores(metrics)
        self._metrics = metrics
        self._clock = clock
        self._config = consumer_config(settings, f"{settings.group}-health")

    def run(self, stop: threading.Event) -> None:
        """Consume until `stop` is set. Raises KafkaException when the broker refuses the consumer."""
        consumer = Consumer(self._config)
        try:
            consumer.subscribe([TOPIC])
            while not stop.is_set():
                self._take(consumer.consume(BATCH, timeout=0.5), consumer)
                self._scores.publish(self._clock.now_ms())
        finally:
            consumer.close()

    def _take(self, messages: list[Any], consumer: Consumer) -> None:
        read = False
        for message in messages:
            error = message.error()
            if error is None:
                self._read(message)
                read = True
            elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 (the client's own name for it)
                if error.fatal() or not error.retriable():
                    raise KafkaException(error)
                log.warning("%s: %s", TOPIC, words(error))
        if read:
            self._tell(messages, consumer)

    def _tell(self, messages: list[Any], consumer: Consumer) -> None:
        """How far we are. What is not told is read again: a repeat has the same revision and moves no gauge."""
        try:
            for message in messages:
                if message.error() is None:
                    consumer.store_offsets(message)
            consumer.commit(asynchronous=True)
        except KafkaException as error:
            if error.args[0].code() not in _NOT_OURS:
                raise
            log.info("offsets of %s not kept, its partitions went to another exporter: %s", TOPIC, words(error.args[0]))

    def _read(self, message: Any) -> None:
        where = f"{TOPIC} [{message.partition()}] at {message.offset()}"
        try:
            envelope = cloudevents.parse_headers(TOPIC, tuple(message.headers() or ()))
            health = codec.decode(TOPIC, message.value(), envelope.type, minor=envelope.minor)
        except BadRecordError as error:
            log.warning("%s is no score, left out: %s", where, error)
            self._metrics.count("interlock_health_unreadable_total", code=error.code)
            return
        self._scores.take(health, self._clock.now_ms())
