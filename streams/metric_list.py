"""Every metric, declared once: name, type, labels and meaning (one list for code, dashboards and docs).

No id is ever a label: what names a session, message or call stands in logs and reports (case G01).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

MetricName = Literal[
    "interlock_decisions_total",
    "interlock_decisions_by_rule_total",
    "interlock_decide_seconds",
    "interlock_commit_batch_decisions",
    "interlock_commit_seconds",
    "interlock_duplicates_dropped_total",
    "interlock_redelivered_total",
    "interlock_emits_set_aside_total",
    "interlock_emits_republished_total",
    "interlock_dead_letters_total",
    "interlock_lag_records",
    "interlock_inputs_in_flight",
    "interlock_states_open",
    "interlock_partitions_owned",
    "interlock_partition_stops_total",
    "interlock_recovery_seconds",
    "interlock_snapshot_age_seconds",
    "interlock_snapshot_skipped_total",
    "interlock_snapshot_copied_timestamp_seconds",
    "interlock_snapshot_copy_failures_total",
    "interlock_timer_skew_seconds",
    "interlock_timers_stopped",
    "interlock_timers_fired_total",
    "interlock_effects_running",
    "interlock_effect_seconds",
    "interlock_messages_normalized_total",
    "interlock_messages_by_state_total",
    "interlock_delivery_seconds",
    "interlock_receipts_orphaned_total",
    "interlock_tool_outcomes_total",
    "interlock_model_answers_total",
    "interlock_model_tokens_total",
    "interlock_human_requests_total",
    "interlock_signals_total",
    "interlock_reply_latency_seconds",
    "interlock_health_score",
    "interlock_health_revisions_total",
    "interlock_health_unreadable_total",
    "interlock_sessions_low",
    "interlock_sessions_scored",
    "interlock_outbox_messages",
    "interlock_gateway_events_total",
    "interlock_spooled_records",
    "interlock_security_refusals_total",
    "interlock_keeper_writes_total",
    "interlock_keeper_retries_total",
    "interlock_keeper_waiting_seconds",
    "interlock_keeper_lag_seconds",
]
MetricType = Literal["counter", "gauge", "histogram"]

OTHER = "other"  # the value that a label folds into beyond its bound
LABEL_BOUNDS: Mapping[str, int] = {  # distinct values of one label, at most; the rest is "other" (case G01)
    "shop": 32, "channel": 16, "rule": 400, "tool": 64, "topic": 64, "partition": 256, "code": 64, "reason": 64,
    "kind": 32, "outcome": 16, "state": 8, "status": 8, "name": 16,
}  # fmt: skip

_FAST = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
_COMMIT = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 10)
_HUMAN = (0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 900)
_SCORE = (10, 20, 30, 40, 50, 59, 69, 79, 89, 99)  # whole points, so le="59" is "below 60"
_STATES = ("queued", "sent", "delivered", "displayed", "read", "failed")
_STATUSES = ("success", "failure", "timeout", "unknown", "refused", "fallback", "cancelled")
_SIGNALS = ("reply_latency", "correction", "interruption", "deviation", "repeat", "rating")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `known` are label values that exist from the start, so that the first event is an increase."""

    name: MetricName
    type: MetricType
    labels: tuple[str, ...]
    meaning: str
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()


METRICS: tuple[Metric, ...] = (
    Metric("interlock_decisions_total", "counter", ("topic",), "Committed decisions, by the topic that caused them"),
    Metric("interlock_decisions_by_rule_total", "counter", ("rule",), "Reasons given in decisions, by rule (R-002-22)"),
    Metric("interlock_decide_seconds", "histogram", ("topic",), "Time of one decision's steps", buckets=_FAST),
    Metric("interlock_commit_batch_decisions", "histogram", (), "Decisions in one transaction",
           buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)),
    Metric("interlock_commit_seconds", "histogram", (), "Time of one transaction", buckets=_COMMIT),
    Metric("interlock_duplicates_dropped_total", "counter", ("topic",), "Records dropped as repeats by id or position"),
    Metric("interlock_redelivered_total", "counter", ("topic",), "Records read again below the handled offset"),
    Metric("interlock_emits_set_aside_total", "counter", ("topic",), "Emits left aside: predecessor not handled yet"),
    Metric("interlock_emits_republished_total", "counter", ("topic",), "Emits published again at a recovery"),
    Metric("interlock_dead_letters_total", "counter", ("topic", "code"), "Dead letters, by source topic and code"),
    Metric("interlock_lag_records", "gauge", ("topic", "partition"), "Records not handled yet"),
    Metric("interlock_inputs_in_flight", "gauge", ("partition",), "Inputs taken and not acknowledged"),
    Metric("interlock_states_open", "gauge", ("partition",), "Open conversations in memory"),
    Metric("interlock_partitions_owned", "gauge", (), "Partitions that this worker owns"),
    Metric("interlock_partition_stops_total", "counter", ("reason",), "Partitions closed, or topic partitions paused",
           {"reason": ("revoked", "fenced", "commit_unknown", "version_conflict", "dlq_limit", "bug")}),
    Metric("interlock_recovery_seconds", "histogram", (), "From assignment to open inputs, one partition",
           buckets=(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120)),
    Metric("interlock_snapshot_age_seconds", "gauge", ("partition",), "Age of the newest whole snapshot (R-002-16)"),
    Metric("interlock_snapshot_skipped_total", "counter", ("reason",), "Snapshots not used at a recovery",
           {"reason": ("torn", "foreign", "stale")}),
    Metric("interlock_snapshot_copied_timestamp_seconds", "gauge", (),
           "UTC time of the newest snapshot in object storage, while none fails (R-002-16)"),
    Metric("interlock_snapshot_copy_failures_total", "counter", ("reason",), "Copies of snapshots that failed",
           {"reason": ("behind", "put", "restore", "bug")}),
    Metric("interlock_timer_skew_seconds", "gauge", ("partition",), "Local clock minus append time"),
    Metric("interlock_timers_stopped", "gauge", ("partition",), "1 while the skew keeps deadlines from firing"),
    Metric("interlock_timers_fired_total", "counter", ("name",), "Deadlines fired, by processor and purpose"),
    Metric("interlock_effects_running", "gauge", ("partition", "kind"), "Declared effects that run now",
           {"kind": ("tool", "send", "recall", "profile", "model")}),
    Metric("interlock_effect_seconds", "histogram", ("kind",), "Time of one effect, from start to fact",
           {"kind": ("tool", "send", "recall", "profile", "model")}, buckets=_COMMIT),
    Metric("interlock_messages_normalized_total", "counter", ("shop", "channel", "outcome"),
           "Customer messages by what became of their reading (R-002-05)",
           {"outcome": ("normalized", "missing_field", "human_fallback")}),
    Metric("interlock_messages_by_state_total", "counter", ("shop", "channel", "state"),
           "Messages that reached a delivery state (R-002-29)", {"state": _STATES}),
    Metric("interlock_delivery_seconds", "histogram", ("channel", "state"),
           "Queued to state by the provider's time; messages without one are skipped (A07)", buckets=_HUMAN),
    Metric("interlock_receipts_orphaned_total", "counter", ("shop", "channel"), "Receipts whose send never came (A03)"),
    Metric("interlock_tool_outcomes_total", "counter", ("tool", "status"), "Outcomes of declared calls",
           {"status": _STATUSES}),
    Metric("interlock_model_answers_total", "counter", ("status",), "Outcomes of questions to a model (promise 7)",
           {"status": ("success", "failure", "timeout")}),
    Metric("interlock_model_tokens_total", "counter", ("kind",), "Tokens that models counted (R-004-04)",
           {"kind": ("prompt", "completion")}),
    Metric("interlock_human_requests_total", "counter", ("kind",), "Hand-overs and reviews asked of people",
           {"kind": ("handover", "review")}),
    Metric("interlock_signals_total", "counter", ("shop", "channel", "kind"), "Feedback signals (R-002-35 to 39)",
           {"kind": _SIGNALS}),
    Metric("interlock_reply_latency_seconds", "histogram", ("shop", "channel"),
           "Customer message to the first reply (R-002-35)", buckets=_HUMAN),
    Metric("interlock_health_score", "histogram", ("shop", "channel"),
           "Health scores of sessions and windows, first revision (R-002-40)", buckets=_SCORE),
    Metric("interlock_health_revisions_total", "counter", ("shop", "channel"), "Scores changed by a late event"),
    Metric("interlock_health_unreadable_total", "counter", ("code",), "Records on feedback.health that are no score"),
    Metric("interlock_sessions_low", "gauge", ("shop", "channel"), "Sessions under 60 in the newest window"),
    Metric("interlock_sessions_scored", "gauge", ("shop", "channel"), "Sessions scored in the newest window"),
    Metric("interlock_outbox_messages", "gauge", (), "Messages in the web channel's outbox"),
    Metric("interlock_gateway_events_total", "counter", ("kind", "outcome"), "Posts to the gateway",
           {"kind": ("event", "outbound", "receipt", "decision"),
            "outcome": ("accepted", "repeated", "refused", "failed")}),
    Metric("interlock_spooled_records", "gauge", (), "Pushes of channels that wait on disk for the broker"),
    Metric("interlock_security_refusals_total", "counter", ("kind",),
           "Pushes that look like attacks (B21), and requests without the key that they need",
           {"kind": ("signature", "replay", "entity", "downgrade", "key")}),
    Metric("interlock_keeper_writes_total", "counter", ("outcome",), "Memory writes, by what the keeper did with them",
           {"outcome": ("applied", "repeated", "refused", "unreadable", "overtaken", "set_aside", "forgotten")}),
    Metric("interlock_keeper_retries_total", "counter", ("name",), "Tries that a store of the memory did not answer",
           {"name": ("facts", "relations")}),
    Metric("interlock_keeper_waiting_seconds", "gauge", ("name",), "For how long writes have waited for the store",
           {"name": ("facts", "relations")}),
    Metric("interlock_keeper_lag_seconds", "gauge", (), "Age of the oldest write that the keeper holds, not applied"),
)  # fmt: skip
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
NAMES: tuple[str, ...] = get_args(MetricName)
