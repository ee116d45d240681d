"""feedback: signals as they happen, and a health score for each session and window."""

from __future__ import annotations

from feedback.step import FeedbackSettings, feedback_step
from streams.runtime.table import Row
from streams.settings import Settings


def row(settings: Settings) -> Row:
    """The feedback processor with the settings' window."""
    return Row(
        name="feedback",
        inputs=("channel.events", "messages.normalized", "actions.outbound", "tools.results", "human.decisions",
                "timers.fired"),
        step=feedback_step(FeedbackSettings(window_ms=settings.window_ms, grace_ms=settings.window_grace_ms)),
        failure_domain="signals and scores only: nothing of a conversation depends on them",
        degrade="planning and delivery go on without signals and score: a failing step is left out of the decision",
        alarm="InterlockHealthSilent: interlock_sessions_scored falls to 0 while decisions go on, or "
        "interlock_decisions_by_rule_total with rule runtime.step_left_out rises",
        optional=True,
    )  # fmt: skip
