"""A conversation's state of a wanted size, for the benchmarks."""

from __future__ import annotations

from typing import Any

import orjson

from memory.bus import empty

NOW = 1_767_578_400_000


def state(conversation: str, size: int = 4_096) -> dict[str, Any]:
    """A version-1 state whose JSON has about `size` bytes: messages heard and sent, calls, bookkeeping."""
    made = empty(conversation)
    made["version"], made["now"] = 1, NOW
    made["session"] = {"id": "s-1", "number": 1, "shop": "demo", "channel": "web", "sender": conversation,
                       "started": NOW, "last_customer_at": NOW}  # fmt: skip
    messages: dict[str, Any] = {}
    sent: dict[str, Any] = {}
    number = 0
    while len(orjson.dumps(made)) < size - 250:
        number += 1
        messages[f"m-{number}"] = {
            "message_id": f"m-{number}", "event_id": f"ev-{number:024d}", "at": NOW + number,
            "text": "where is my order", "intent": "logistics", "language": "en", "revision": 1, "recalled": False,
        }  # fmt: skip
        sent[f"r-{number}"] = {
            "state": "read", "attempt": 1, "kind": "reply", "template_id": "logistics.status", "language": "en",
            "text": "Your parcel is on its way", "choices": [], "queued_at": NOW, "at": {"sent": NOW, "read": NOW},
            "assumed": False, "reason": "", "displayed_seen": None, "followed_up": False,
        }  # fmt: skip
        made["perception"] = {**made["perception"], "messages": dict(messages)}
        made["actions"] = {**made["actions"], "messages": dict(sent)}
    return made
