"""What the privacy commands say before they touch anything, and retention in words."""

from __future__ import annotations

import pytest

from schemas.topics import TOPICS
from streams.commands.forget import told
from streams.commands.retention import short, span
from streams.privacy.forget import Plan
from streams.privacy.search import Needles
from streams.settings import Settings
from streams.topics import retention_ms, wanted_config

DAY_MS = 86_400_000


def test_what_would_be_forgotten_is_told_without_a_value() -> None:
    """Conversations, counts and what is under way; no clear value gets on a screen (promise 9)."""
    plan = Plan(
        ("demo/web/u-1", "demo/wechat/w-1"), ("letter:plans:0:1",), Needles(["13800000000"]), 4, ("x: tool c-1",)
    )
    lines = "\n".join(told(plan))
    assert "2 conversations: demo/web/u-1, demo/wechat/w-1" in lines
    assert "under way: x: tool c-1" in lines
    assert "13800000000" not in lines


def test_retention_is_a_setting_of_each_topic() -> None:
    """180 days by default; the setting for all, and one of a topic's own over its manifest (X7)."""
    settings = Settings(_env_file=None, topic_retention_days={"channel.raw": 2, "plans": 365})  # type: ignore[call-arg]
    assert (180, 365, 2) == tuple(retention_ms(TOPICS[name], settings) // DAY_MS
                                  for name in ("channel.events", "plans", "channel.raw"))  # fmt: skip
    assert str(365 * DAY_MS) == wanted_config(TOPICS["plans"], settings)["retention.ms"]


@pytest.mark.parametrize(("words", "ms"), [("180 days", 180 * DAY_MS), ("36 hours", 129_600_000), ("for ever", -1)])
def test_retention_is_told_in_words(words: str, ms: int) -> None:
    """A person reads days or hours, not milliseconds (X7)."""
    assert words == span(ms)


def test_a_retention_shorter_than_an_audit_is_told() -> None:
    """Only where the manifest asks for what an audit reads (X7)."""
    assert short(30 * DAY_MS, 180 * DAY_MS)
    assert not short(365 * DAY_MS, 180 * DAY_MS)
    assert not short(DAY_MS, DAY_MS)
    assert not short(-1, 180 * DAY_MS)
