"""Metrics: declared once, bounded, from zero, and counted from what a decision says."""

from __future__ import annotations

import importlib.util
import sys
import timeit
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import streams.metrics
from schemas.step import Input
from schemas.system import TimerFired
from schemas.tools import MODEL, WRITER, TokenUsage, ToolResult
from streams.metric_list import BY_NAME, LABEL_BOUNDS, METRICS, NAMES, OTHER
from streams.metrics import Metrics, MetricsPort, RecordedMetrics, decision_metrics

NOW = 1_767_578_400_000
SERIES_MAX = 1_000  # of one shop with three channels, whatever the number of sessions


def _samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def _cause(topic: str = "channel.events", value: Any = None) -> Input:
    return Input(topic, 0, 1, NOW, "shop-1/web/li", "r-1", "t", value)


def _diff(**fields: Any) -> dict[str, Any]:
    return {"reasons": [], "changes": [], "emits": [], **fields}


def _emit(topic: str, key: str = "shop-1/web/li", **data: Any) -> dict[str, Any]:
    return {"topic": topic, "key": key, "data": data}


class TestList:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_metric_is_written_somewhere(self, name: str) -> None:
        """A metric that nothing counts would stand at 0 on every dashboard, whatever happens."""
        root = Path(streams.metrics.__file__).parent.parent
        texts = (file.read_text() for package in ("streams", "memory") for file in (root / package).rglob("*.py")
                 if file.name != "metric_list.py")  # fmt: skip
        assert any(f'"{name}"' in text for text in texts)

    def test_names_are_listed_once(self) -> None:
        """The names that mypy knows are exactly those of the list, each prefixed and once."""
        assert sorted(NAMES) == sorted(metric.name for metric in METRICS)
        assert len(set(NAMES)) == len(NAMES)
        assert all(name.startswith("interlock_") for name in NAMES)

    def test_names_follow_their_type(self) -> None:
        """Counters, and only they, end in _total; histograms have buckets."""
        assert all(metric.name.endswith("_total") == (metric.type == "counter") for metric in METRICS)
        assert all(bool(metric.buckets) == (metric.type == "histogram") for metric in METRICS)

    def test_labels_are_bounded(self) -> None:
        """Every label has a stated bound, and none of them is an id (case G01)."""
        labels = {label for metric in METRICS for label in metric.labels}
        assert labels <= LABEL_BOUNDS.keys()
        assert not {label for label in labels if "id" in label.split("_") or label in ("session", "conversation")}

    def test_known_values_fit_their_bound(self) -> None:
        """Listed label values are of the metric's own labels, and no more than the bound."""
        for metric in METRICS:
            assert set(metric.known) <= set(metric.labels)
            assert all(len(values) <= LABEL_BOUNDS[label] for label, values in metric.known.items())

    def test_every_metric_says_what_it_means(self) -> None:
        """The meaning is a sentence that stands in the exposition as help."""
        text = Metrics().exposition().decode()
        assert all(len(metric.meaning) >= 15 and metric.meaning in text for metric in METRICS)


class TestSeries:
    def test_sessions_do_not_grow_series(self) -> None:
        """10,000 sessions on 3 channels stay under a fixed number of series (case G01)."""
        metrics = Metrics()
        for session in range(10_000):
            key = f"shop-1/{('web', 'app', 'wechat')[session % 3]}/customer-{session}"
            emits = [_emit("delivery.states", key, state="sent", previous="queued", latency_ms=80),
                     _emit("feedback.signals", key, kind="reply_latency", value=900.0)]  # fmt: skip
            decision_metrics(metrics, _cause(), _diff(emits=emits))

        assert SERIES_MAX > metrics.series()

    def test_unknown_channels_fold(self) -> None:
        """Channels beyond the bound count as `other`, and nothing is lost (case G01)."""
        metrics = Metrics()
        for channel in range(500):
            metrics.count("interlock_signals_total", shop="s", channel=f"c{channel}", kind="repeat")

        found = {dict(labels)["channel"]: value for (name, labels), value in _samples(metrics).items()
                 if name == "interlock_signals_total" and dict(labels)["kind"] == "repeat"}  # fmt: skip
        assert LABEL_BOUNDS["channel"] + 1 == len(found)
        assert 500 == sum(found.values())
        assert 500 - LABEL_BOUNDS["channel"] == found[OTHER]

    def test_a_forgotten_gauge_is_no_series(self) -> None:
        """What a process no longer knows is not scraped as if it stood still; it can come back (R-002-16)."""
        metrics, series = Metrics(), ("interlock_states_open", (("partition", "3"),))
        metrics.gauge("interlock_states_open", 5, partition="3")
        assert 5 == _samples(metrics)[series]

        metrics.forget("interlock_states_open", partition="3")
        metrics.forget("interlock_states_open", partition="4")
        assert series not in _samples(metrics)

        metrics.gauge("interlock_states_open", 7, partition="3")
        assert 7 == _samples(metrics)[series]

    def test_known_label_sets_start_at_zero(self) -> None:
        """The first refund failure is an increase from 0 to 1 (case G05)."""
        metrics = Metrics({"tool": ["create_refund"]})
        failure = ("interlock_tool_outcomes_total", (("status", "failure"), ("tool", "create_refund")))
        before = _samples(metrics)[failure]

        metrics.count("interlock_tool_outcomes_total", tool="create_refund", status="failure")

        assert (0, 1) == (before, _samples(metrics)[failure])

    def test_siblings_start_at_zero(self) -> None:
        """When a shop is seen first, its other delivery states exist too, at 0 (case G05)."""
        metrics = Metrics()
        metrics.count("interlock_messages_by_state_total", shop="s", channel="web", state="queued")

        labels = (("channel", "web"), ("shop", "s"), ("state", "failed"))
        assert 0 == _samples(metrics)["interlock_messages_by_state_total", labels]

    def test_listed_values_are_there_from_the_start(self) -> None:
        """A new app shows each reason for which a snapshot may be skipped, at 0 (case G05)."""
        samples = _samples(Metrics())
        for reason in BY_NAME["interlock_snapshot_skipped_total"].known["reason"]:
            assert 0 == samples["interlock_snapshot_skipped_total", (("reason", reason),)]


class TestApps:
    def test_two_apps_in_one_process(self) -> None:
        """Two apps share neither registry nor counts, and building both is no error (case G07)."""
        left, right = Metrics(), Metrics()
        left.count("interlock_decisions_total", topic="plans")

        assert 1 == _samples(left)["interlock_decisions_total", (("topic", "plans"),)]
        assert ("interlock_decisions_total", (("topic", "plans"),)) not in _samples(right)

    def test_import_under_two_names(self) -> None:
        """The module imported again under another name registers nothing twice (case G07)."""
        spec = importlib.util.spec_from_file_location("metrics_again", Path(str(streams.metrics.__file__)))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["metrics_again"] = module
        try:
            spec.loader.exec_module(module)
            assert Metrics().series() == module.Metrics().series()
        finally:
            del sys.modules["metrics_again"]

    def test_exposition_is_served(self) -> None:
        """`serve` answers on a free port with the same text, until it is closed."""
        metrics = Metrics()
        metrics.gauge("interlock_outbox_messages", 7)
        exposition = metrics.serve(0)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{exposition.port}/metrics") as answer:
                text = answer.read().decode()
        finally:
            exposition.close()

        assert "interlock_outbox_messages 7.0" in text


@pytest.mark.parametrize("make", [Metrics, RecordedMetrics])
class TestPort:
    def test_a_misspelt_name_is_refused(self, make: type[Metrics]) -> None:
        """An unknown name is an error of mypy (else the ignore below is one), and of the program."""
        with pytest.raises(KeyError, match="interlock_decision_total"):
            make().count("interlock_decision_total", topic="plans")  # type: ignore[arg-type]

    def test_wrong_labels_are_refused(self, make: type[Metrics]) -> None:
        """A missing or foreign label names the metric and its labels."""
        with pytest.raises(ValueError, match=r"interlock_decisions_total is a counter with labels \('topic',\)"):
            make().count("interlock_decisions_total", rule="x")

    def test_wrong_type_is_refused(self, make: type[Metrics]) -> None:
        """A counter can't be set, nor a gauge observed."""
        with pytest.raises(ValueError, match="counter"):
            make().gauge("interlock_decisions_total", 1, topic="plans")
        with pytest.raises(ValueError, match="gauge"):
            make().observe("interlock_outbox_messages", 1)


class TestDecisions:
    def test_rules_are_counted(self) -> None:
        """Every reason of a decision counts for its rule (R-002-22)."""
        metrics = RecordedMetrics()
        reasons = [{"rule": "refund.period"}, {"rule": "refund.period"}, {"rule": "delivery.sent"}]
        decision_metrics(metrics, _cause(), _diff(reasons=reasons))

        assert 2 == metrics.value("interlock_decisions_by_rule_total", "refund.period")
        assert 1 == metrics.value("interlock_decisions_total", "channel.events")

    @pytest.mark.parametrize(("previous", "counted"), [("queued", 1), ("sent", 0)])
    def test_states_are_counted_once(self, previous: str, counted: int) -> None:
        """A message counts for a state when it reaches it, not when a late receipt repeats it (R-002-29)."""
        metrics = RecordedMetrics()
        emit = _emit("delivery.states", state="sent", previous=previous, latency_ms=None)
        decision_metrics(metrics, _cause(), _diff(emits=[emit]))

        assert counted == metrics.value("interlock_messages_by_state_total", "shop-1", "web", "sent")

    def test_messages_without_a_time_are_skipped(self) -> None:
        """A message whose provider gave no time has no latency (case A07)."""
        metrics = RecordedMetrics()
        for latency in (None, 250):
            emit = _emit("delivery.states", state="sent", previous="queued", latency_ms=latency)
            decision_metrics(metrics, _cause(), _diff(emits=[emit]))

        assert [0.25] == metrics.observations("interlock_delivery_seconds", "web", "sent")

    @pytest.mark.parametrize(("path", "counted"), [("/tools/calls/c-1/status", 1), ("/timers/x", 0)])
    def test_tool_outcomes_are_counted_once(self, path: str, counted: int) -> None:
        """An outcome counts when it changes the call's state; a repeated fact changes nothing and counts nothing."""
        metrics = RecordedMetrics()
        result = ToolResult(result_id="c-1:r", call_id="c-1", tool="get_order", status="timeout", finished_at=NOW)
        decision_metrics(metrics, _cause("tools.results", result), _diff(changes=[{"path": path}]))

        assert counted == metrics.value("interlock_tool_outcomes_total", "get_order", "timeout")

    @pytest.mark.parametrize("tool", [MODEL, WRITER])
    def test_a_models_answer_is_counted_once_with_its_tokens(self, tool: str) -> None:
        """An answer counts when it settles its question; a late one, and other facts, count nothing (R-004-04)."""
        metrics = RecordedMetrics()
        usage = TokenUsage(prompt=700, completion=60)
        result = ToolResult(result_id="model-1:r", call_id="model-1", tool=tool, status="success", finished_at=NOW,
                            token_usage=usage)  # fmt: skip
        for path in ("/pending/model-1", "/pending/model-2", "/perception/held"):
            decision_metrics(metrics, _cause("tools.results", result), _diff(changes=[{"path": path}]))

        assert 1 == metrics.value("interlock_model_answers_total", "success")
        tokens = [metrics.value("interlock_model_tokens_total", one) for one in ("prompt", "completion")]
        assert [700, 60] == tokens

    def test_fired_deadlines_are_counted_without_what_they_are_about(self) -> None:
        """A deadline counts by processor and purpose: the message id behind it is no label (case G01)."""
        metrics = RecordedMetrics()
        fired = TimerFired(timer_id="t-1", name="delivery.resend:m-1", due=NOW, set_by=3)
        decision_metrics(metrics, _cause("timers.fired", fired), _diff())
        decision_metrics(metrics, _cause("timers.fired"), _diff())

        assert 1 == metrics.value("interlock_timers_fired_total", "delivery.resend")

    def test_a_producers_repeat_is_a_dropped_duplicate(self) -> None:
        """An event that was sent twice shows as a duplicate of its topic (case A15)."""
        metrics = RecordedMetrics()
        decision_metrics(metrics, _cause(), _diff(reasons=[{"rule": "runtime.duplicate"}]))

        assert 1 == metrics.value("interlock_duplicates_dropped_total", "channel.events")

    def test_dead_letters_are_counted(self) -> None:
        """A dead letter counts by source topic and code, an orphan also as one (case A03)."""
        metrics = RecordedMetrics()
        emit = {**_emit("delivery.receipts.dlq"), "data": {"topic": "delivery.receipts", "code": "orphan"}}
        decision_metrics(metrics, _cause(), _diff(emits=[emit]))

        assert 1 == metrics.value("interlock_dead_letters_total", "delivery.receipts", "orphan")
        assert 1 == metrics.value("interlock_receipts_orphaned_total", "shop-1", "web")

    def test_system_conversations_have_no_shop(self) -> None:
        """What a partition's own conversation emits counts under `none`."""
        metrics = RecordedMetrics()
        decision_metrics(metrics, _cause(), _diff(emits=[_emit("feedback.signals", "~3", kind="repeat", value=1.0)]))

        assert 1 == metrics.value("interlock_signals_total", "none", "none", "repeat")

    def test_requests_and_latencies_are_counted(self) -> None:
        """Hand-overs count by kind, reply latencies in seconds (R-002-35)."""
        metrics = RecordedMetrics()
        emits = [_emit("human.requests", kind="handover"),
                 _emit("feedback.signals", kind="reply_latency", value=1500.0)]  # fmt: skip
        decision_metrics(metrics, _cause(), _diff(emits=emits))

        assert 1 == metrics.value("interlock_human_requests_total", "handover")
        assert [1.5] == metrics.observations("interlock_reply_latency_seconds", "shop-1", "web")

    @pytest.mark.parametrize(("marks", "outcome"), [
        ((), "normalized"), (("resolved",), "normalized"), (("missing_item",), "missing_field"),
        (("unreadable",), "human_fallback"), (("missing_item", "unreadable"), "human_fallback"),
    ])  # fmt: skip
    def test_readings_count_by_what_became_of_them(self, marks: tuple[str, ...], outcome: str) -> None:
        """Each message is whole, lacks a field, or is a person's (R-002-05)."""
        metrics = RecordedMetrics()
        decision_metrics(metrics, _cause(), _diff(emits=[_emit("messages.normalized", marks=marks)]))

        assert 1 == metrics.value("interlock_messages_normalized_total", "shop-1", "web", outcome)

    def test_asked_again_or_taken_back_is_no_new_request(self) -> None:
        """What people are asked is counted once, however often it is said."""
        metrics = RecordedMetrics()
        emits = [_emit("human.requests", kind="review", status=status, asked=asked)
                 for status, asked in (("open", 1), ("open", 2), ("closed", 1))]  # fmt: skip
        decision_metrics(metrics, _cause(), _diff(emits=emits))

        assert 1 == metrics.value("interlock_human_requests_total", "review")

    def test_counting_is_cheap(self) -> None:
        """A decision with three rules costs microseconds: the bound is wide, for a busy machine."""
        metrics: MetricsPort = Metrics()
        cause, diff = _cause(), _diff(reasons=[{"rule": "a"}, {"rule": "b"}, {"rule": "c"}])
        best = min(timeit.repeat(lambda: decision_metrics(metrics, cause, diff), number=500, repeat=5)) / 500

        assert best < 50e-6
