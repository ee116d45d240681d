"""The signals in their first form (R-002-35 to R-002-39): pure readings of a message and of the state around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.messages import NormalizedMessage

REPEAT_MS = 3 * 86_400_000  # R-002-39: three days
TOPICS_MAX = 32  # issues remembered a conversation
KEYWORDS_MAX = 16
_ISSUES: Mapping[str, str] = {  # asking for a refund and asking where it is are one issue
    "refund": "refund", "refund_status": "refund", "logistics": "logistics", "change_address": "address",
    "complaint": "complaint",
}  # fmt: skip
_ANSWERS = frozenset({"confirm", "deny", "stop", "greeting", "thanks", "inform"})  # they repeat our words, not theirs
_LEAVING = frozenset({"deny", "stop"})


def keywords(message: NormalizedMessage) -> list[str]:
    """The key words that the message was understood by, sorted; none for a bare answer."""
    if message.intent in _ANSWERS:
        return []
    words = {evidence.value.casefold().strip() for evidence in message.evidence}
    return sorted(word for word in words if len(word) >= 2)[:KEYWORDS_MAX]


def shared(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Key words in two customer messages running: the first answer was not it (R-002-36)."""
    return sorted(set(before) & set(now))


def issue(message: NormalizedMessage, flows: list[dict[str, Any]]) -> str | None:
    """What the message is about, such as `refund:OD123456`; None when it names no issue.

    A bare answer (an order number) belongs to the flow that asked for it.
    """
    flow = flows[-1]["flow"] if flows and message.intent == "inform" else message.intent
    topic = _ISSUES.get(flow)
    if topic is None:
        return None
    item = message.target_item
    return f"{topic}:{(item and (item.order_id or item.sku_id)) or ''}"


def remembered(topics: Mapping[str, int], name: str, at: int) -> dict[str, int]:
    """The issues with this one raised at `at`; older than three days, and beyond the bound, are forgotten."""
    kept = {topic: raised for topic, raised in topics.items() if at - raised <= REPEAT_MS and topic != name}
    while len(kept) >= TOPICS_MAX:
        del kept[min(kept, key=lambda topic: (kept[topic], topic))]
    return {**kept, name: at}


def repeated(topics: Mapping[str, int], name: str, at: int, session_started: int) -> bool:
    """The same issue was raised in an earlier session, at most three days ago (R-002-39, J11)."""
    raised = topics.get(name)
    return raised is not None and raised < session_started and at - raised <= REPEAT_MS


def deviation(message: NormalizedMessage, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    """How the message left the guided path (R-002-38), in words; empty when it did not."""
    if not before:
        return ""
    if message.intent in _LEAVING:
        return f"{message.intent} in {before[-1]['flow']} at {before[-1]['node']}"
    if len(after) > len(before):
        return f"{after[-1]['flow']} over {before[-1]['flow']} at {before[-1]['node']}"
    return ""
