"""Named points between two durable steps where a chaos run kills the process; nothing happens otherwise.

`INTERLOCK_CRASH_AT=commit.before` kills at the first hit of that point, `commit.before:7` at the seventh;
`INTERLOCK_FREEZE_AT` stops the process there instead (SIGSTOP), until somebody lets it go on.
"""

from __future__ import annotations

import os
import signal
import time

SETTLE_S = 0.5  # a signal to the process takes effect within this, also on a busy machine

POINTS = (
    "fence.asked", "fence.before", "fence.after",
    "recover.checkpoint", "recover.diffs", "recover.done",
    "seek.before", "seek.after",
    "intake.offered",
    "commit.before", "transaction.before", "transaction.begun", "transaction.produced", "transaction.committed",
    "commit.after", "visible.after",
    "emit.before", "send.before", "send.handed_over", "emit.after", "send.acknowledged",
    "snapshot.unsent",
    "effect.tool.before", "effect.tool.after", "effect.send.before", "effect.send.after", "timer.before",
    "group.before", "group.after",
    "revoke.before", "revoke.after",
    "intake_app.sent",
    "keeper.facts", "keeper.relations", "keeper.letters",
)  # fmt: skip


def _planned(text: str) -> dict[str, int]:
    """`name` or `name:n`, several split by commas, as name to hits left."""
    planned = {}
    for part in filter(None, text.split(",")):
        name, _, hits = part.partition(":")
        planned[name] = int(hits or 1)
    return planned


_left = {
    name: [hits, number]
    for variable, number in (("INTERLOCK_CRASH_AT", signal.SIGKILL), ("INTERLOCK_FREEZE_AT", signal.SIGSTOP))
    for name, hits in _planned(os.environ.get(variable, "")).items()
}


def crash(name: str) -> None:
    """Die here, as by `kill -9`, or freeze, when this hit of the point was asked for."""
    planned = _left.get(name)
    if planned is None:
        return
    planned[0] -= 1
    if planned[0] == 0:
        # not through logging: what is buffered there would die with us
        os.write(2, f'{{"signal": {planned[1]:d}, "point": "{name}"}}\n'.encode())
        os.kill(os.getpid(), planned[1])
        # A stop goes to the process, and reaches this thread a moment later: it must not run on past the point.
        time.sleep(SETTLE_S)
