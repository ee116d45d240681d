"""The health exporter: what the newest window looks like, and each score once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from schemas import cloudevents, codec
from schemas.feedback import Health
from schemas.topics import TOPICS
from streams.clock import SystemClock, fresh_id
from streams.health_exporter import STALE_MS, TOPIC, HealthExporter, HealthScores
from streams.metrics import RecordedMetrics
from tests.streams.runtime.support import settings

T0 = 1_767_578_400_000
WINDOW = 300_000


def _health(score: int, session: str = "s-1", window: int = 0, start: int = T0, **fields: Any) -> Health:
    return Health(**{
        "session_id": session, "shop": "shop-1", "channel": "web", "window_start": start + window * WINDOW,
        "window_end": start + (window + 1) * WINDOW, "score": score, "parts": {}, "signals": {}, **fields,
    })  # fmt: skip


def _seen(*records: Health, now: int = T0 + 2 * WINDOW) -> RecordedMetrics:
    metrics = RecordedMetrics()
    scores = HealthScores(metrics)
    for record in records:
        scores.take(record, now)
    scores.publish(now)
    return metrics


def _gauges(metrics: RecordedMetrics, channel: str = "web") -> tuple[float, float]:
    return (metrics.value("interlock_sessions_scored", "shop-1", channel),
            metrics.value("interlock_sessions_low", "shop-1", channel))  # fmt: skip


def test_sessions_under_60_are_counted() -> None:
    """59 is low and 60 is not, by channel (R-002-40)."""
    metrics = _seen(_health(59, "a"), _health(60, "b"), _health(10, "c", channel="app"))
    assert (2, 1) == _gauges(metrics)
    assert (1, 1) == _gauges(metrics, "app")


def test_the_latest_revision_counts() -> None:
    """A revision replaces the score in the gauges, and one that comes late or twice does not."""
    metrics = _seen(_health(80), _health(40, revision=1), _health(90, revision=2), _health(80), _health(40, revision=1))
    assert (1, 0) == _gauges(metrics)
    assert 3 == metrics.value("interlock_health_revisions_total", "shop-1", "web")


def test_a_score_is_observed_once() -> None:
    """The histogram takes the first revision only: a counter can't give back."""
    metrics = _seen(_health(80), _health(40, revision=1), _health(80), _health(70, "b"))
    assert [80, 70] == metrics.observations("interlock_health_score", "shop-1", "web")


def test_only_the_newest_window_is_now() -> None:
    """A new window starts from nothing; a late record of an older one does not come back."""
    metrics = _seen(_health(10, "a"), _health(20, "b"), _health(90, "a", window=1), _health(5, "c", revision=1))
    assert (1, 0) == _gauges(metrics)


def test_silence_ends_the_window() -> None:
    """Two windows after the last one ended nobody is low any more."""
    metrics = RecordedMetrics()
    scores = HealthScores(metrics)
    scores.take(_health(10), T0 + WINDOW)
    scores.publish(T0 + 3 * WINDOW)
    assert (1, 1) == _gauges(metrics)
    scores.publish(T0 + 3 * WINDOW + 1)
    assert (0, 0) == _gauges(metrics)


def test_history_is_not_today() -> None:
    """Scores older than a day are read and not counted."""
    metrics = _seen(_health(10), now=T0 + WINDOW + STALE_MS + 1)
    assert ((0, 0), []) == (_gauges(metrics), metrics.observations("interlock_health_score", "shop-1", "web"))


def test_a_revoked_partition_does_not_end_the_exporter() -> None:
    """Records of a partition that went to another exporter meanwhile are counted, and their offsets left to it."""
    metrics, score = RecordedMetrics(), codec.encode(_health(50, start=SystemClock().now_ms() - WINDOW))
    exporter = HealthExporter(settings(), metrics, SystemClock())
    headers: list[Any] = list(cloudevents.headers_for(id="h-1", type=TOPICS[TOPIC].type, source="t", time_ms=T0))
    message = Message(topic=TOPIC, partition=0, offset=5, key=b"k", value=score, headers=headers, error=None)
    consumer = Consumer({"group.id": "g", "log_level": 0, "enable.auto.offset.store": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    consumer.unassign()
    exporter._take([message], consumer)
    consumer.close()
    assert [50] == metrics.observations("interlock_health_score", "shop-1", "web")


def _publish(broker: str, values: list[bytes]) -> None:
    admin = AdminClient({"bootstrap.servers": broker})  # kept: its answer is lost with it
    created = admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC]
    if (error := created.exception(30)) is not None and "exists" not in str(error).lower():
        raise error
    producer = Producer({"bootstrap.servers": broker})
    for number, value in enumerate(values):
        headers = cloudevents.headers_for(id=f"h-{number}", type=TOPICS[TOPIC].type, source="test", time_ms=T0,
                                          subject="shop-1/web/li")  # fmt: skip
        producer.produce(TOPIC, value, b"shop-1/web/li", headers=list(headers))
    producer.flush(30)


@pytest.mark.kafka
def test_scores_come_from_kafka(broker: str) -> None:
    """The exporter reads a real topic, counts what is no score, and goes on (promise 10)."""
    now, metrics, shop = SystemClock().now_ms(), RecordedMetrics(), fresh_id("shop")
    start = now - now % WINDOW - WINDOW
    _publish(broker, [codec.encode(_health(42, "a", start=start, shop=shop)), b"{",
                      codec.encode(_health(91, "b", start=start, shop=shop))])  # fmt: skip
    chosen = settings(bootstrap_servers=broker, group=fresh_id("g"))
    stop = threading.Event()
    thread = threading.Thread(target=HealthExporter(chosen, metrics, SystemClock()).run, args=(stop,))
    thread.start()
    try:
        for _ in range(300):
            if metrics.value("interlock_sessions_scored", shop, "web") == 2:
                break
            stop.wait(0.2)
    finally:
        stop.set()
        thread.join(20)

    assert 1 == metrics.value("interlock_sessions_low", shop, "web")
    assert 1 <= metrics.value("interlock_health_unreadable_total", "not_json")
