"""Counting: the app's metrics on a registry of their own, a recorder for tests, and what a decision counts as."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from schemas.step import Input
from schemas.tools import MODELS, ToolResult
from streams.metric_list import BY_NAME, LABEL_BOUNDS, METRICS, OTHER, Metric, MetricName, MetricType

__all__ = ["Exposition", "MetricName", "Metrics", "MetricsPort", "RecordedMetrics", "decision_metrics"]


class MetricsPort(Protocol):
    """What code that counts is handed."""

    def count(self, name: MetricName, value: float = 1, /, **labels: str) -> None:
        """Add to a counter."""
        ...

    def gauge(self, name: MetricName, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        ...

    def observe(self, name: MetricName, value: float, /, **labels: str) -> None:
        """Add an observation to a histogram."""
        ...

    def forget(self, name: MetricName, /, **labels: str) -> None:
        """Take a gauge's series away: this process has nothing more to say of it."""
        ...


class _Labels:
    """Checks label names, and folds what is beyond a label's bound into "other"."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {label: set() for label in LABEL_BOUNDS}

    def values(self, name: str, type_: MetricType, labels: Mapping[str, str]) -> tuple[str, ...]:
        """The label values in declared order. Raises ValueError on a wrong type of metric or set of labels."""
        metric = BY_NAME[name]
        if metric.type != type_ or labels.keys() != set(metric.labels):
            message = f"{name} is a {metric.type} with labels {metric.labels}, not a {type_} with {tuple(labels)}"
            raise ValueError(message)
        return tuple(self._fold(label, labels[label]) for label in metric.labels)

    def _fold(self, label: str, value: str) -> str:
        seen = self._seen[label]
        if value in seen or len(seen) < LABEL_BOUNDS[label]:
            seen.add(value)
            return value
        return OTHER


class Metrics:
    """The metrics of one app, on a registry of their own: two apps in one process do not meet (case G07).

    `known` names label values that the app can foresee (its tools, rules, shops); together with the list's
    own they start at 0, so that the first failure is an increase that an alert sees (case G05).
    """

    def __init__(self, known: Mapping[str, Sequence[str]] | None = None) -> None:
        self.registry = CollectorRegistry()
        self._labels = _Labels()
        self._metrics: dict[str, Any] = {metric.name: self._make(metric) for metric in METRICS}
        self._bound: dict[MetricType, dict[tuple[str, ...], Any]] = {"counter": {}, "gauge": {}, "histogram": {}}
        self._counters, self._gauges, self._histograms = self._bound.values()  # label values to a child
        for metric in METRICS:
            self._start(metric, known or {})

    def count(self, name: MetricName, value: float = 1, /, **labels: str) -> None:
        """Add to a counter. Raises ValueError on a wrong type or set of labels."""
        child = self._counters.get((name, *labels.values()))
        (child or self._bind(name, "counter", labels)).inc(value)

    def gauge(self, name: MetricName, value: float, /, **labels: str) -> None:
        """Set a gauge. Raises ValueError on a wrong type or set of labels."""
        child = self._gauges.get((name, *labels.values()))
        (child or self._bind(name, "gauge", labels)).set(value)

    def observe(self, name: MetricName, value: float, /, **labels: str) -> None:
        """Add an observation (seconds, points or pieces). Raises ValueError on a wrong type or set of labels."""
        child = self._histograms.get((name, *labels.values()))
        (child or self._bind(name, "histogram", labels)).observe(value)

    def forget(self, name: MetricName, /, **labels: str) -> None:
        """Take a gauge's series away, if it is there. Raises ValueError on a wrong type or set of labels."""
        values = self._labels.values(name, "gauge", labels)
        self._gauges.pop((name, *values), None)
        with contextlib.suppress(KeyError):
            self._metrics[name].remove(*values)

    def exposition(self) -> bytes:
        """All series as Prometheus text."""
        return generate_latest(self.registry)

    def series(self) -> int:
        """How many series a scrape returns."""
        return sum(len(family.samples) for family in self.registry.collect())

    def serve(self, port: int, host: str = "127.0.0.1") -> Exposition:
        """Serve `/metrics` on a thread; port 0 takes a free one. Raises OSError when the port is taken."""
        server, thread = start_http_server(port, host, self.registry)
        return Exposition(server.server_port, server, thread)

    def _make(self, metric: Metric) -> Counter | Gauge | Histogram:
        if metric.type == "counter":
            return Counter(metric.name, metric.meaning, metric.labels, registry=self.registry)
        if metric.type == "gauge":
            return Gauge(metric.name, metric.meaning, metric.labels, registry=self.registry)
        return Histogram(metric.name, metric.meaning, metric.labels, registry=self.registry, buckets=metric.buckets)

    def _start(self, metric: Metric, known: Mapping[str, Sequence[str]]) -> None:
        choices = [(*metric.known.get(label, ()), *known.get(label, ())) for label in metric.labels]
        for values in itertools.product(*choices):
            self._bind(metric.name, metric.type, dict(zip(metric.labels, values, strict=True)))

    def _bind(self, name: MetricName, type_: MetricType, labels: Mapping[str, str]) -> Any:
        values = self._labels.values(name, type_, labels)
        metric = self._metrics[name]
        child = metric.labels(*values) if values else metric
        if tuple(labels) == BY_NAME[name].labels and OTHER not in values:  # what folds is not remembered: it has no end
            self._bound[type_][(name, *values)] = child
        self._siblings(BY_NAME[name], values)
        return child

    def _siblings(self, metric: Metric, values: tuple[str, ...]) -> None:
        """With a label set, those that differ only in a listed value start at 0 too (case G05)."""
        choices = [metric.known.get(label, ()) or (value,) for label, value in zip(metric.labels, values, strict=True)]
        if metric.known and metric.labels:
            for sibling in itertools.product(*choices):
                self._metrics[metric.name].labels(*sibling)


@dataclass(frozen=True, slots=True)
class Exposition:
    """A running `/metrics` server; the port is the real one."""

    port: int
    _server: Any
    _thread: Any

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class RecordedMetrics:
    """The twin for tests: what was counted, set and observed, with the same checks."""

    def __init__(self) -> None:
        self._labels = _Labels()
        self.values: dict[tuple[str, ...], float] = {}
        self.observed: dict[tuple[str, ...], list[float]] = {}

    def count(self, name: MetricName, value: float = 1, /, **labels: str) -> None:
        """Add to a counter."""
        key = (name, *self._labels.values(name, "counter", labels))
        self.values[key] = self.values.get(key, 0) + value

    def gauge(self, name: MetricName, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        self.values[(name, *self._labels.values(name, "gauge", labels))] = value

    def observe(self, name: MetricName, value: float, /, **labels: str) -> None:
        """Keep an observation."""
        self.observed.setdefault((name, *self._labels.values(name, "histogram", labels)), []).append(value)

    def forget(self, name: MetricName, /, **labels: str) -> None:
        """Drop a gauge."""
        self.values.pop((name, *self._labels.values(name, "gauge", labels)), None)

    def value(self, name: MetricName, /, *labels: str) -> float:
        """A counter's or gauge's value (0 when never touched), label values in declared order."""
        return self.values.get((name, *labels), 0)

    def observations(self, name: MetricName, /, *labels: str) -> list[float]:
        """A histogram's observations, label values in declared order."""
        return self.observed.get((name, *labels), [])


def decision_metrics(metrics: MetricsPort, cause: Input, diff: Mapping[str, Any]) -> None:
    """Count what a committed decision's diff says: rules, delivery states, outcomes, signals, dead letters, requests.

    The runtime calls it once, after the commit, so that steps stay pure and a replay counts nothing.
    """
    metrics.count("interlock_decisions_total", topic=cause.topic)
    for reason in diff["reasons"]:
        metrics.count("interlock_decisions_by_rule_total", rule=reason["rule"])
        if reason["rule"] == "runtime.duplicate":
            metrics.count("interlock_duplicates_dropped_total", topic=cause.topic)
    if cause.topic == "timers.fired" and cause.value is not None:
        metrics.count("interlock_timers_fired_total", name=cause.value.name.partition(":")[0])
    if cause.topic == "tools.results" and any(change["path"].startswith("/tools/") for change in diff["changes"]):
        metrics.count("interlock_tool_outcomes_total", tool=cause.value.tool, status=cause.value.status)
    result = cause.value
    if isinstance(result, ToolResult) and result.tool in MODELS and _settles(diff, result.call_id):
        _model(metrics, result)
    for emit in diff["emits"]:
        topic = emit["topic"]
        counter = _dead_letter if topic.endswith(".dlq") else _COUNTERS.get(topic)
        if counter is not None:
            counter(metrics, *_place(emit["key"]), emit["data"])


def _settles(diff: Mapping[str, Any], effect_id: str) -> bool:
    return any(change["path"] == f"/pending/{effect_id}" for change in diff["changes"])


def _model(metrics: MetricsPort, result: ToolResult) -> None:
    metrics.count("interlock_model_answers_total", status=result.status)
    if result.token_usage is not None:
        metrics.count("interlock_model_tokens_total", result.token_usage.prompt, kind="prompt")
        metrics.count("interlock_model_tokens_total", result.token_usage.completion, kind="completion")


def _place(conversation: str) -> tuple[str, str]:
    """Shop and channel of a conversation id; a partition's own conversation has neither."""
    parts = conversation.split("/", 2)
    return (parts[0], parts[1]) if len(parts) == 3 else ("none", "none")


def _delivery(metrics: MetricsPort, shop: str, channel: str, data: Mapping[str, Any]) -> None:
    if data["state"] == data["previous"]:
        return  # a late report, or one that only confirms
    metrics.count("interlock_messages_by_state_total", shop=shop, channel=channel, state=data["state"])
    if data["latency_ms"] is not None:
        metrics.observe("interlock_delivery_seconds", data["latency_ms"] / 1000, channel=channel, state=data["state"])


def _signal(metrics: MetricsPort, shop: str, channel: str, data: Mapping[str, Any]) -> None:
    metrics.count("interlock_signals_total", shop=shop, channel=channel, kind=data["kind"])
    if data["kind"] == "reply_latency":
        metrics.observe("interlock_reply_latency_seconds", data["value"] / 1000, shop=shop, channel=channel)


def _dead_letter(metrics: MetricsPort, shop: str, channel: str, data: Mapping[str, Any]) -> None:
    metrics.count("interlock_dead_letters_total", topic=data["topic"], code=data["code"])
    if data["code"] == "orphan":
        metrics.count("interlock_receipts_orphaned_total", shop=shop, channel=channel)


def _request(metrics: MetricsPort, _shop: str, _channel: str, data: Mapping[str, Any]) -> None:
    if data.get("status", "open") == "open" and data.get("asked", 1) == 1:  # neither taken back nor asked again
        metrics.count("interlock_human_requests_total", kind=data["kind"])


def _normalized(metrics: MetricsPort, shop: str, channel: str, data: Mapping[str, Any]) -> None:
    """R-002-05: whole, with a field missing that its intent needs, or not to be read and with a person."""
    marks = data.get("marks", ())
    outcome = "missing_field" if "missing_item" in marks else "normalized"
    outcome = "human_fallback" if "unreadable" in marks else outcome
    metrics.count("interlock_messages_normalized_total", shop=shop, channel=channel, outcome=outcome)


_COUNTERS: Mapping[str, Callable[[MetricsPort, str, str, Mapping[str, Any]], None]] = {
    "delivery.states": _delivery,
    "feedback.signals": _signal,
    "human.requests": _request,
    "messages.normalized": _normalized,
}
