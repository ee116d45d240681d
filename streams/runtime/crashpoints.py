"""Named points between two durable steps where a chaos run kills the process; nothing happens otherwise.

`INTERLOCK_CRASH_AT=commit.before` kills at the first hit of that point, `commit.before:7` at the seventh.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "fence.before", "fence.after",
    "recover.checkpoint", "recover.diffs", "recover.done",
    "seek.before", "seek.after",
    "intake.offered",
    "commit.before", "transaction.before", "transaction.begun", "transaction.produced", "transaction.committed",
    "commit.after", "visible.after",
    "emit.before", "send.before", "send.handed_over", "emit.after", "send.acknowledged",
    "effect.tool.before", "effect.tool.after", "effect.send.before", "effect.send.after", "timer.before",
    "group.before", "group.after",
    "revoke.before", "revoke.after",
    "intake_app.sent",
)  # fmt: skip


def _planned(text: str) -> dict[str, int]:
    """`name` or `name:n`, several split by commas, as name to hits left."""
    planned = {}
    for part in filter(None, text.split(",")):
        name, _, hits = part.partition(":")
        planned[name] = int(hits or 1)
    return planned


_left = _planned(os.environ.get("INTERLOCK_CRASH_AT", ""))


def crash(name: str) -> None:
    """Die here, as by `kill -9`, when this hit of the point was asked for."""
    if name not in _left:
        return
    _left[name] -= 1
    if _left[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
