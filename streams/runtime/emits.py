"""What follows a commit: emits in version order, and which of them the broker has not acknowledged yet."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from streams.runtime import wire
from streams.runtime.crashpoints import crash
from streams.runtime.ports import SendPort


class Emitter:
    """Publishes the emits of committed diffs of one partition."""

    def __init__(
        self, send: SendPort, partition_for: Callable[[str], int], on_lost: Callable[[BaseException], None]
    ) -> None:
        self._send = send
        self._partition_for = partition_for
        self._on_lost = on_lost
        self._open: deque[list[int]] = deque()  # [diff offset, emits without acknowledgement]
        self._next = 0

    def publish(self, offset: int, diff: Mapping[str, Any]) -> None:
        """Hand the diff's emits to the producer, in order; diffs must come in offset order."""
        self._next = offset + 1
        if not diff["emits"]:
            return
        entry = [offset, len(diff["emits"])]
        self._open.append(entry)
        for index in range(len(diff["emits"])):
            crash("emit.before")
            future = asyncio.ensure_future(self._send.send(wire.emit_record(diff, index, self._partition_for)))
            future.add_done_callback(partial(self._acknowledged, entry))
            crash("emit.after")

    def _acknowledged(self, entry: list[int], done: asyncio.Future[int]) -> None:
        # the sender was closed: the diff stays open here, and the next owner publishes it again
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._on_lost(error)
            return
        entry[1] -= 1
        # from the front only: `unsent` must lie below every open emit, whatever was confirmed behind it
        while self._open and self._open[0][1] == 0:
            self._open.popleft()

    @property
    def unsent(self) -> int:
        """The lowest diff offset whose emits were not all acknowledged (the next diff's if none)."""
        return self._open[0][0] if self._open else self._next

    def start_at(self, offset: int) -> None:
        """After recovery: diffs below `offset` are all published."""
        self._next = offset
